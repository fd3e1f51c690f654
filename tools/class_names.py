"""Find class names of the backend and of jupyter_pai that are defined more than once.

One class name means one thing in the whole project. ``ONE_IDEA`` has the names that are one idea at two rims, with the
reason; ``LEFT`` those that still mean two things, which may only become fewer. Names with an underscore are a module's
own, and ``wire_types.py`` is written from the backend's models.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parent.parent
TREES = ("backend/pai_backend", "jupyter_pai")
SKIPPED = frozenset({"wire_types.py", "node_modules"})

ONE_IDEA: Final[Mapping[str, str]] = {
    "AsyncClient": "the public interface, and the calls of REST below it",
    "Client": "the same without asyncio",
    "Fault": "what the backend sends, and what its client raises",
    "Finding": "what `doctor` of the client and of the server report",
    "Job": "a job of the backend, and the object that users of Python have of it",
    "NameTaken": "what the backend sends, and what its client raises",
    "NodeUse": "the use of a node, and how REST shows it",
    "TaskKeys": "the keys of tasks in the store, and the controller's memory of them",
    "VirtualCluster": "of the cluster configuration, and how OpenPAI's interface shows it",
}
LEFT: Final = frozenset(
    {
        "Budget",
        "Change",
        "Claim",
        "Group",
        "Lack",
        "Lease",
        "Listed",
        "Node",
        "Planner",
        "Queue",
        "Resource",
        "Scope",
        "Seen",
        "Sight",
        "State",
        "Stay",
        "Ticket",
        "Unreadable",
        "Usage",
        "Waiting",
        "Waits",
        "Wish",
        "Words",
    }
)


def places(paths: Iterable[Path]) -> dict[str, list[str]]:
    """Where each public class is defined, by its name."""
    found: dict[str, list[str]] = {}
    for path in paths:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(f"{path}:{node.lineno}")
    return found


def sources() -> list[Path]:
    """The modules that are looked at."""
    every = (path.relative_to(ROOT) for tree in TREES for path in sorted((ROOT / tree).rglob("*.py")))
    return [path for path in every if not SKIPPED & set(path.parts)]


def problems(found: Mapping[str, list[str]]) -> list[str]:
    """Names that are new in two places, and entries of the tables above that are no longer true."""
    twice = {name: at for name, at in found.items() if len(at) > 1}
    known = ONE_IDEA.keys() | LEFT
    new = [f"class {name} is defined twice: {', '.join(twice[name])}" for name in sorted(twice.keys() - known)]
    gone = [
        f"class {name} is defined once: remove it from tools/class_names.py" for name in sorted(known - twice.keys())
    ]
    return new + gone


def main() -> int:
    """Print what is wrong; the number of problems decides the exit status."""
    wrong = problems(places(sources()))
    print("\n".join(wrong) or f"class names: {len(ONE_IDEA)} are one idea in two places, {len(LEFT)} mean two things")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
