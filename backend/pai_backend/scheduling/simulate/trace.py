"""Text -> arrivals: JSON Lines, one group a line; or every fault of the text at once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pydantic import Field, ValidationError

from pai_backend.model.base import Model
from pai_backend.model.errors import DocumentError, Fault
from pai_backend.scheduling.core.group import HIGHEST, OPPORTUNISTIC, Group, Member
from pai_backend.validation import complaint, dotted, known_keys, nearest

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

MOST_SECONDS = 10 * 365 * 86_400
"""The latest arrival and the longest run."""
MOST_TASKS = 1_000_000
MOST_FAULTS = 100
"""More faults than these are counted, not listed."""


class Arrival(Model):
    """A line of a trace: a group of equal tasks that arrives at a time, and runs for a time once it has started."""

    at: float = Field(ge=0, le=MOST_SECONDS, description="Seconds from the beginning of the trace.")
    name: str = Field(min_length=1, max_length=255, description="Unique in the trace.")
    vc: str = Field(min_length=1, description="Its virtual cluster.")
    duration: float = Field(gt=0, le=MOST_SECONDS, description="Seconds it runs when nothing ends it.")
    user: str = ""
    tasks: int = Field(default=1, ge=1, le=MOST_TASKS)
    gpus: int = Field(default=1, ge=1, le=MOST_TASKS, description="Leaf cells of each task.")
    priority: int = Field(default=10, ge=OPPORTUNISTIC, le=HIGHEST, description="-1 is opportunistic.")
    type: str = Field(default="", description="The leaf type it asks for; empty for any.")
    pinned: str = Field(default="", description="The pinned cell it uses instead of the quota.")
    within: str = Field(default="", description="The cell type of which one cell must contain the whole group.")
    lazy: bool = Field(default=False, description="It may be turned opportunistic instead of being ended.")

    @property
    def group(self) -> Group:
        """What is asked of the scheduler."""
        return Group(
            self.name,
            self.vc,
            (Member(self.tasks, self.gpus),),
            self.priority,
            self.type,
            self.pinned,
            self.lazy,
            self.within,
        )


def read_trace(text: str) -> tuple[Arrival, ...]:
    """The arrivals by time; those of one instant in the order of the text. Empty lines are passed over.

    Raises DocumentError with the line of every fault: of all of them the first :data:`MOST_FAULTS`.
    """
    arrivals: list[Arrival] = []
    faults: list[Fault] = []
    lines: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        read = _read(line, number)
        if isinstance(read, list):
            faults += read
        elif read.name in lines:
            message = f"the name {read.name} is that of line {lines[read.name]}"
            faults.append(Fault(path="$.name", message=message, line=number, hint="Give each group a name of its own."))
        else:
            lines[read.name] = number
            arrivals.append(read)
    if not arrivals and not faults:
        faults.append(Fault(message="the trace is empty", line=1, hint='A line is {"at": 0, "name": …, "vc": …, …}.'))
    if faults:
        count = f"{len(faults)} faults" if len(faults) > 1 else "a fault"
        raise DocumentError(f"the trace has {count}: {faults[0].message}", errors=faults[:MOST_FAULTS])
    return tuple(sorted(arrivals, key=lambda arrival: arrival.at))


class _Twice(ValueError):
    """A key is given twice."""


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise _Twice(f"{key} is given twice")
        found[key] = value
    return found


def _read(line: str, number: int) -> Arrival | list[Fault]:
    """One line as an arrival, or what is wrong with it."""
    try:
        value = json.loads(line, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        message = f"this is no JSON: {error.msg}"
        return [Fault(message=message, line=number, column=error.colno, hint="Write one JSON object a line.")]
    except _Twice as error:
        return [Fault(message=str(error), line=number, hint="Leave one of them.")]
    except (ValueError, RecursionError):
        hint = "Write one flat JSON object a line."
        return [Fault(message="a number is too long, or it is nested too deeply", line=number, hint=hint)]
    try:
        return Arrival.model_validate(value, strict=True)
    except ValidationError as error:
        return [_fault(detail, number) for detail in error.errors(include_url=False, include_input=False)]


def _fault(detail: ErrorDetails, number: int) -> Fault:
    place = dotted(detail["loc"])
    like = nearest(place, known_keys(Arrival, detail["loc"])) if detail["type"] == "extra_forbidden" else ""
    hint = f"Did you mean {like}?" if like else ""
    message = f"{place or 'the line'} {complaint(detail)}"
    return Fault(path=f"$.{place}" if place else "$", message=message, line=number, hint=hint)
