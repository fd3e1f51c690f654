"""The events that a change of a job is worth: a pure comparison of before and after.

Types: ``job.state`` (state, phase, why), ``job.retry`` (attempt, reason, charged), ``job.exit``,
``task.state`` (role, index, attempt, state, phase, node, ports, exit). The browser, ``%pai status``
and audits read this one log (architecture §4).
"""

from __future__ import annotations

from pai_backend.model.job import Job, NewEvent, Task


def events_between(before: Job, after: Job) -> list[NewEvent]:
    """What to append to the job's log for this change, oldest first; empty when nothing shows."""
    found: list[NewEvent] = []
    known = {task.uid: task for task in before.tasks}
    if after.attempt != before.attempt:
        found.append(_retry(before, after))
    for task in after.tasks:
        old = known.get(task.uid)
        if after.attempt == before.attempt and old is not None and _shown(old) != _shown(task):
            found.append(NewEvent("task.state", _task(task)))
    if (before.state, before.phase, before.why) != (after.state, after.phase, after.why):
        payload: dict[str, object] = {"state": after.state.value, "phase": after.phase.value, "why": after.why}
        found.append(NewEvent("job.state", payload))
    if after.state.final and not before.state.final and after.exit is not None:
        found.append(NewEvent("job.exit", {**after.exit.model_dump(mode="json"), "state": after.state.value}))
    return found


def _shown(task: Task) -> tuple[object, ...]:
    return task.state, task.phase, task.placement, task.exit


def _retry(before: Job, after: Job) -> NewEvent:
    verdict = before.verdict
    return NewEvent(
        "job.retry",
        {
            "attempt": after.attempt,
            "reason": after.why,
            "charged": verdict.causer.value if verdict is not None else "",
            "backoff_until": after.backoff_until.isoformat() if after.backoff_until else None,
        },
    )


def _task(task: Task) -> dict[str, object]:
    place = task.placement
    return {
        "role": task.role,
        "index": task.index,
        "attempt": task.attempt,
        "state": task.state.value,
        "phase": task.phase.value,
        "node": place.node if place else None,
        "address": place.address if place else None,
        "ports": {label: list(ports) for label, ports in place.ports.items()} if place else {},
        "exit": task.exit.model_dump(mode="json") if task.exit else None,
    }
