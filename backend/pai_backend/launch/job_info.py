"""The job info file: the whole job as JSON, for programs that would rather not read variables.

The file is the same for all tasks of a job; which of them a program is, ``PAI_CURRENT_TASK_ROLE_NAME`` and
``PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX`` say. It holds no value of jobEnvs and no secret. Names are those
of OpenPAI's documents. ``docs/job-info.md`` describes it; a field is added there, never changed or removed.
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from pai_backend.model.alias import role_slugs
from pai_backend.model.base import Model
from pai_backend.model.job import Job, Task
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
