"""What a task's Secret says of the task in its annotations: asked to end, forgotten.

The Secret comes before the pod and outlives it: it is what makes a start, a stop and a forgetting final. Rules:

1. A start makes the Secret, then the pod. One that finds the Secret there, made by an earlier try, looks for the pod.
2. A stop writes ``stop`` before it looks for the pod, and makes the Secret when there is none. A pod that is made after
   that, by a controller that slept, is ended by the watching process: it was not expected there.
3. A Secret without a pod is one of a start that was cut off, unless events tell of a pod: scheduler and kubelet report
   each. Then another client has removed the pod, and the task must not run a second time.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pydantic import ValidationError

from pai_backend.engine.base import TaskSeen, TaskState
from pai_backend.engine.bundle.host_names import label_value
from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.objects import Object, metadata, namespace_of
from pai_backend.engine.kubernetes.status.view import part, time_of
from pai_backend.model.ids import TaskUid, job_of
from pai_backend.model.job import Causer, TaskExit


@dataclass(frozen=True)
class Marks:
    """The annotations of a task's Secret."""

    uid: TaskUid
    stop: str = ""
    """When it was asked to end, as it is written; empty: it was not."""
    forgotten: datetime | None = None
    owner: tuple[str, str] | None = None
    """Name and uid of the attempt's ConfigMap; None for a task that was stopped before it was started."""
    namespace: str = ""
    database: str = ""
    """Identity of the database that the task belongs to; empty where it was not recorded."""
    exit: TaskExit | None = None
    """How it ended, of a forgotten task whose end was known."""

    @property
    def final(self) -> bool:
        """Whether a start has nothing more to do."""
        return bool(self.stop or self.forgotten)


def marks_of(secret: Object) -> Marks | None:
    """The marks; None when the Secret is no task's."""
    about = part(metadata(secret), "annotations")
    uid = about.get(naming.TASK)
    if not isinstance(uid, str):
        return None
    owners = [each for each in metadata(secret).get("ownerReferences") or () if each.get("kind") == "ConfigMap"]
    forgotten = about.get(naming.FORGOTTEN)
    return Marks(
        uid=TaskUid(uid),
        stop=str(about.get(naming.STOP) or ""),
        # One that cannot be read counts as written when the world began: it is forgotten all the same.
        forgotten=None if forgotten is None else time_of(forgotten) or time_of("1970-01-01T00:00:00Z"),
        owner=(str(owners[0]["name"]), str(owners[0]["uid"])) if owners else None,
        namespace=namespace_of(secret),
        database=str(part(metadata(secret), "labels").get(naming.DATABASE) or ""),
        exit=_exit_of(about.get(naming.VERDICT)) if forgotten is not None else None,
    )


def _exit_of(text: object) -> TaskExit | None:
    """The exit as it was written; None where it cannot be read."""
    try:
        return TaskExit.model_validate_json(text) if isinstance(text, str) else None
    except ValidationError:
        return None


def recalled(marks: Marks) -> TaskSeen | None:
    """The end of a forgotten task, once more; None for one that is not forgotten."""
    if marks.forgotten is None:
        return None
    message = "it ended; its exit status is lost"
    unknown = TaskExit(reason="lost", message=message, causer=Causer.PLATFORM, at=marks.forgotten)
    return TaskSeen(marks.uid, TaskState.EXITED, marks.exit or unknown, message=(marks.exit or unknown).message)


def tombstone(uid: TaskUid, instance: str, namespace: str, asked: str) -> Object:
    """The Secret of a task that was asked to end, at that time, before anybody started it; it has no owner."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": naming.task_name(uid),
            "namespace": namespace,
            "labels": {
                **naming.ours(instance),
                naming.JOB: label_value(job_of(uid)),
                naming.TASK: label_value(uid),
                naming.COMPONENT: naming.Component.TASK,
            },
            "annotations": {naming.TASK: uid, naming.STOP: asked},
        },
        "type": "jupyter-pai/plan",
    }


def never_started(marks: Marks, now: datetime) -> TaskSeen:
    """The state of a task that was asked to end and has no pod; ``now`` where the time cannot be read."""
    at = time_of(marks.stop) or now
    exit_ = TaskExit(reason="stopped", message="stopped before it was started", causer=Causer.USER, at=at)
    return TaskSeen(marks.uid, TaskState.EXITED, exit_)


def rfc3339(time: datetime) -> str:
    """A time as the API writes it: whole seconds of UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")
