"""Text -> trace: JSON Lines, one event a line; or every fault of the text at once, with its line and column."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from pai_backend.model.errors import DocumentError, Fault
from pai_backend.model.validation import complaint, dotted, known_keys, nearest
from pai_backend.scheduling.request import OPPORTUNISTIC
from pai_backend.simulation.source import SourceLine
from pai_backend.simulation.trace import EVENTS, Arrival, Cancellation, Event, Reservation, Trace, TraceLine

MOST_FAULTS = 100
"""More faults than these are counted, not listed."""


def read_trace(text: str) -> Trace:
    """The events by time; those of one instant in the order of the text. Empty lines are passed over.

    Raises DocumentError with the place of every fault: of all of them the first :data:`MOST_FAULTS`.
    """
    lines: list[TraceLine] = []
    faults: list[Fault] = []
    for number, written in enumerate(text.split("\n"), 1):
        if not written.strip():
            continue
        source = SourceLine(number, written)
        read = _read(source)
        if isinstance(read, list):
            faults += read
        else:
            lines.append(TraceLine(read, source))
    faults += _names(lines, complete=not faults)
    if not lines and not faults:
        faults.append(Fault(message="the trace is empty", line=1, hint='A line is {"at": 0, "name": …, "vc": …, …}.'))
    raise_faults("the trace", faults)
    return Trace(tuple(sorted(lines, key=lambda line: line.event.at)))


def raise_faults(what: str, faults: list[Fault]) -> None:
    """Raise DocumentError when there are any: the first ones are listed, in order of their lines."""
    if not faults:
        return
    faults.sort(key=lambda fault: (fault.line or 0, fault.column or 0))
    count = f"{len(faults)} faults" if len(faults) > 1 else "a fault"
    message = f"{what} has {count}: {faults[0].message}"
    raise DocumentError(message, errors=faults[:MOST_FAULTS], hint=faults[0].hint)


class _Twice(ValueError):
    """A key is given twice."""


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise _Twice(f"{key} is given twice")
        found[key] = value
    return found


def _read(source: SourceLine) -> Event | list[Fault]:
    """One line as an event, or what is wrong with it."""
    try:
        value = json.loads(source.text, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        fault = source.fault("", f"this is not JSON: {error.msg}", "Write one JSON object a line.")
        return [fault.model_copy(update={"path": "", "column": error.colno})]
    except _Twice as error:
        return [source.fault("", str(error), "Leave one of them.")]
    except (ValueError, RecursionError):
        return [source.fault("", "a number is too long, or it is nested too deeply", "Write one flat object.")]
    kind = value.get("event", "arrive") if isinstance(value, dict) else "arrive"
    if not isinstance(kind, str) or kind not in EVENTS:
        return [source.fault("event", "event is not known", f"Give one of: {', '.join(EVENTS)}.")]
    try:
        event = EVENTS[kind].model_validate_json(source.text, strict=True)
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
        return [_fault(detail, EVENTS[kind], source) for detail in details]
    return list(_contradictions(event, source)) or event


def _fault(detail: ErrorDetails, model: type[Event], source: SourceLine) -> Fault:
    loc = detail["loc"]
    place = dotted(loc)
    unknown = detail["type"] == "extra_forbidden"
    like = nearest(str(loc[-1]), known_keys(model, loc)) if unknown else ""
    hint = f"Did you mean {dotted((*loc[:-1], like))}?" if like else ""
    return source.fault(place, f"{place or 'the line'} {complaint(detail)}", hint)


def _contradictions(event: Event, source: SourceLine) -> Iterator[Fault]:
    """What each field allows and the group as a whole does not."""
    if isinstance(event, Reservation) and event.begins >= event.ends:
        yield source.fault("ends", "it ends before it begins", "Give a later end.")
    if not isinstance(event, Arrival):
        return
    beside = [name for name in ("tasks", "gpus", "min") if name in event.model_fields_set] if event.members else []
    for name in beside:
        yield source.fault(name, f"{name} says again what members say", "Give members, or tasks and gpus.")
    parts = [("min", event.tasks, event.min)]
    parts += [(f"members[{number}].min", part.tasks, part.min) for number, part in enumerate(event.members)]
    for path, tasks, least in parts:
        if least is not None and least > tasks:
            yield source.fault(path, f"{path} is more than there are tasks", "Give at most the number of tasks.")
    if event.members and all(part.min == 0 for part in event.members):
        yield source.fault("members", "the group may start with no task at all", "Give a min above 0.")
    if event.pinned and event.priority == OPPORTUNISTIC:
        yield source.fault("pinned", "an opportunistic group cannot use a pinned cell", "Leave pinned or priority out.")


def _names(lines: Iterable[TraceLine], *, complete: bool) -> Iterator[Fault]:
    """Names that are given twice, or cancelled and not there; ``complete``: no line was left out for its faults."""
    arrivals: dict[str, TraceLine] = {}
    cancellations: list[tuple[Cancellation, SourceLine]] = []
    for line in lines:
        event = line.event
        if isinstance(event, Cancellation):
            cancellations.append((event, line.source))
        elif isinstance(event, Arrival) and event.name in arrivals:
            message = f"the name {event.name} is that of line {arrivals[event.name].source.number}"
            yield line.source.fault("name", message, "Give each group a name of its own.")
        elif isinstance(event, Arrival):
            arrivals[event.name] = line
    for event, source in cancellations:
        arrived = arrivals.get(event.name)
        if arrived is None and complete:
            like = nearest(event.name, arrivals)
            hint = f"Did you mean {like}?" if like else "Name a group of the trace."
            yield source.fault("name", f"no group {event.name} arrives in the trace", hint)
        elif arrived is not None and event.at < arrived.event.at:
            message = f"{event.name} is cancelled before it arrives (line {arrived.source.number})"
            yield source.fault("at", message, "Cancel it later.")
