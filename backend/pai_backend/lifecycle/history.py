"""The events that a change of a job is worth: a pure comparison of before and after.

``docs/events.md`` has every type with its fields. The browser, ``%pai status`` and audits read this one log
(architecture §4).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pai_backend.lifecycle.events import Displaced, JobEvent, Unreserved
from pai_backend.model.job import Job, NewEvent, Retries, Task


def events_between(before: Job, after: Job) -> list[NewEvent]:
    """What to append to the job's log for this change, oldest first; empty when nothing shows."""
    found: list[NewEvent] = []
    if after.attempt != before.attempt:
        found.append(_retry(before, after))
    else:
        known = {(task.role, task.index): task for task in before.tasks}
        for task in after.tasks:
            found += _of_task(known[task.role, task.index], task)
    if (before.state, before.phase, before.why) != (after.state, after.phase, after.why):
        payload: dict[str, object] = {"state": after.state.value, "phase": after.phase.value, "why": after.why}
        found.append(NewEvent("job.state", payload))
    if after.state.final and not before.state.final and after.exit is not None:
        found.append(NewEvent("job.exit", {**after.exit.model_dump(mode="json"), "state": after.state.value}))
    return found


def claims_told(before: Job, after: Job, news: Sequence[JobEvent]) -> list[NewEvent]:
    """What becomes of the job's claims on cells, as far as the news really changed them.

    The jobs do not tell which configuration was in force; the news does.
    """
    found = []
    for event in news:
        match event:
            case Displaced(uids=uids, displaced=lost, config=config):
                tasks = [task for task in before.tasks if task.uid in uids and _claims(task) is lost]
                changed = [task for task in tasks if _claims(after.task(task.uid)) is not lost]
                found += _claim("lost" if lost else "regained", changed, config)
            case Unreserved(config=config):
                found += _claim("unreserved", [old for old in before.tasks if old.reserved is not None], config)
    return found


def _claims(task: Task | None) -> bool:
    """Whether the task counts on its quota."""
    return task is not None and task.placement is not None and not task.placement.displaced


def _claim(change: str, tasks: Sequence[Task], config: int) -> list[NewEvent]:
    if not tasks:
        return []
    names = [f"{task.role}-{task.index}" for task in tasks]
    return [NewEvent("job.claim", {"change": change, "tasks": names, "config": config})]


def _of_task(old: Task, task: Task) -> list[NewEvent]:
    if old is task:
        return []
    found: list[NewEvent] = []
    if task.uid != old.uid:
        found.append(_task_retry(old, task))
    if task.kept_until is not None and (task.uid != old.uid or old.kept_until is None):
        found.append(NewEvent("task.kept", {**_name(task), "until": _time(task.kept_until)}))
    if task.released_by and not old.released_by:
        found.append(NewEvent("task.released", {**_name(task), "by": task.released_by}))
    if task.uid != old.uid or _shown(old) != _shown(task):
        found.append(NewEvent("task.state", _task(task)))
    return found


def _shown(task: Task) -> tuple[object, ...]:
    return task.state, task.phase, task.placement, task.exit


def _retry(before: Job, after: Job) -> NewEvent:
    about = {"attempt": after.attempt, "reason": after.why, **_cost(before.retries, after.retries)}
    return NewEvent("job.retry", {**about, "backoff_until": _time(after.backoff_until)})


def _task_retry(old: Task, task: Task) -> NewEvent:
    reason = old.exit.message if old.exit is not None else ""
    about = {**_name(task), "reason": reason, **_cost(old.retries, task.retries)}
    return NewEvent("task.retry", {**about, "backoff_until": _time(task.backoff_until)})


def _cost(before: Retries, after: Retries) -> dict[str, object]:
    """Under whom a retry was counted, and whether it was free."""
    grown = (
        name for name in ("user", "platform", "resource", "preempted") if getattr(after, name) > getattr(before, name)
    )
    return {"charged": next(grown, ""), "free": after.free > before.free}


def _task(task: Task) -> dict[str, object]:
    place = task.placement
    return {
        **_name(task),
        "state": task.state.value,
        "phase": task.phase.value,
        "node": place.node if place else None,
        "address": place.address if place else None,
        "ports": {label: list(ports) for label, ports in place.ports.items()} if place else {},
        "exit": task.exit.model_dump(mode="json") if task.exit else None,
    }


def _name(task: Task) -> dict[str, object]:
    return {"role": task.role, "index": task.index, "attempt": task.attempt}


def _time(at: datetime | None) -> str | None:
    return at.isoformat() if at is not None else None
