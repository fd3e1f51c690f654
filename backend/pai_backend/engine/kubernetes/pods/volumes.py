"""Volumes of a task's pod, and where its containers have them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pydantic import TypeAdapter, ValidationError

from pai_backend.engine.base import StartRefused
from pai_backend.engine.bundle import layout
from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.objects import Object
from pai_backend.engine.kubernetes.pods.secret import is_alone, keeps_hosts
from pai_backend.model.ids import job_of
from pai_backend.model.plan import TaskPlan, TeamStorage
from pai_backend.model.pod_settings import MountPath, PodSettings, VolumeSettings

STATE_MB: Final = 64  # of memory: job info, hosts and variables in clear are a few MiB at most
JOB_VOLUME: Final = "job"  # the attempt's ConfigMap, in a pod that has peers
OWN_VOLUME: Final = "volume-"  # before the names of the administrator's, so that none meets one of ours

_MOUNT_PATH: TypeAdapter[str] = TypeAdapter(MountPath)


@dataclass(frozen=True)
class Mounted:
    """A volume of the administrator's, and where a task has it."""

    volume: VolumeSettings
    path: str


def mounted(plan: TaskPlan, settings: PodSettings) -> tuple[Mounted, ...]:
    """The administrator's volumes that a task has: those of every task, and those of its team storages.

    Raises StartRefused for a team storage that is a directory of machines and no volume, or whose place in the
    container is no place for it.
    """
    of_all = [Mounted(volume, volume.path) for volume in settings.volumes if volume.path is not None]
    by_storage = {volume.storage: volume for volume in settings.volumes if volume.storage is not None}
    own = []
    for storage in plan.storages:
        volume = by_storage.get(storage.name)
        if volume is not None:
            own.append(Mounted(volume, _place(storage)))
        elif storage.uri.startswith("/"):
            raise StartRefused(
                f"the storage {storage.name} is a directory of machines, and no volume of this cluster stands for it; "
                "ask the administrator to add one to volumes"
            )
    found = (*of_all, *own)
    paths = [each.path for each in found]
    twice = next((path for path in paths if paths.count(path) > 1), None)
    if twice is not None:
        raise StartRefused(f"two volumes of the task would be at {twice}; let the storage be somewhere else")
    return found


def _place(storage: TeamStorage) -> str:
    try:
        return _MOUNT_PATH.validate_python(storage.mount_path)
    except ValidationError as error:
        fault = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise StartRefused(
            f"the storage {storage.name} cannot be at {storage.mount_path[:200]!r}: it {fault}"
        ) from None


def volumes(plan: TaskPlan, settings: PodSettings, extra: Iterable[Mounted]) -> list[Object]:
    """All volumes of the pod. Names of volumes are of the pod alone."""
    shared = naming.attempt_name(job_of(plan.uid), plan.job_attempt)
    work: Object = {}
    if settings.ephemeral_storage_mb:
        work["sizeLimit"] = f"{settings.ephemeral_storage_mb}Mi"
    return [
        {"name": "runtime", "emptyDir": {}},
        # Readable by whatever user the image has: only the task is in its pod.
        {"name": "plan", "secret": {"secretName": naming.task_name(plan.uid), "defaultMode": 0o444}},
        *([] if is_alone(plan) else [{"name": JOB_VOLUME, "configMap": {"name": shared, "defaultMode": 0o444}}]),
        {"name": "state", "emptyDir": {"medium": "Memory", "sizeLimit": f"{STATE_MB}Mi"}},
        {"name": "work", "emptyDir": work},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": f"{max(plan.shm_mb, 1)}Mi"}},
        *({"name": OWN_VOLUME + each.volume.name, **_source(each.volume)} for each in extra),
    ]


def _source(volume: VolumeSettings) -> Object:
    if volume.claim is not None:
        return {"persistentVolumeClaim": {"claimName": volume.claim, "readOnly": volume.read_only}}
    if volume.nfs is not None:
        return {"nfs": {**volume.nfs.model_dump(), "readOnly": volume.read_only}}
    return {"hostPath": {"path": volume.host_path}}


def task_mounts(plan: TaskPlan, settings: PodSettings, extra: Iterable[Mounted]) -> list[Object]:
    """What the task's container has."""
    found: list[Object] = [
        {"name": "runtime", "mountPath": layout.RUNTIME, "readOnly": True},
        {"name": "plan", "mountPath": layout.PLAN, "readOnly": True},
        {"name": "plan" if is_alone(plan) else JOB_VOLUME, "mountPath": layout.JOB, "readOnly": True},
        {"name": "state", "mountPath": layout.STATE},
        {"name": "work", "mountPath": layout.WORK},
        {"name": "shm", "mountPath": "/dev/shm"},
    ]
    if keeps_hosts(plan, settings):
        # A file of its own in the place of the kubelet's, which only root may write.
        found.append({"name": "state", "mountPath": "/etc/hosts", "subPath": layout.HOSTS_FILE})
    return [*found, *map(_mount, extra)]


def runtime_mounts() -> list[Object]:
    """What the container has that puts the runtime bundle in place."""
    return [{"name": "runtime", "mountPath": layout.RUNTIME}, {"name": "state", "mountPath": layout.STATE}]


def inputs_mounts(extra: Iterable[Mounted]) -> list[Object]:
    """What the container has that fetches inputs: inputs may be in any of the task's volumes."""
    own: list[Object] = [
        {"name": "plan", "mountPath": layout.PLAN, "readOnly": True},
        {"name": "work", "mountPath": layout.WORK},
    ]
    return [*own, *map(_mount, extra)]


def _mount(each: Mounted) -> Object:
    found: Object = {"name": OWN_VOLUME + each.volume.name, "mountPath": each.path}
    if each.volume.sub_path:
        found["subPath"] = each.volume.sub_path
    if each.volume.read_only:
        found["readOnly"] = True
    return found
