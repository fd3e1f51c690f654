"""What a pod is waiting for before its task runs, in plain words, and how long that may go on.

Most of it passes by itself, and a kubelet tries again for ever: an image may be pushed a minute late. So a trouble has
patience, after which the task is given up with the kubelet's own words; only what can never become right has none.
Source: the kubelet's reasons (kubernetes v1.34, pkg/kubelet/images/types.go, pkg/kubelet/container/sync_result.go),
and "Pod Lifecycle" of the documentation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from pai_backend.engine.base import TaskState
from pai_backend.engine.bundle import layout
from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.objects import Object
from pai_backend.engine.kubernetes.status.view import PodContainer, PodView, time_of, words
from pai_backend.model.cluster_settings import TroublePatience
from pai_backend.model.job import Causer

PULL_TROUBLES: Final = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "ImageInspectError",
        "RegistryUnavailable",
        "SignatureValidationFailed",
        "ErrImageNeverPull",
        "InvalidImageName",
    }
)
NEVER_RIGHT: Final = frozenset({"ErrImageNeverPull", "InvalidImageName"})
START_TROUBLES: Final = frozenset(
    {
        "CreateContainerConfigError",
        "CreateContainerError",
        "PreCreateHookError",
        "PreStartHookError",
        "PostStartHookError",
        "RunContainerError",
        "CrashLoopBackOff",
    }
)
USERS: Final = ("runAsNonRoot", "non-numeric user")
"""Parts of the kubelet's words where the image does not go with the cluster's rules."""


@dataclass(frozen=True)
class StartTrouble:
    """What keeps a task from running."""

    kind: str
    """Of one kind patience is counted on, whatever the words: ErrImagePull and ImagePullBackOff take turns."""
    reason: str
    """That of the exit when patience ends."""
    message: str
    causer: Causer
    patience: timedelta
    since: datetime | None = None
    """Since when, where the pod says so; else it counts from when it was first seen."""


@dataclass(frozen=True)
class StartWait:
    """What a task that does not run yet is doing."""

    state: TaskState
    message: str
    trouble: StartTrouble | None = None


class GateTrouble(StrEnum):
    """Why a pod of a gang that is whole still has its gate."""

    ROOM = "room"
    """Its node has no room now."""
    HALF = "half"
    """The same, while others of the gang have lost their gates: a process was killed in between."""
    KEPT = "gate"
    """The cluster refuses to take the gate off."""
    SPLIT = "split"
    """The same, while others of the gang have lost their gates."""


@dataclass(frozen=True)
class GateWait:
    """What a pod of a gang waits for that still has its gate; without a trouble, for its peers."""

    message: str
    trouble: GateTrouble | None = None


def waiting(
    view: PodView, patience: TroublePatience, events: Sequence[Object] = (), gate: GateWait | None = None
) -> StartWait:
    """What a pod waits for whose task has neither begun nor ended. ``events`` are those of the pod that are known."""
    if gate is not None and not view.node:
        return _gated(gate, patience)
    unplaced = _unplaced(view, patience)
    if unplaced is not None:
        return unplaced
    for container in (*view.inits, view.task):
        trouble = _trouble(container, patience)
        if trouble is not None:
            state = TaskState.PULLING if trouble.kind == "pull" else TaskState.STARTING
            return StartWait(state, trouble.message, trouble)
    return _at_work(view, patience, events)


def _gated(gate: GateWait, patience: TroublePatience) -> StartWait:
    """Before its gate is taken off. It holds nothing, so it may wait, unless others of its gang have begun."""
    if gate.trouble is None:
        return StartWait(TaskState.STARTING, gate.message)
    reason, causer, seconds = {
        GateTrouble.ROOM: ("refused", Causer.RESOURCE, patience.schedule_s),
        GateTrouble.HALF: ("refused", Causer.RESOURCE, min(patience.gang_s, patience.schedule_s)),
        GateTrouble.KEPT: ("start-failed", Causer.PLATFORM, patience.start_s),
        GateTrouble.SPLIT: ("start-failed", Causer.PLATFORM, min(patience.schedule_s, patience.start_s)),
    }[gate.trouble]
    trouble = StartTrouble(gate.trouble, reason, gate.message, causer, timedelta(seconds=seconds))
    return StartWait(TaskState.STARTING, gate.message, trouble)


def _unplaced(view: PodView, patience: TroublePatience) -> StartWait | None:
    """Before the pod has its node. The scheduler's refusal is its view of now: it tries again at each change."""
    scheduled = view.conditions.get("PodScheduled")
    if view.node or (scheduled is not None and scheduled.true):
        return None
    if scheduled is None or scheduled.reason != "Unschedulable":
        return StartWait(TaskState.STARTING, "waiting for the cluster's scheduler")
    if view.nominated:
        return StartWait(TaskState.STARTING, "the cluster's scheduler makes room for it: pods of lower priority end")
    of_gang = naming.GANG in view.annotations
    trouble = StartTrouble(
        "schedule",
        "refused",
        f"the cluster's scheduler does not put it on its node ({scheduled.message.rstrip('. ')})",
        Causer.RESOURCE,
        timedelta(seconds=min(patience.gang_s, patience.schedule_s) if of_gang else patience.schedule_s),
        # Of a pod that had a gate the condition was False since it was made, for another reason.
        None if of_gang else scheduled.since,
    )
    return StartWait(TaskState.STARTING, trouble.message, trouble)


def _trouble(container: PodContainer, patience: TroublePatience) -> StartTrouble | None:
    said = f"{container.reason}: {container.message}" if container.message else container.reason
    own = container.name == layout.TASK_CONTAINER
    if container.reason in PULL_TROUBLES:
        pulls = timedelta(seconds=0 if container.reason in NEVER_RIGHT else patience.pull_s)
        if own:
            return StartTrouble(
                "pull", "image-pull-failed", f"its image cannot be fetched ({said})", Causer.USER, pulls
            )
        message = f"the image of the {container.name} container, which is the platform's, cannot be fetched ({said})"
        return StartTrouble("pull", "start-failed", message, Causer.PLATFORM, pulls)
    if container.reason in START_TROUBLES:
        causer = Causer.USER if own and any(part in container.message for part in USERS) else Causer.PLATFORM
        message = f"its container cannot be made ({said})" if own else f"its pod cannot be prepared ({said})"
        return StartTrouble("start", "start-failed", message, causer, timedelta(seconds=patience.start_s))
    return None


def _at_work(view: PodView, patience: TroublePatience, events: Sequence[Object]) -> StartWait:
    """No trouble that a container tells of: what the kubelet is doing, as far as it says."""
    sandbox = view.conditions.get("PodReadyToStartContainers")
    if sandbox is not None and not sandbox.true:
        return _without_sandbox(view, patience, events)
    inputs = next((each for each in view.inits if each.name == layout.INPUTS_CONTAINER), None)
    if inputs is not None and inputs.running_since is not None:
        names = view.annotations.get(naming.INPUTS, "")
        return StartWait(TaskState.PULLING, f"fetching {names}" if names else "making its output directory")
    pulling = next((word for word in map(_pulling, newest_first(events)) if word is not None), "")
    if pulling:
        return StartWait(TaskState.PULLING, pulling)
    return StartWait(TaskState.STARTING, "its container is being made")


def _without_sandbox(view: PodView, patience: TroublePatience, events: Sequence[Object]) -> StartWait:
    """The pod's network and volumes are being made, of whose troubles only events tell."""
    warnings = [event for event in newest_first(events) if event.get("type") == "Warning"]
    said = f"{warnings[0].get('reason')}: {words(str(warnings[0].get('message')))}" if warnings else ""
    message = "its pod's network and volumes are being made" + (f" ({said.rstrip('. ')})" if said else "")
    trouble = StartTrouble(
        "pod", "start-failed", message, Causer.PLATFORM, timedelta(seconds=patience.pod_s), view.started_at
    )
    return StartWait(TaskState.STARTING, message, trouble)


def newest_first(events: Sequence[Object]) -> list[Object]:
    """Events by the time they were last seen; of old servers and new ones."""

    def last(event: Object) -> float:
        series = event.get("series")
        times = [event.get("lastTimestamp"), event.get("eventTime"), event.get("firstTimestamp")]
        times.append(series.get("lastObservedTime") if isinstance(series, dict) else None)
        return max((time.timestamp() for time in map(time_of, times) if time is not None), default=0.0)

    return sorted(events, key=last, reverse=True)


def _pulling(event: Object) -> str | None:
    """What an event says of fetching an image: that it goes on, that it is done (empty), or nothing (None)."""
    match event.get("reason"):
        case "Pulling":
            message = words(str(event.get("message")))
            return message[:1].lower() + message[1:]
        case "Pulled":
            return ""
        case _:
            return None
