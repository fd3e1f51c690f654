"""What a task is doing, or how it ended, by its pod: the one reading of a pod that the engine goes by.

Rules of this file. What was written down as the verdict stands, whatever the pod says later. What the pod says of its
end comes next, then what is decided here because time ran out: such an exit is ``decided``, and the caller that acts on
it writes it on the pod before telling anybody (``naming.VERDICT``), so that a restart finds the same. A reading is a
function of its arguments; ``look_at`` says when the same pod may read differently though nothing of it has changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from pydantic import ValidationError

from pai_backend.engine.base import TaskSeen, TaskState
from pai_backend.engine.bundle.record import ExitRecord
from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.objects import Object
from pai_backend.engine.kubernetes.status.exits import ended_by_itself, exit_of, put_out
from pai_backend.engine.kubernetes.status.view import PodView, view_of
from pai_backend.engine.kubernetes.status.waits import GateWait, StartTrouble, waiting
from pai_backend.model.cluster_settings import TroublePatience
from pai_backend.model.ids import TaskUid
from pai_backend.model.job import Causer, TaskExit

UNEXPLAINED: Final = "its command has ended; its node has not said why yet"
"""Between the end of a container that was asked to end and the final phase of its pod."""
EXPLAINED: Final = timedelta(seconds=10)
"""How long after such an end an event may still come that tells why, where the pod does not."""


@dataclass(frozen=True)
class NodeAway:
    """A node that is not ready, or no longer part of the cluster."""

    since: datetime
    reason: str


@dataclass(frozen=True)
class Around:
    """What is known beside the pod itself."""

    now: datetime
    patience: TroublePatience
    node: NodeAway | None = None
    """Its node, when that is away."""
    trouble: StartTrouble | None = None
    """That of the last reading; patience counts on from there."""
    inside: ExitRecord | None = None
    """What the launcher answered when it was asked (``look_inside``)."""
    gate: GateWait | None = None
    """What it waits for while it has the gate of its gang."""
    events: Sequence[Object] = ()
    """Events of the pod; none are needed, but they know more of what goes on."""


@dataclass(frozen=True)
class PodReading:
    """What a pod says."""

    seen: TaskSeen
    decided: bool = False
    """The exit was decided here: write it down on the pod, then tell, then delete the pod."""
    look_at: datetime | None = None
    """When to read it again, if nothing of it has changed by then."""
    look_inside: bool = False
    """Its command may have ended while its container stays: ask the launcher for its record, and read again."""
    trouble: StartTrouble | None = None
    """To be handed in at the next reading."""


def read_task(pod: Object, around: Around) -> PodReading:
    """The reading of a pod. Raises NotATask when it is none of a task."""
    view = view_of(pod)
    verdict = verdict_of(view)
    if verdict is not None:
        return PodReading(TaskSeen(view.uid, TaskState.EXITED, verdict, view.task.running_since))
    if _is_over(view):
        return _over(view, around)
    if around.inside is not None:
        record = around.inside
        return PodReading(TaskSeen(view.uid, TaskState.EXITED, record.exit(), record.began))
    if around.node is not None:
        return _on_a_node_away(view, around, around.node)
    if view.task.ended is not None:
        seen = TaskSeen(view.uid, TaskState.RUNNING, since=view.task.ended.started_at, message=UNEXPLAINED)
        return PodReading(seen)
    if view.task.running_since is not None:
        return _running(view)
    return _waiting(view, around)


def vanished(uid: TaskUid, since: datetime | None, now: datetime) -> TaskSeen:
    """A task whose pod is no longer there, though its exit was not recorded: another client took its finalizer off."""
    exit_ = TaskExit(reason="vanished", message="its pod was removed by another client", causer=Causer.PLATFORM, at=now)
    return TaskSeen(uid, TaskState.EXITED, exit_, since)


def verdict_of(view: PodView) -> TaskExit | None:
    """The exit that was written down on the pod."""
    text = view.annotations.get(naming.VERDICT)
    if text is None:
        return None
    try:
        return TaskExit.model_validate_json(text)
    except ValidationError:  # another client may have changed it: the pod speaks for itself then
        return None


def _is_over(view: PodView) -> bool:
    """Whether the pod has ended and says why, so far as it ever will.

    A kubelet that evicts a pod, or shuts its node down, reports the end of the container first and the reason with the
    final phase. Only a command that ended by itself needs no such reason. A pod without a node is over when deleted.
    """
    ended = view.task.ended
    if view.over or (view.deleted_at is not None and (ended is not None or not view.node)):
        return True
    return ended is not None and ended_by_itself(ended)


def _over(view: PodView, around: Around) -> PodReading:
    """Its end, as the pod tells it; what the pod does not tell, an event may, which comes at about the same time."""
    exit_, since = exit_of(view)
    if exit_.unexplained:
        if (told := put_out(exit_, around.events)) is not None:
            return PodReading(TaskSeen(view.uid, TaskState.EXITED, told, since), decided=True)
        if exit_.at is not None and around.now < (until := exit_.at + EXPLAINED):
            seen = TaskSeen(view.uid, TaskState.RUNNING, since=since, message=UNEXPLAINED)
            return PodReading(seen, look_at=until)
    return PodReading(TaskSeen(view.uid, TaskState.EXITED, exit_, since))


def _on_a_node_away(view: PodView, around: Around, node: NodeAway) -> PodReading:
    """It may come back, and the task with it; what was asked to end waits no longer than that."""
    until = node.since + timedelta(seconds=around.patience.node_s)
    state = TaskState.RUNNING if view.task.running_since is not None else TaskState.STARTING
    if around.now < until:
        seen = TaskSeen(
            view.uid, state, since=view.task.running_since, message=f"its node is unavailable ({node.reason})"
        )
        return PodReading(seen, look_at=until, trouble=around.trouble)
    asked = naming.STOP in view.annotations
    reason, causer = ("stopped", Causer.USER) if asked else ("lost", Causer.PLATFORM)
    message = f"its node {view.node} was unavailable for {around.patience.node_s} s ({node.reason})"
    exit_ = TaskExit(reason=reason, message=message, causer=causer, at=until)
    return PodReading(TaskSeen(view.uid, TaskState.EXITED, exit_, view.task.running_since), decided=True)


def _running(view: PodView) -> PodReading:
    """A container that runs. That of a task which is kept says that its command has ended by not being ready.

    Nor is it ready before it was asked for the first time, so this is a hint to look inside and nothing more.
    """
    message = "asked to end" if view.deleted_at is not None else ""
    seen = TaskSeen(view.uid, TaskState.RUNNING, since=view.task.running_since, message=message)
    kept = naming.KEEP in view.annotations and view.deleted_at is None
    return PodReading(seen, look_inside=kept and not view.task.ready)


def _waiting(view: PodView, around: Around) -> PodReading:
    wait = waiting(view, around.patience, around.events, around.gate)
    seen = TaskSeen(view.uid, wait.state, message=wait.message)
    if wait.trouble is None or view.deleted_at is not None:
        return PodReading(seen)
    trouble = replace(wait.trouble, since=_since(wait.trouble, around))
    until = trouble.since + trouble.patience if trouble.since is not None else around.now
    if around.now < until:
        return PodReading(seen, look_at=until, trouble=trouble)
    exit_ = TaskExit(reason=trouble.reason, message=trouble.message, causer=trouble.causer, at=around.now)
    return PodReading(TaskSeen(view.uid, TaskState.EXITED, exit_), decided=True, trouble=trouble)


def _since(trouble: StartTrouble, around: Around) -> datetime:
    """Since when this kind of trouble lasts: by the pod, or from when it was first seen."""
    if trouble.since is not None:
        return trouble.since
    before = around.trouble
    if before is not None and before.kind == trouble.kind and before.since is not None:
        return before.since
    return around.now
