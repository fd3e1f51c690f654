"""Small valid specs, jobs and tasks for tests: every argument has a default, so a test names only what it is about.

``make_job`` gives the job as the api would submit it: waiting, with one waiting task for each
instance. Ids and times are fixed by default, so that two calls give equal values; a test that needs
several jobs passes different ``uid`` and ``name`` (:func:`make_uid` makes uids from small numbers).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from pai_backend.model.alias import job_alias
from pai_backend.model.ids import JobUid, task_uid
from pai_backend.model.job import Desired, Job, Phase, State, Task
from pai_backend.model.node import Placement
from pai_backend.model.spec import (
    Completion,
    Dialect,
    DocumentWarning,
    JobSpec,
    PortSpec,
    PriorityClass,
    Resources,
    Scheduling,
    TaskRole,
)

T0 = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
"""The default submission time; microseconds are set so that a loss of precision shows."""


def make_uid(number: int) -> JobUid:
    """The job uid with that number; the digits are mirrored so that short prefixes differ as well."""
    return JobUid("j" + f"{number:016x}"[::-1])


def make_role(
    name: str = "worker",
    *,
    instances: int = 1,
    gpus: int = 0,
    command: str = "true",
    ports: Sequence[PortSpec] = (),
    cpus: int = 1,
    memory_mb: int = 100,
    completion: Completion | None = None,
    task_retry_count: int = 0,
    sku_type: str | None = None,
) -> TaskRole:
    """A role of ``instances`` equal tasks."""
    return TaskRole(
        name=name,
        instances=instances,
        resources=Resources(cpus=cpus, memory_mb=memory_mb, gpus=gpus),
        ports=tuple(ports),
        command=command,
        completion=completion or Completion(),
        task_retry_count=task_retry_count,
        sku_type=sku_type,
    )


def make_spec(
    name: str = "job",
    *,
    roles: Sequence[TaskRole] = (),
    dialect: Dialect = Dialect.SCM,
    image: str = "example/image:1",
    virtual_cluster: str = "default",
    gpu_type: str | None = None,
    retry_count: int = 0,
    env: Mapping[str, object] | None = None,
    gang: bool = True,
    debug: bool = False,
    priority: PriorityClass | None = None,
    lazy: bool = False,
) -> JobSpec:
    """A spec with the given roles, or with one role of one task."""
    return JobSpec(
        name=name,
        dialect=dialect,
        image=image,
        virtual_cluster=virtual_cluster,
        gpu_type=gpu_type,
        retry_count=retry_count,
        env=dict(env or {}),
        scheduling=Scheduling(gang_allocation=gang, priority_class=priority, lazy_preemption=lazy),
        debug=debug,
        task_roles=tuple(roles) or (make_role(),),
    )


def make_tasks(uid: JobUid, spec: JobSpec, attempt: int = 0) -> tuple[Task, ...]:
    """One waiting task for each instance of each role, in document order."""
    return tuple(
        Task(
            uid=task_uid(uid, number, index, attempt),
            role=role.name,
            index=index,
            attempt=attempt,
            job_attempt=attempt,
        )
        for number, role in enumerate(spec.task_roles)
        for index in range(role.instances)
    )


def make_placement(
    node: str = "carol",
    *,
    machine: str = "laptop",
    gpus: Sequence[int] = (),
    gpu_type: str = "",
    ports: Mapping[str, tuple[int, ...]] | None = None,
) -> Placement:
    """A place on a node of this machine."""
    return Placement(
        node=node,
        address="127.0.0.1",
        machine=machine,
        gpus=tuple(gpus),
        gpu_type=gpu_type,
        ports=dict(ports or {}),
    )


def make_job(
    name: str = "job",
    *,
    uid: JobUid | None = None,
    user: str = "alice",
    alias: str | None = None,
    spec: JobSpec | None = None,
    state: State = State.WAITING,
    phase: Phase = Phase.QUEUED,
    desired: Desired = Desired.START,
    attempt: int = 0,
    tasks: Sequence[Task] | None = None,
    warnings: Sequence[DocumentWarning] = (),
    submitted_at: datetime = T0,
) -> Job:
    """A job as it is submitted; ``tasks=()`` makes one without tasks."""
    uid = uid or make_uid(1)
    spec = spec or make_spec(name)
    return Job(
        uid=uid,
        name=name,
        user=user,
        alias=alias or job_alias(name),
        spec=spec,
        warnings=tuple(warnings),
        state=state,
        phase=phase,
        desired=desired,
        attempt=attempt,
        tasks=make_tasks(uid, spec, attempt) if tasks is None else tuple(tasks),
        submitted_at=submitted_at,
    )
