"""The keys of the engine, which runs tasks: its nodes, the accounts of their processes, and limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from pydantic import Field, model_validator

from pai_backend.model.base import Model
from pai_backend.model.labels import Labels, Taint


class GpuSettings(Model):
    """Simulated GPUs of a node."""

    type: str = Field(min_length=1, description="SKU word, compared with a document's gpuType, e.g. TITANX.")
    count: int = Field(ge=0, le=64, description="How many.")


class NodeSettings(Model):
    """A node of the local engine."""

    name: str = Field(min_length=1, max_length=63, description="Name of the node, unique.")
    simulated: bool = Field(default=True, description="A made-up node; false means this machine as it is detected.")
    gpus: GpuSettings | None = Field(default=None, description="Simulated GPUs: `{type, count}`.")
    gpu_indices: tuple[int, ...] | None = Field(
        default=None, description="Of this machine as it is detected, GPUs with these numbers alone: `[0, 1]`."
    )
    cpus: int = Field(default=8, ge=1, description="CPUs that it offers.")
    memory_mb: int = Field(default=16384, ge=1, description="MiB of memory that it offers.")
    labels: Labels = Field(default={}, description="Labels, as on a node of Kubernetes: `{zone: a}`.")
    taints: tuple[Taint, ...] = Field(default=(), description="Taints: a list of `{key, value, effect}`.")
    schedulable: bool = Field(default=True, description="False: cordoned, so that nothing new starts there.")


class AccountSettings(Model):
    """Accounts of this machine that local tasks run as: of one of three kinds."""

    map: dict[str, str] = Field(
        default={}, description="The account of each user, `{alice: alice, bob: pai-bob}`: two never share one."
    )
    pool: tuple[str, ...] = Field(
        default=(), description="A pool of accounts, `[pai-1, pai-2]`. Each user gets one that is free and keeps it."
    )
    first_uid: int = Field(
        default=0, ge=0, le=4_294_000_000, description="A pool of `count` uids that no account has: the first of them."
    )
    count: int = Field(default=0, ge=0, le=100_000, description="How many uids from `first_uid` on.")

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.first_uid == 0) != (self.count == 0):
            raise ValueError("needs first_uid and count together")
        if sum(map(bool, (self.map, self.pool, self.count))) > 1:
            raise ValueError("takes one of map, pool, or first_uid with count")
        return self

    @property
    def given(self) -> bool:
        """Whether tasks of different users run as different accounts."""
        return bool(self.map or self.pool or self.count)

    @property
    def for_all(self) -> tuple[str, ...]:
        """Names of the pool, or uids as numbers; none with a map."""
        return self.pool or tuple(str(self.first_uid + number) for number in range(self.count))


class EngineSettings(Model):
    """What runs tasks."""

    kind: str = Field(
        default="local",
        description="`local`: processes on this machine. `containers`: containers on it, by Podman. `kubernetes`: pods "
        "of a cluster. Or the name of an engine of an installed package.",
    )
    options: dict[str, Any] = Field(
        default={}, description="Keys of an engine of an installed package, which says what they are."
    )
    nodes: tuple[NodeSettings, ...] = Field(
        default=(),
        description="Nodes: a list of `{name, simulated, gpus: {type, count}, gpu_indices, cpus, memory_mb, labels, "
        "taints, schedulable}`. "
        "None given: this machine with the GPUs it has.",
    )
    python: Path | None = Field(
        default=None,
        description="The Python of tasks on the local engine: a path. Each task reads its packages, and installs into "
        "an environment of its own. None given: the one that runs the backend, Jupyter's where Jupyter starts it.",
    )
    hold_to_limits: bool = Field(
        default=True,
        description="Hold tasks of the local engine to their memoryMB, cpu and `most_processes` where the machine lets "
        "the backend make control groups; the log says where it does not.",
    )
    most_processes: int = Field(
        default=4096, ge=0, description="Processes and threads that one local task may have at once; 0: no limit."
    )
    accounts: AccountSettings = Field(
        default=AccountSettings(),
        description="Tasks of the local engine run as an account of their user. The backend must be root on Linux.",
    )
    trust_all_users: bool = Field(
        default=False,
        description="Without `accounts` tasks of the local engine run as one account, so any task can read the "
        "database, its keys and the files of every user. A backend that knows several users then starts only where "
        "this says that they all may.",
    )
    grace_s: float = Field(default=10, ge=0, description="Seconds between TERM and KILL when a task is stopped.")
    orphans_keep_s: float = Field(
        default=0,
        ge=0,
        description="Seconds after which a running task that the database does not know is ended; "
        "0: only when an administrator ends it (`pai cluster orphans`).",
    )
    log_bytes: int = Field(
        default=268_435_456,
        ge=4096,
        description="Bytes of a task's output after which its log is rotated (one old kept).",
    )
    keep_days: float = Field(
        default=30,
        ge=0,
        description="Days that logs and working directories of finished tasks are kept; 0: no limit by age.",
    )
    keep_tasks: int = Field(
        default=10_000, ge=0, description="Finished tasks whose logs and files are kept; 0: no limit by number."
    )
    keep_bytes: int = Field(
        default=8_589_934_592,
        ge=0,
        description="Bytes of logs and files of finished tasks that are kept, the newest; 0: no limit by bytes.",
    )

    @model_validator(mode="after")
    def _distinct_names(self) -> Self:
        names = [node.name for node in self.nodes]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"has two nodes with the name {twice}")
        return self
