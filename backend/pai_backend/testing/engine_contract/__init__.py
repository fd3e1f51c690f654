"""The contract of an engine, as a pytest class that every engine and every fake of one passes.

Subclass :class:`EngineContract`, name the subclass ``Test…``, and give the four fixtures that ``world`` asks
for. What an engine claims is checked by another road where that matters: ``behind`` looks at the
processes themselves and breaks things without the engine's help.
"""

from pai_backend.testing.engine_contract.entered import Direct, Inside
from pai_backend.testing.engine_contract.given import Given, Staged
from pai_backend.testing.engine_contract.kept import Kept
from pai_backend.testing.engine_contract.observing import PATIENCE_S, Watching, read_log, watching
from pai_backend.testing.engine_contract.reach import Reach
from pai_backend.testing.engine_contract.runs import Runs
from pai_backend.testing.engine_contract.serving import LOOK_AGAIN_S
from pai_backend.testing.engine_contract.world import Behind, EngineMaker, EngineWorld

__all__ = [
    "LOOK_AGAIN_S",
    "PATIENCE_S",
    "Behind",
    "Direct",
    "EngineContract",
    "EngineMaker",
    "EngineWorld",
    "Given",
    "Inside",
    "Kept",
    "Reach",
    "Runs",
    "Watching",
    "read_log",
    "watching",
]


class EngineContract(Runs, Given, Staged, Reach, Kept, Inside, Direct):
    """What every engine promises."""
