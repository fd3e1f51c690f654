"""An engine of another package: its tasks end at once with the status that its options say. For tests."""

from __future__ import annotations

from typing import Any

from pai_backend.engine.providers import EngineProvider, Host
from pai_backend.model.plan import TaskPlan
from tests.support.scripted_engine import ScriptedEngine, lab_node


class NapEngine(ScriptedEngine):
    """Forgets what it ran when it ends."""

    def __init__(self, nodes: list[str], status: int) -> None:
        super().__init__(*map(lab_node, nodes))
        self._status = status

    async def start(self, plan: TaskPlan) -> None:
        """The task starts, and has ended."""
        await super().start(plan)
        await self.exit(plan.uid, self._status)


class NapProvider(EngineProvider):
    """The kind ``nap``."""

    def check(self, settings: Any) -> None:
        """It needs the names of its nodes."""
        if not settings.engine.options.get("nodes"):
            raise ValueError("engine.options.nodes: name at least one node")

    def engine(self, host: Host) -> NapEngine:
        """Keys: ``nodes`` and ``status``."""
        options = host.settings.engine.options
        return NapEngine(options["nodes"], options.get("status", 0))
