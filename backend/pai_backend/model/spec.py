"""What a user asked for, in one shape for every dialect.

``protocol`` turns documents into a :class:`JobSpec`; nothing behind it knows dialects.
Source of fields and limits: the seeds' field table (SCM document, section 4.2) and OpenPAI v1.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from pydantic import Field

from pai_backend.model.base import Model
from pai_backend.model.extension import JobFields, ResourceFields, RoleFields
from pai_backend.model.wording import HintWording, MessageWording, UserText, Worded


class Dialect(StrEnum):
    """Which protocol a document was written in."""

    OPENPAI_V1 = "openpai-v1"
    QIZHI = "qizhi"
    SCM = "scm"
    OPENPAI_V2 = "openpai-v2"
    OPENPAI_V2_DRAFT = "openpai-v2-draft"

    @property
    def is_v2(self) -> bool:
        """Whether the fields are those of protocol v2, where task roles have names for keys."""
        return self in (Dialect.OPENPAI_V2, Dialect.OPENPAI_V2_DRAFT)


class PortSpec(Model):
    """A labelled group of ports that each task of a role gets."""

    label: str = Field(description="Name of the group, used in environment variables and addresses.")
    count: int = Field(default=1, ge=1, description="How many ports each task gets.")
    begin_at: int = Field(
        default=0, ge=0, le=65535, description="First port of a fixed range; 0 means chosen at random."
    )
    implicit: bool = Field(
        default=False, description="Given by the protocol, not asked for: it has an address, but is not offered."
    )


class Resources(ResourceFields):
    """What one task needs."""

    cpus: int = Field(default=1, ge=0)
    memory_mb: int = Field(default=100, ge=0, description="MiB")
    gpus: int = Field(default=0, ge=0)
    shm_mb: int = Field(default=64, ge=0, description="MiB of /dev/shm; 64 as the seeds say")


class Completion(Model):
    """When a role decides its job. ``None`` switches a rule off (v1: null)."""

    min_failed: int | None = Field(default=1, description="This many failed tasks fail the job.")
    min_succeeded: int | None = Field(
        default=None,
        description="This many succeeded tasks let the job succeed; null: only when all tasks are done.",
    )


class ImageAuth(Model):
    """Credentials of a registry as the document gives them: texts may hold ``<% $secrets.x %>`` tags, never values."""

    username: str = ""
    password: str = Field(default="", repr=False)
    registry_uri: str = ""


class SshOptions(Model):
    """What the ssh plugin of OpenPAI v2 asks for."""

    job_ssh: bool = Field(default=False, description="Tasks of the job can log in to each other.")
    authorized_keys: tuple[str, ...] = Field(
        default=(), description="Public keys that may log in besides the user's; they may hold tags of secrets."
    )
    barrier: bool = Field(default=False, description="Start the command only when all tasks answer SSH.")
    barrier_roles: tuple[str, ...] = Field(default=(), description="Whose tasks; empty: those of all roles.")
    barrier_timeout_s: int = Field(default=1800, ge=0, description="Seconds after which the barrier fails the task.")


class TaskRole(RoleFields):
    """A group of equal tasks."""

    name: str
    instances: int = Field(default=1, ge=1)
    resources: Resources = Resources()
    ports: tuple[PortSpec, ...] = ()
    command: str = Field(
        description="Shell text; goes through exactly one bash parse. In v2 it may hold ``<% $secrets.x %>`` tags."
    )
    strict: bool = Field(
        default=False, description="Run with errexit, nounset and pipefail, as OpenPAI v2 runs its commands."
    )
    completion: Completion = Completion()
    task_retry_count: int = Field(
        default=0, ge=-2, description="Retries of one task alone; followed when gang_allocation is off (v2)."
    )
    image: str | None = Field(default=None, description="Of this role, when it is not the job's.")
    image_auth: ImageAuth | None = None
    infiniband: bool = False
    ssh: SshOptions = SshOptions()
    sku_type: str | None = Field(default=None, description="extras.hivedScheduler skuType or gpuType of the role.")
    pinned_cell_id: str | None = Field(default=None, description="pinnedCellId or reservationId of the role.")
    affinity_group: str | None = Field(default=None, description="affinityGroupName of the role.")
    within_one_cell: str | None = Field(
        default=None, description="withinOneCell of the role: the cell type of which one cell must contain its tasks."
    )


class PriorityClass(StrEnum):
    """OpenPAI's words for priorities; the numbers are the scheduler's."""

    CRIT = "crit"
    PROD = "prod"
    TEST = "test"
    OPPO = "oppo"


class Scheduling(Model):
    """How a job wants to be scheduled (extras.hivedScheduler and extras.gangAllocation of OpenPAI v2)."""

    gang_allocation: bool = Field(
        default=True, description="All tasks start together or not at all; false: one by one, each retried alone."
    )
    priority_class: PriorityClass | None = Field(default=None, description="None: the default, test.")
    lazy_preemption: bool = False
    ignore_suggested_nodes: bool = True
    gang_release: bool = False
    within_one_cell: str | None = Field(
        default=None, description="withinOneCell: the cell type of which one cell must contain an affinity group."
    )


class StorageMount(Model):
    """A team storage that a v2 document names."""

    name: str
    mount_path: str


class JobSpec(JobFields):
    """A job as its author meant it; the meaning of a document, free of its dialect's spelling."""

    name: str
    dialect: Dialect
    image: str
    virtual_cluster: str = "default"
    env: Mapping[str, Any] = Field(default_factory=dict, description="jobEnvs, values as written")
    extras: Mapping[str, Any] = Field(default_factory=dict)
    scheduling: Scheduling = Scheduling()
    secret_names: tuple[str, ...] = Field(
        default=(), description="Names in the document's secrets; the values are never part of a spec."
    )
    storages: tuple[StorageMount, ...] = ()
    notify: tuple[str, ...] = Field(
        default=(), description="jobStatusChangeNotification: running, succeeded, stopped, failed, retried."
    )
    submit_from: str = ""
    description: str = ""
    task_roles: tuple[TaskRole, ...]

    def role(self, name: str) -> TaskRole:
        """The role of that name. Raises ``KeyError`` when there is none."""
        for role in self.task_roles:
            if role.name == name:
                return role
        raise KeyError(name)

    def image_of(self, role: TaskRole) -> str:
        """The image a role's tasks run in: its own or the job's."""
        return role.image if role.image is not None else self.image

    @property
    def task_count(self) -> int:
        """How many tasks the job has in all."""
        return sum(role.instances for role in self.task_roles)


class DocumentWarning(Worded):
    """Something the user should know that stopped nothing."""

    code: str = Field(description="Stable machine word, e.g. ``open-jupyter``.")
    message: UserText
    path: str = Field(default="", description="JSON path in the document, when it has a place there.")
    hint: UserText = Field(default="", description="What to do about it.")
    wording: MessageWording = None
    hint_wording: HintWording = None
