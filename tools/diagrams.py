"""Write the pictures of docs/architecture.md from what they show; ``--check`` fails when one is stale."""

from __future__ import annotations

import configparser
import re
import sys
from pathlib import Path

from pai_backend.lifecycle.table import TRANSITIONS
from pai_backend.model.job import Phase

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "architecture.md"


def task_phases() -> str:
    """The table of task phases as a Mermaid state diagram; transitions that change nothing are left out."""
    lines = ["```mermaid", "stateDiagram-v2"]
    lines += [f'    state "{phase.value}" as {_state(phase)}' for phase in TRANSITIONS if _state(phase) != phase.value]
    lines += [f"    [*] --> {_state(Phase.QUEUED)}", f"    [*] --> {_state(Phase.BACKING_OFF)}: run again"]
    for phase, row in TRANSITIONS.items():
        by_target: dict[Phase, list[str]] = {}
        for happening, target in row.items():
            if target is not None and target is not phase:
                by_target.setdefault(target, []).append(happening.value)
        lines.extend(f"    {_state(phase)} --> {_state(to)}: {', '.join(what)}" for to, what in by_target.items())
    return "\n".join([*lines, f"    {Phase.ENDED.value} --> [*]", "```"])


def _state(phase: Phase) -> str:
    """The phase as one word, which Mermaid's state names must be."""
    return phase.value.replace(" ", "_")


def rooms() -> str:
    """The import contract as layers, highest first."""
    rules = configparser.ConfigParser()
    rules.read(ROOT / ".importlinter", encoding="utf-8")
    layers = rules["importlinter:contract:rooms"]["layers"].strip().splitlines()
    names = [re.sub(r"\s*[|:]\s*", "   ", layer).replace("pai_backend.", "") for layer in layers]
    return "\n".join(["```", "\n  ↓\n".join(names), "```"])


PICTURES = {
    "made by tools/diagrams.py from lifecycle/table.py": task_phases,
    "made by tools/diagrams.py from .importlinter": rooms,
}


def drawn(text: str) -> str:
    """The page with its pictures as they should be."""
    for mark, picture in PICTURES.items():
        frame = re.compile(rf"(<!-- {re.escape(mark)} -->\n).*?(<!-- end -->)", re.DOTALL)
        drawn = picture()
        text = frame.sub(lambda found, drawn=drawn: f"{found[1]}{drawn}\n{found[2]}", text)  # type: ignore[misc]
    return text


def main() -> int:
    """Draw, or compare with ``--check``."""
    now = PAGE.read_text(encoding="utf-8")
    if "--check" in sys.argv:
        if now != drawn(now):
            print(
                "docs/architecture.md: its pictures are stale; run .venv/bin/python tools/diagrams.py", file=sys.stderr
            )
            return 1
        return 0
    PAGE.write_text(drawn(now), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
