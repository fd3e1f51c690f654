"""A pod as the API has it, reduced to what its task's state depends on.

It reads metadata, ``spec.nodeName`` and status: what a mirror keeps of a pod (``objects.slim_pod``).
Source: Kubernetes API reference, PodStatus and ContainerStatus, v1.34.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from pai_backend.engine.bundle import layout
from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.objects import Object, metadata
from pai_backend.model.ids import TaskUid

WORDS_MAX: Final = 500  # characters of what a kubelet or registry says


class NotATask(ValueError):
    """A pod that is no task's."""


@dataclass(frozen=True)
class ContainerEnded:
    """How a container ended."""

    code: int
    signal: int | None
    reason: str
    message: str
    started_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True)
class PodContainer:
    """A container: waiting for ``reason``, or running since, or ended."""

    name: str
    image: str = ""
    reason: str = ""
    message: str = ""
    running_since: datetime | None = None
    ended: ContainerEnded | None = None
    ready: bool = False


@dataclass(frozen=True)
class PodCondition:
    """A condition of the pod."""

    true: bool
    reason: str = ""
    message: str = ""
    since: datetime | None = None


@dataclass(frozen=True)
class PodView:
    """What is known of a task's pod."""

    uid: TaskUid
    phase: str
    reason: str = ""
    message: str = ""
    node: str = ""
    nominated: str = ""
    """The node where the scheduler makes room for it by ending pods of lower priority."""
    created_at: datetime | None = None
    deleted_at: datetime | None = None
    """Some time after its deletion was asked for; None as long as it was not. It moves when the kubelet is done."""
    started_at: datetime | None = None
    """When its kubelet took it; None when none ever did."""
    task: PodContainer = PodContainer(layout.TASK_CONTAINER)
    inits: tuple[PodContainer, ...] = ()
    conditions: Mapping[str, PodCondition] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def over(self) -> bool:
        """Whether its phase says that nothing of it will run any more."""
        return self.phase in ("Failed", "Succeeded")

    @property
    def disruption(self) -> str:
        """Why the cluster has taken or takes it away, in the word of its condition; empty when it does not."""
        condition = self.conditions.get("DisruptionTarget")
        return condition.reason if condition is not None and condition.true else ""


def view_of(pod: Object) -> PodView:
    """The view of a pod. Raises NotATask when it is none of a task."""
    meta, status = metadata(pod), part(pod, "status")
    annotations = {str(key): str(value) for key, value in part(meta, "annotations").items()}
    if naming.TASK not in annotations:
        raise NotATask(f"the pod {meta.get('name')} has no annotation {naming.TASK}, so it belongs to no task")
    containers = {each.name: each for each in map(_container, items(status, "containerStatuses"))}
    return PodView(
        uid=TaskUid(annotations[naming.TASK]),
        phase=_text(status, "phase"),
        reason=_text(status, "reason"),
        message=words(_text(status, "message")),
        node=_text(part(pod, "spec"), "nodeName"),
        nominated=_text(status, "nominatedNodeName"),
        created_at=time_of(meta.get("creationTimestamp")),
        deleted_at=time_of(meta.get("deletionTimestamp")),
        started_at=time_of(status.get("startTime")),
        task=containers.get(layout.TASK_CONTAINER, PodContainer(layout.TASK_CONTAINER)),
        inits=tuple(map(_container, items(status, "initContainerStatuses"))),
        conditions={_text(each, "type"): _condition(each) for each in items(status, "conditions")},
        annotations=annotations,
    )


def words(text: str) -> str:
    """The text as one line of bounded length."""
    line = " ".join(text.split())
    return line if len(line) <= WORDS_MAX else line[:WORDS_MAX] + " …"


def time_of(value: object) -> datetime | None:
    """A time as the API writes it; None for anything else."""
    if not isinstance(value, str):
        return None
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        return None
    return found if found.tzinfo is not None else None


def _container(status: Object) -> PodContainer:
    state = part(status, "state")
    waiting, running, ended = part(state, "waiting"), part(state, "running"), part(state, "terminated")
    return PodContainer(
        name=_text(status, "name"),
        image=_text(status, "image"),
        reason=_text(waiting, "reason"),
        message=words(_text(waiting, "message")),
        running_since=time_of(running.get("startedAt")),
        ended=_ended(ended) if ended else None,
        ready=status.get("ready") is True,
    )


def _ended(state: Object) -> ContainerEnded:
    signal = state.get("signal")
    code = state.get("exitCode")
    return ContainerEnded(
        code=code if isinstance(code, int) else 255,
        signal=signal if isinstance(signal, int) and signal else None,
        reason=_text(state, "reason"),
        message=_text(state, "message"),
        started_at=_real(time_of(state.get("startedAt"))),
        finished_at=_real(time_of(state.get("finishedAt"))),
    )


def _real(time: datetime | None) -> datetime | None:
    """None for the time 0 or before, which stands for not known: of a container that never ran, or was lost."""
    return time if time is not None and time.year > 1970 else None


def _condition(found: Object) -> PodCondition:
    return PodCondition(
        true=found.get("status") == "True",
        reason=_text(found, "reason"),
        message=words(_text(found, "message")),
        since=time_of(found.get("lastTransitionTime")),
    )


def part(obj: Object, name: str) -> Object:
    """An object within an object; empty when it is missing or not an object."""
    found = obj.get(name)
    return found if isinstance(found, dict) else {}


def items(obj: Object, name: str) -> list[Object]:
    """The objects of a list within an object; none when it is missing or not a list."""
    found = obj.get(name)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _text(obj: Object, name: str) -> str:
    found = obj.get(name)
    return found if isinstance(found, str) else ""
