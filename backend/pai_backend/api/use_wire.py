"""Who uses the cluster, as the panel shows it. Cells are counted in leaves; usually a leaf is a GPU."""

from __future__ import annotations

from pydantic import Field

from pai_backend.api.wire import Camel, Said


class MovedJob(Camel):
    """A job whose turn has changed."""

    id: str
    place: int = Field(description="Among the waiting jobs of its virtual cluster and priority, from 1.")
    was: int


class MovedJobs(Said):
    """The jobs that have changed places; none when they stood as asked already."""

    jobs: tuple[MovedJob, ...]


class CellsUseWire(Camel):
    """Cells of one type in one virtual cluster, or of one pinned cell."""

    leaf_type: str
    pinned_cell: str = Field(description="Empty for those that are not pinned.")
    shapes: dict[str, int] = Field(description="Cell type -> how many of it are owned.")
    owned: int
    guaranteed: int = Field(description="In use on the virtual cluster's own quota.")
    opportunistic: int = Field(description="In use without a claim on the quota.")
    reserved: int = Field(description="Reserved for jobs that wait until preempted jobs have stopped.")
    bad: int = Field(description="Owned, but unhealthy.")
    free: int = Field(description="Free to claim; without configured cells, all that is unused.")


class RunningJob(Camel):
    """A job that has a place."""

    uid: str
    id: str
    name: str
    username: str
    tasks: int
    gpus: int
    opportunistic: bool = Field(description="Some of it runs without a claim and is preempted when the owner needs it.")


class WaitingJob(Camel):
    """A job that waits as a whole."""

    uid: str
    id: str
    name: str
    username: str
    gpus: int
    queue: str = Field(description="Jobs with the same word can change places.")
    position: int = Field(description="Its place among all that wait for the same cells, from 1.")
    waiting: int = Field(description="How many wait for these.")


class VirtualClusterUse(Camel):
    """What a virtual cluster owns and uses, who runs there, and who waits."""

    name: str
    granted: bool = Field(description="Whether the caller may use it.")
    most_gpus: int | None = Field(description="GPUs that the caller may have there at once; null: no limit.")
    cells: tuple[CellsUseWire, ...]
    running: tuple[RunningJob, ...] = Field(description="Jobs the caller may see, own ones first; at most 100.")
    unlisted_jobs: int = Field(description="How many others run there.")
    unlisted_gpus: int
    waiting: int = Field(description="How many jobs wait there.")
    queue: tuple[WaitingJob, ...] = Field(description="Those the caller may see, as they are served; at most 100.")


class NodeUseWire(Camel):
    """A node and what of it is in use."""

    name: str
    ready: bool
    schedulable: bool
    reason: str
    gpu_types: tuple[str, ...]
    gpus: int
    used_gpus: int
    bad_gpus: int
    cpus: int
    used_cpus: int
    memory_mb: int
    used_memory_mb: int
    other_gpus: int = Field(description="GPUs that pods of others hold, beside those in use here.")
    other_cpus: int
    other_memory_mb: int


class ClusterUseWire(Camel):
    """The whole cluster, as far as the caller may see it."""

    user: str = Field(description="The caller.")
    admin: bool
    shared: bool = Field(description="No cells are configured: every virtual cluster may use all nodes.")
    images: tuple[str, ...] = Field(description="Images that the site offers.")
    virtual_clusters: tuple[VirtualClusterUse, ...]
    nodes: tuple[NodeUseWire, ...]
