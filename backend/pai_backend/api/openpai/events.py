"""A job's history in OpenPAI's shape, which is that of Kubernetes events."""

from __future__ import annotations

from pai_backend.api.openpai.wire import JobEvent
from pai_backend.model.ids import task_uid
from pai_backend.model.job import Event, Job, State

NORMAL, WARNING = "Normal", "Warning"
_SENTENCES = {
    "job.submitted": "The job is submitted.",
    "job.stop-requested": "The job is asked to stop.",
    "job.restart-requested": "The job is restarted.",
}


def shown(event: Event, job: Job) -> JobEvent:
    """One event. ``reason`` is the type as one word, ``job.state`` as ``JobState``, and for tasks with their state."""
    payload = event.payload
    role, index, run = payload.get("role"), payload.get("index"), payload.get("attempt")
    is_of_task = isinstance(role, str) and isinstance(index, int)
    uid = _task_uid(job, role, index, run) if is_of_task and event.type.startswith("task.") else None
    time = event.at.isoformat().replace("+00:00", "Z")
    node = payload.get("node")
    return JobEvent(
        uid=f"{event.job}-{event.seq}",
        framework_name=job.id,
        pod_uid=uid,
        taskrole_name=str(role) if is_of_task else None,
        task_name=f"{role}-{index}" if is_of_task else None,
        task_index=index if isinstance(index, int) else None,
        type=WARNING if _is_bad(event) else NORMAL,
        reason=_reason(event),
        message=_message(event),
        first_timestamp=time,
        last_timestamp=time,
        count=1,
        source_component="jupyter-pai",
        source_host=str(node) if node else None,
    )


def _task_uid(job: Job, role: object, index: object, run: object) -> str | None:
    names = [each.name for each in job.spec.task_roles]
    if role not in names or not isinstance(index, int) or not isinstance(run, int):
        return None
    return task_uid(job.uid, names.index(str(role)), index, run)


def _is_bad(event: Event) -> bool:
    """Whether it needs attention: failures, retries, tasks kept after a failure."""
    return event.payload.get("state") == State.FAILED.value or event.type in ("job.retry", "task.retry", "task.kept")


def _reason(event: Event) -> str:
    words = event.type.replace(".", "-").split("-")
    name = "".join(word.capitalize() for word in words if word != "state")
    state = event.payload.get("state")
    return name + str(state).capitalize() if isinstance(state, str) else name


def _message(event: Event) -> str:
    """The sentence of an event: what it says itself, else its state in words."""
    payload = event.payload
    exit_ = payload.get("exit")
    if isinstance(exit_, dict) and exit_.get("message"):
        return str(exit_["message"])
    for field in ("message", "why", "reason"):
        if payload.get(field):
            return str(payload[field])
    if event.type in _SENTENCES:
        return _SENTENCES[event.type]
    return str(payload.get("phase", ""))
