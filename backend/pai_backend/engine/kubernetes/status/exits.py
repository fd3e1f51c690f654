"""How a task ended, judged by its pod. What the cluster did to it comes before what its exit code suggests.

The sources of each rule: Kubernetes documentation, "Pod Lifecycle", "Disruptions" (conditions of the pod),
"Node-pressure Eviction", "Taints and Tolerations"; the kubelet's words as they were recorded in tests/data/kubernetes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pai_backend.engine.bundle import layout
from pai_backend.engine.bundle.record import ExitRecord, record_of
from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.objects import Object
from pai_backend.engine.kubernetes.status.view import ContainerEnded, PodContainer, PodView, time_of, words
from pai_backend.model.job import Causer, TaskExit

KILLED: Final = 128 + 9
NOT_EXECUTED: Final = frozenset({"StartError", "ContainerCannotRun", "RunContainerError"})
"""Reasons of a container that ended without having begun."""
OUT_OF_SIGHT: Final = frozenset({"ContainerStatusUnknown", "Unknown"})
"""Reasons of a container whose end was not seen: after a power cut, or one removed behind the kubelet's back."""
LOST_PODS: Final = frozenset({"NodeLost", "Terminated", "Shutdown"})
"""Reasons of a pod whose node went away or down under it."""


@dataclass(frozen=True)
class EndCause:
    """Why something ended that did not end by itself."""

    reason: str
    message: str
    causer: Causer = Causer.PLATFORM


def exit_of(view: PodView) -> tuple[TaskExit, datetime | None]:
    """The exit of a task whose container or pod is over, and when its command had started; None: it never did."""
    ended = view.task.ended
    record = record_of(ended.message, ended.code) if ended is not None else None
    began = _began(ended, record) or view.task.running_since  # the latter where its node reported no end
    at = _ended_at(view, record)
    cause = None if record is not None and record.by_itself else taken_away(view)
    if cause is None and ended is None:
        cause = _never_began(view)
    if cause is not None:
        code, signal = _numbers(ended, record)
        how = f"; {_how(code, signal)}" if ended is not None else ""
        return (
            TaskExit(
                code=code,
                signal=signal,
                reason=cause.reason,
                message=cause.message + how,
                causer=cause.causer,
                at=at,
            ),
            began,
        )
    assert ended is not None  # _never_began has a cause for every view without one
    return _by_itself(ended, record, at), began


def taken_away(view: PodView) -> EndCause | None:
    """What ended it from outside; None when nothing did."""
    stop = view.annotations.get(naming.STOP)
    if stop is not None and view.deleted_at is not None and not _ended_before(view, time_of(stop)):
        return EndCause("stopped", "stopped on request", Causer.USER)
    if view.task.ended is not None and _out_of_memory(view.task.ended):
        return None  # a later deletion has not ended it
    if view.reason == "Evicted":
        return _evicted(view.message)
    if view.reason == "DeadlineExceeded":
        return EndCause("deadline-exceeded", _said("the cluster ended it", view.message), Causer.USER)
    if view.reason in LOST_PODS:
        return EndCause("lost", _said("its node was lost", view.message))
    if view.reason == "Preempting" or view.disruption == "PreemptionByScheduler":
        return EndCause("preempted", _said("the cluster preempted it for another pod", _why(view)), Causer.RESOURCE)
    if view.disruption == "DeletionByPodGC":
        return EndCause("lost", _said("its node is no longer part of the cluster", _why(view)))
    if view.disruption in ("EvictionByEvictionAPI", "DeletionByTaintManager"):
        return EndCause("drained", _said("its node was drained", _why(view)))
    if view.disruption == "TerminationByKubelet":
        return _by_its_kubelet(_why(view))
    if view.disruption:  # a reason that a later Kubernetes has, or an operator's own
        return EndCause("drained", _said("the cluster ended it", f"{view.disruption}: {_why(view)}"))
    if view.task.ended is not None and view.task.ended.reason in OUT_OF_SIGHT:
        return EndCause("lost", _said("its node lost track of it", words(view.task.ended.message)))
    if view.deleted_at is not None and stop is None and not view.reason:
        return EndCause("vanished", "its pod was deleted by another client")
    return None


def _evicted(said: str) -> EndCause:
    """By the kubelet's words, which tell a limit of the pod itself from a node that runs short."""
    if "exceed" in said and "low on resource" not in said:
        return EndCause("storage-exceeded", _said("it filled more disk than it may", said), Causer.USER)
    return EndCause("evicted", _said("its node evicted it", said), Causer.RESOURCE)


def _by_its_kubelet(said: str) -> EndCause:
    """What a kubelet ended without giving the pod a reason, by the message of the condition.

    Where the container exits with 0 the pod never has one: its phase is Succeeded.
    """
    if "shutdown" in said:
        return EndCause("lost", _said("its node was lost", said))
    if "critical pod" in said:
        return EndCause("preempted", _said("the cluster preempted it for another pod", said), Causer.RESOURCE)
    return _evicted(said)


def put_out(found: TaskExit, events: Sequence[Object]) -> TaskExit | None:
    """The exit of one that its kubelet put out, where only an event says so; None without such an event.

    Where a pod fills more disk than it may and its command exits with 0 when it is told to end, nothing else is left of
    that: recorded as ``disk-limit-obeyed``.
    """
    said = next((str(event.get("message")) for event in events if event.get("reason") == "Evicted"), None)
    if said is None:
        return None
    cause = _evicted(words(said))
    message = f"{cause.message}; {_how(found.code, found.signal)}"
    return TaskExit(
        code=found.code, signal=found.signal, reason=cause.reason, message=message, causer=cause.causer, at=found.at
    )


def ended_by_itself(ended: ContainerEnded) -> bool:
    """Whether the launcher recorded that the command ended without having been asked to."""
    record = record_of(ended.message, ended.code)
    return record is not None and record.by_itself


def _ended_before(view: PodView, asked: datetime | None) -> bool:
    """Whether the task is known to have ended before it was asked to. Times of the API have no fractions."""
    ended = view.task.ended
    return ended is not None and ended.finished_at is not None and asked is not None and ended.finished_at < asked


def _out_of_memory(ended: ContainerEnded) -> bool:
    """Whether the kernel killed the whole of it: a container says so, too, when it killed a process of it."""
    return ended.reason == "OOMKilled" and ended.code == KILLED


def _never_began(view: PodView) -> EndCause:
    """Why a pod is over whose task never had a container: an earlier container failed, or its node refused it."""
    failed = next((each for each in view.inits if each.ended is not None and each.ended.code), None)
    if failed is not None and failed.ended is not None:
        return _of_init(failed, failed.ended)
    said = f"{view.reason}: {view.message}" if view.reason else view.message
    return EndCause("refused", _said(f"the node {view.node or 'chosen for it'} did not take it", said), Causer.RESOURCE)


def _of_init(container: PodContainer, ended: ContainerEnded) -> EndCause:
    lines = [line for line in ended.message.splitlines() if line.strip()]
    last = words(lines[-1].removeprefix("pai: ")) if lines else f"it exited with status {ended.code}"
    if container.name == layout.INPUTS_CONTAINER:
        if ended.reason == "OOMKilled":
            return EndCause("out-of-memory", "fetching its inputs took more memory than it may use", Causer.USER)
        return EndCause("input-failed", last, Causer.USER)
    return EndCause("start-failed", f"the runtime could not be put into its pod: {last}")


def _by_itself(ended: ContainerEnded, record: ExitRecord | None, at: datetime) -> TaskExit:
    code, signal = _numbers(ended, record)
    how = _how(code, signal)
    reason = "exited" if signal is None else "signalled"
    if ended.reason in NOT_EXECUTED:
        message = _said("its container could not be started", words(ended.message))
        return TaskExit(reason="start-failed", message=message, causer=Causer.PLATFORM, at=at)
    if _out_of_memory(ended):
        message = f"{how} while the kernel killed processes here for lack of memory"
        return TaskExit(code=code, signal=signal, reason="out-of-memory", message=message, at=at)
    if record is not None and not record.by_itself and code == 0:
        # Many programs end well when they are told to end: this is no result of theirs. A user inside the task may do
        # that, and so does an administrator who turns a node off without its kubelet.
        message = f"it was asked to end, and the cluster gives no reason; {how}"
        return TaskExit(code=code, reason="lost", message=message, causer=Causer.PLATFORM, at=at, unexplained=True)
    if record is None or not record.by_itself:
        # The launcher was asked to end, and the cluster does not say so: a user inside the task may do that.
        return TaskExit(code=code, signal=signal, reason=reason, message=how, at=at)
    found = record.exit().model_copy(update={"at": at, "message": record.message or how})
    if ended.reason == "OOMKilled" and ended.code:
        message = f"{found.message}; the kernel killed a process of it for lack of memory"
        return found.model_copy(update={"message": message})
    return found


def _numbers(ended: ContainerEnded | None, record: ExitRecord | None) -> tuple[int | None, int | None]:
    """Exit status and signal. A launcher always leaves a record; one that left none was killed itself."""
    if ended is None or ended.reason in NOT_EXECUTED | OUT_OF_SIGHT:
        return None, None
    if record is not None:
        return record.code, record.signal
    if ended.signal is not None or ended.code > 128:
        return None, ended.signal or ended.code - 128
    return ended.code, None


def _began(ended: ContainerEnded | None, record: ExitRecord | None) -> datetime | None:
    if record is not None:
        return record.began
    return None if ended is None or ended.reason in NOT_EXECUTED else ended.started_at


def _ended_at(view: PodView, record: ExitRecord | None) -> datetime:
    """When it ended, the same whenever it is asked: by the record, the kubelet, or else what the API server knows."""
    if record is not None:
        return record.ended
    ended = view.task.ended
    inits = [each.ended.finished_at for each in view.inits if each.ended is not None and each.ended.code]
    changes = [condition.since for condition in view.conditions.values()]
    for times in ([ended.finished_at if ended else None], inits, changes, [view.deleted_at], [view.created_at]):
        known = [time for time in times if time is not None]
        if known:
            return max(known)
    raise ValueError(f"the pod of {view.uid} has no time in it, not even of its creation")


def _why(view: PodView) -> str:
    condition = view.conditions.get("DisruptionTarget")
    return condition.message if condition is not None and condition.message else view.message


def _how(code: int | None, signal: int | None) -> str:
    if signal is not None:
        return f"ended by signal {signal}"
    return "its exit status is not known" if code is None else f"exited with status {code}"


def _said(what: str, said: str) -> str:
    return f"{what} ({said.rstrip('. ')})" if said else what
