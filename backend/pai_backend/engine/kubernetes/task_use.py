"""What pods of tasks use: CPU and memory by the cluster's metrics API, GPUs by ``nvidia-smi`` in their containers.

metrics-server answers ``metrics.k8s.io`` in most clusters, with one request for all pods of a namespace. Where it is
missing, or the backend may not read it, CPU and memory are not known, which is logged once. Its memory is the working
set: without what the kernel can drop. Source: Kubernetes, "Resource Metrics Pipeline".
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from pai_backend.engine.base import EngineError, GpuWork, TaskUse
from pai_backend.engine.bundle import layout
from pai_backend.engine.kubernetes.calls import Calls
from pai_backend.engine.kubernetes.client import ApiClient
from pai_backend.engine.kubernetes.failures import ApiForbidden, ApiNotFound, ClusterError
from pai_backend.engine.kubernetes.gpu_use import gpu_use
from pai_backend.engine.kubernetes.objects import Object, name_of
from pai_backend.engine.kubernetes.places import ApiPaths, ResourceKind
from pai_backend.engine.kubernetes.quantities import quantity

log = logging.getLogger(__name__)

ASKED_AT_ONCE: Final = 8
"""Containers in which ``nvidia-smi`` is run at the same time."""
_MIB: Final = 2**20


@dataclass(frozen=True)
class PodPlace:
    """Where the pod of a task is, and whether it has GPUs."""

    paths: ApiPaths
    name: str
    has_gpus: bool


class PodMeter:
    """Asks one cluster."""

    def __init__(self) -> None:
        self._without: str = ""

    async def uses(self, calls: Calls, client: ApiClient, pods: Iterable[PodPlace]) -> dict[PodPlace, TaskUse]:
        """What these pods use now; those of which nothing is known are left out. Raises ClusterErrors."""
        pods = list(pods)
        measured: dict[tuple[ApiPaths, str], Object] = {}
        for paths in {pod.paths for pod in pods}:
            measured |= {(paths, name_of(each)): each for each in await self._measured(calls, paths)}
        room = asyncio.Semaphore(ASKED_AT_ONCE)
        works = await asyncio.gather(*(_gpu_work(client, pod, room) for pod in pods))
        uses = {pod: _use(measured.get((pod.paths, pod.name)), work) for pod, work in zip(pods, works, strict=True)}
        return {pod: use for pod, use in uses.items() if use != TaskUse()}

    async def _measured(self, calls: Calls, paths: ApiPaths) -> list[Object]:
        try:
            found = [each async for each in calls.list(paths.all(ResourceKind.POD_METRICS))]
        except (ApiForbidden, ApiNotFound) as error:
            if not self._without:
                log.warning("CPU and memory of pods are not known: the metrics API does not answer: %s", error)
            self._without = str(error)
            return []
        self._without = ""
        return found


def _use(measured: Object | None, work: tuple[GpuWork, ...]) -> TaskUse:
    """The task's container alone: what stages its inputs or serves SSH is not its own."""
    for container in measured.get("containers") or () if measured is not None else ():
        if container.get("name") == layout.TASK_CONTAINER:
            usage: Mapping[str, object] = container.get("usage") or {}
            try:
                cpus, memory = quantity(usage.get("cpu", "0")), quantity(usage.get("memory", "0"))
            except ValueError:
                break
            return TaskUse(float(cpus), float(memory) / _MIB, work)
    return TaskUse(gpus=work)


async def _gpu_work(client: ApiClient, pod: PodPlace, room: asyncio.Semaphore) -> tuple[GpuWork, ...]:
    if not pod.has_gpus:
        return ()
    async with room:
        try:
            return (await gpu_use(client, pod.paths.one(ResourceKind.POD, pod.name))).gpus
        except (EngineError, ClusterError):
            return ()  # idle clocks tell why, where it matters
