"""Machines of an engine, as placement sees them."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from pai_backend.model.base import Model
from pai_backend.model.labels import Labels, Taint


class Gpu(Model):
    """One GPU of a node."""

    index: int = Field(ge=0, description="The number the driver knows it by on its machine.")
    type: str = Field(description="SKU word compared with a document's gpuType, e.g. TITANX.")
    uuid: str = ""
    memory_mb: int = 0
    simulated: bool = False


class Others(Model):
    """What pods that are not of this backend hold of a node; which of its GPUs is not known."""

    cpus: int = Field(default=0, ge=0)
    memory_mb: int = Field(default=0, ge=0)
    gpus: int = Field(default=0, ge=0)
    by_type: dict[str, int] = Field(
        default={}, description="Of these GPUs, how many of each type; only of a node with GPUs of several types."
    )

    def gpus_of(self, gpu_type: str) -> int:
        """GPUs of a type that they hold; all, where types are not told apart or this is none of the node's."""
        return self.by_type.get(gpu_type, self.gpus)


class Node(Model):
    """A machine (or a simulated one) that can run tasks."""

    name: str
    address: str = Field(description="IP or host name that peers of a task reach its ports by.")
    machine: str = Field(
        description="Whose port numbers it shares: simulated nodes of one laptop name the same machine."
    )
    cpus: int
    memory_mb: int
    gpus: tuple[Gpu, ...] = ()
    ready: bool = True
    reason: str = Field(default="", description="Why it is not ready, in words.")
    schedulable: bool = Field(default=True, description="False when it is cordoned: no new tasks start there.")
    labels: Labels = Field(default={}, description="What documents and the administrator select nodes by.")
    taints: tuple[Taint, ...] = Field(default=(), description="What keeps tasks away that do not tolerate it.")
    others: Others = Field(default=Others(), description="What pods of others hold of it.")
    simulated: bool = False


class Placement(Model):
    """Where a task runs; everything is decided before it starts."""

    node: str
    address: str
    machine: str
    gpus: tuple[int, ...] = ()
    gpu_type: str = ""
    simulated_gpu: bool = False
    ports: dict[str, tuple[int, ...]] = Field(default_factory=dict, description="label -> ports")
    cells: tuple[int, ...] = Field(default=(), description="All leaf cells it holds, by their index in the node.")
    chain: str = Field(default="", description="The chain of these cells.")
    owned: str = Field(default="", description="Type of the quota cell that pays; empty when opportunistic.")
    displaced: bool = Field(default=False, description="It lost its claim on the quota and runs opportunistically.")
    stops_by: datetime | None = Field(
        default=None, description="When a reservation begins whose GPUs it may hold until then."
    )
