"""Write pictures and tables within pages of docs/ from what they show; ``--check`` fails when one is stale."""

from __future__ import annotations

import configparser
import re
import sys
from pathlib import Path

from pai_backend.lifecycle.table import TRANSITIONS
from pai_backend.model import extension
from pai_backend.model.extension import DocumentField, FieldType
from pai_backend.model.job import Phase
from pai_backend.model.spec import JobSpec, Resources, TaskRole

ROOT = Path(__file__).resolve().parent.parent


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


def own_fields() -> str:
    """The field table of ``extras.jupyterPai``."""
    of_job = [*extension.document_fields(JobSpec).values(), *extension.JOB_PARTS]
    of_role = [*extension.document_fields(Resources).values(), *extension.ROLE_PARTS]
    of_role += extension.document_fields(TaskRole).values()
    rows = [_row(field.name, field) for field in of_job]
    rows += [_row(f"taskRoles.ROLE.{field.name}", field) for field in of_role]
    return "\n".join(["", "| field | holds | example | meaning |", "|---|---|---|---|", *rows, ""])


def _row(name: str, field: DocumentField) -> str:
    least = f", at least {_least(field)}" if field.low is not None else ""
    return f"| `{name}` | {field.type.value}{least} | `{field.example}` | {field.doc} |"


def _least(field: DocumentField) -> str:
    return f"`{field.low}s`" if field.type is FieldType.DURATION else str(field.low)


FRAMES = {
    "docs/architecture.md": {
        "made by tools/diagrams.py from lifecycle/table.py": task_phases,
        "made by tools/diagrams.py from .importlinter": rooms,
    },
    "docs/documents-v2.md": {"made by tools/diagrams.py from model/extension.py": own_fields},
}


def drawn(page: str, text: str) -> str:
    """The page's text with its frames as they should be."""
    for mark, make in FRAMES[page].items():
        frame = re.compile(rf"(<!-- {re.escape(mark)} -->\n).*?(<!-- end -->)", re.DOTALL)
        made = make()
        text, found = frame.subn(lambda found, made=made: f"{found[1]}{made}\n{found[2]}", text)  # type: ignore[misc]
        if found != 1:
            raise SystemExit(f"{page} has {found} frames '{mark}', not one")
    return text


def main() -> int:
    """Write, or compare with ``--check``."""
    stale = 0
    for page in FRAMES:
        path = ROOT / page
        now = path.read_text(encoding="utf-8")
        if now == drawn(page, now):
            continue
        if "--check" in sys.argv:
            print(f"{page} is stale; run .venv/bin/python tools/diagrams.py", file=sys.stderr)
            stale = 1
        else:
            path.write_text(drawn(page, now), encoding="utf-8")
    return stale


if __name__ == "__main__":
    sys.exit(main())
