"""The job info file: the whole job as JSON, for programs that would rather not read variables.

The file is the same for all tasks of a job; which of them a program is, ``PAI_CURRENT_TASK_ROLE_NAME`` and
``PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX`` say. It holds no value of jobEnvs and no secret. Names are those
of OpenPAI's documents. ``docs/job-info.md`` describes it; a field is added there, never changed or removed.
It is made once for all plans of a job, with the variables that they share, and remembered while it holds.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from enum import StrEnum

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from pai_backend.launch.directories import shared_environment
from pai_backend.model.alias import role_slugs
from pai_backend.model.base import Model
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Job, Task
from pai_backend.model.node import Placement
from pai_backend.model.spec import TaskRole

SCHEMA_VERSION = 1


def _wire_name(name: str) -> str:
    """The name of a field in the file: as OpenPAI's documents have theirs, ``memoryMB`` included."""
    return to_camel(name).replace("Mb", "MB")


class _Part(Model):
    model_config = ConfigDict(alias_generator=_wire_name, populate_by_name=True)


class JobPart(_Part):
    """The job as a whole."""

    name: str
    id: str = Field(description="user~name")
    alias: str = Field(description="The stable name of the job in addresses.")
    attempt: int = Field(description="From 0; counts how often the job was retried.")
    virtual_cluster: str
    gang: bool = Field(description="Whether all tasks have their addresses from the beginning, for good.")


class ResourcesPart(_Part):
    """What each task of a role has."""

    cpus: int
    memory_mb: int = Field(description="MiB")
    gpus: int
    shm_mb: int = Field(description="MiB of /dev/shm")


class CompletionPart(_Part):
    """When the role decides the job; null is a rule that is switched off."""

    min_failed: int | None
    min_succeeded: int | None


class RolePart(_Part):
    """A task role."""

    name: str
    count: int = Field(description="Number of tasks.")
    resources: ResourcesPart
    completion: CompletionPart


class Addressing(StrEnum):
    """Whether a task has an address."""

    PLACED = "placed"
    WAITING = "waiting"


class TaskPart(_Part):
    """A task. One that has ended keeps its last address."""

    name: str = Field(description="role-index")
    role: str
    index: int
    state: Addressing = Field(description="waiting: not placed yet, so without host and ports.")
    host: str | None = Field(description="Address that peers reach it by.")
    ports: dict[str, tuple[int, ...]] = Field(description="Port numbers by label.")
    ssh_name: str = Field(description="Its user name at the SSH gateway: ssh <sshName>@gateway.")


class JobInfo(_Part):
    """The content of the file that PAI_JOB_INFO_FILE names."""

    schema_version: int = SCHEMA_VERSION
    job: JobPart
    user: str
    roles: tuple[RolePart, ...] = Field(description="In the order of the document.")
    tasks: tuple[TaskPart, ...] = Field(description="By role in the order of the document, then by index.")


def job_info(job: Job) -> str:
    """The file's text for ``job`` as it is placed now; a function of the document and the placements alone."""
    spec = job.spec
    slugs = role_slugs(spec)
    order = {role.name: number for number, role in enumerate(spec.task_roles)}
    tasks = sorted(job.tasks, key=lambda task: (order[task.role], task.index))
    info = JobInfo(
        job=JobPart(
            name=job.name,
            id=job.id,
            alias=job.alias,
            attempt=job.attempt,
            virtual_cluster=spec.virtual_cluster,
            gang=spec.scheduling.gang_allocation,
        ),
        user=job.user,
        roles=tuple(map(_role, spec.task_roles)),
        tasks=tuple(_task(task, f"{job.alias}--{slugs[task.role]}-{task.index}") for task in tasks),
    )
    return info.model_dump_json(by_alias=True) + "\n"


def _role(role: TaskRole) -> RolePart:
    need, rules = role.resources, role.completion
    return RolePart(
        name=role.name,
        count=role.instances,
        resources=ResourcesPart(cpus=need.cpus, memory_mb=need.memory_mb, gpus=need.gpus, shm_mb=need.shm_mb),
        completion=CompletionPart(min_failed=rules.min_failed, min_succeeded=rules.min_succeeded),
    )


def _task(task: Task, ssh_name: str) -> TaskPart:
    place = task.placement
    return TaskPart(
        name=task.name,
        role=task.role,
        index=task.index,
        state=Addressing.WAITING if place is None else Addressing.PLACED,
        host=None if place is None else place.address,
        ports={} if place is None else dict(place.ports),
        ssh_name=ssh_name,
    )


REMEMBERED_JOBS = 8  # those being started at once; some MB for one of thousands of tasks


@dataclass(frozen=True)
class JobParts:
    """The shared variables of a job as it is placed, patterns of those left out, and its job info."""

    shared: dict[str, str]
    left_out: tuple[str, ...]
    info: str
    placed: int
    """How many of its tasks have a place."""


def job_parts(job: Job, default_fs_uri: str = "") -> JobParts:
    """The parts of ``job`` as it is placed now; takes time in proportion to its tasks."""
    shared = shared_environment(job, default_fs_uri)
    placed = sum(task.placement is not None for task in job.tasks)
    return JobParts(shared.variables, shared.left_out, job_info(job), placed)


class PartsMemory:
    """The parts of the jobs that were asked for last, for as long as their tasks stay where they are.

    Nothing else of a job changes them: its document is fixed, and what a single task has is not among them.
    """

    def __init__(self, default_fs_uri: str = "") -> None:
        self._default_fs_uri = default_fs_uri
        self._known: OrderedDict[tuple[JobUid, int], tuple[tuple[Placement | None, ...], JobParts]] = OrderedDict()

    def of(self, job: Job) -> JobParts:
        """The parts of ``job``."""
        key = (job.uid, job.attempt)
        placements = tuple(task.placement for task in job.tasks)
        known = self._known.get(key)
        parts = known[1] if known is not None and known[0] == placements else job_parts(job, self._default_fs_uri)
        # The placements as they are now: comparing is quick while they are the very same objects.
        self._known[key] = (placements, parts)
        self._known.move_to_end(key)
        while len(self._known) > REMEMBERED_JOBS:
            self._known.popitem(last=False)
        return parts
