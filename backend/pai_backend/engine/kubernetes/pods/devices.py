"""CPU, memory, disk and devices of a task, as its container asks for them."""

from __future__ import annotations

from pai_backend.engine.base import StartRefused
from pai_backend.engine.kubernetes.objects import Object
from pai_backend.model.plan import TaskPlan
from pai_backend.model.pod_settings import PodSettings

NO_DEVICES = "none"
"""Keeps the container runtime from giving a task the GPUs that its image asks for in a variable."""


def resources(plan: TaskPlan, settings: PodSettings) -> Object:
    """``requests`` and ``limits`` of the task's container.

    Raises StartRefused when its role asks for InfiniBand and the cluster has none to give.
    """
    devices = _devices(plan, settings)
    requests, limits = _machine(plan, settings)
    return _both({**requests, **devices}, {**limits, **devices})


def init_resources(plan: TaskPlan, settings: PodSettings) -> Object:
    """The same for what runs before it: no more than the task itself has, so that it counts for nothing."""
    return _both(*_machine(plan, settings))


def _both(requests: dict[str, str], limits: dict[str, str]) -> Object:
    return {"requests": requests, "limits": limits} if limits else {"requests": requests}


def _machine(plan: TaskPlan, settings: PodSettings) -> tuple[dict[str, str], dict[str, str]]:
    fixed = {}
    if plan.memory_mb:
        fixed["memory"] = f"{plan.memory_mb}Mi"
    if settings.ephemeral_storage_mb:
        fixed["ephemeral-storage"] = f"{settings.ephemeral_storage_mb}Mi"
    cpu = {"cpu": str(plan.cpus)}
    return {**cpu, **fixed}, {**cpu, **fixed} if settings.cpu_limits else fixed


def _devices(plan: TaskPlan, settings: PodSettings) -> dict[str, str]:
    found = {}
    gpus = plan.placement.gpus
    if gpus and settings.gpus.by == "device-plugin":
        found[settings.gpus.resource_of(plan.placement.gpu_type)] = str(len(gpus))
    if plan.infiniband:
        if settings.infiniband is None:
            raise StartRefused(
                "its role asks for InfiniBand, and no such device of this cluster is configured; "
                "leave it out, or ask the administrator to set infiniband"
            )
        found[settings.infiniband.resource] = str(settings.infiniband.count)
    return found


def device_variables(plan: TaskPlan, settings: PodSettings) -> dict[str, str]:
    """Variables by which the container runtime gives a task its GPUs, or none.

    With the device plugin the plugin sets it for a task that has GPUs, and must find it unset.
    """
    gpus = plan.placement.gpus
    if gpus and settings.gpus.by == "device-plugin":
        return {}
    return {settings.gpus.variable: ",".join(map(str, gpus)) or NO_DEVICES}
