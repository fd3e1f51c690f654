"""Jobs as the wire shows them: pure functions from the model to ``wire``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from urllib.parse import urlsplit

from pydantic_core import from_json

from pai_backend.api.context import PublicAddress, Site
from pai_backend.api.wire import (
    IdleWire,
    JobDetail,
    NodeUse,
    NodeWire,
    RetryDetails,
    RoleWire,
    ServiceWire,
    SshEntry,
    TaskExitWire,
    TaskWire,
)
from pai_backend.lifecycle.durations import End
from pai_backend.lifecycle.exits import explain
from pai_backend.lifecycle.idleness import idle_sentence, stop_at
from pai_backend.model.alias import service_alias, task_alias
from pai_backend.model.idle import IdleClock
from pai_backend.model.job import Job, Phase, State, Task, TaskExit
from pai_backend.model.node import Node
from pai_backend.model.rights import EVERYTHING, SSH_LABEL, Limits
from pai_backend.store.base import JobSummary

DESCRIPTION_CHARS = 1_000


def summary(row: JobSummary) -> dict[str, object]:
    """A list row, as ``wire.Summary`` describes it; pages are long, and making the model takes long."""
    return {
        "uid": row.uid,
        "id": f"{row.user}~{row.name}",
        "name": row.name,
        "username": row.user,
        "alias": row.alias,
        "state": row.state,
        "phase": row.phase,
        "why": row.why,
        "whyWording": from_json(row.why_wording) if row.why_wording else None,
        "virtualCluster": row.virtual_cluster,
        "submissionTime": row.submitted_at,
        "launchedTime": row.launched_at,
        "completedTime": row.completed_at,
        "retries": row.retries,
        "totalTaskNumber": row.task_count,
        "totalGpuNumber": row.gpu_count,
        "exitStatus": row.exit_status,
        "warnings": row.warnings,
        "gpuTypes": row.gpu_types,
    }


def detail(
    job: Job,
    site: Site,
    gateway: PublicAddress | None,
    clock: IdleClock | None = None,
    doubt: str = "",
    address: str = "",
    end: End | None = None,
    output: str = "",
    warning: str = "",
) -> JobDetail:
    """Everything about one job; ``clock`` is its idle clock, if that has begun, ``doubt`` why this may be wrong.

    ``address`` is the workspace name that it holds, ``end`` when it has run for as long as it may, ``output`` the path
    of its output in the default file system, ``warning`` what the rules of its virtual cluster warn of.
    """
    spec = job.spec
    return JobDetail(
        uid=job.uid,
        id=job.id,
        name=job.name,
        username=job.user,
        alias=job.alias,
        address=address,
        state=job.state,
        phase=job.phase,
        why=job.why,
        virtual_cluster=spec.virtual_cluster,
        submission_time=job.submitted_at,
        launched_time=job.launched_at,
        completed_time=job.completed_at,
        retries=job.retries.total,
        total_task_number=spec.task_count,
        total_gpu_number=sum(role.instances * role.resources.gpus for role in spec.task_roles),
        exit_status=job.exit.status if job.exit is not None else None,
        warnings=job.warnings,
        dialect=spec.dialect,
        description=_shortened(spec.description),
        image=spec.image,
        sweep=spec.sweep,
        notebook=spec.notebook,
        attempt=job.attempt,
        stop_reason=job.stop_reason,
        exit=job.exit,
        retry_details=RetryDetails(
            user=job.retries.user, platform=job.retries.by_platform, resource=job.retries.resource
        ),
        version=job.version,
        ssh_command=ssh_command(job.alias, gateway),
        task_roles=tuple(
            RoleWire(
                name=role.name,
                task_statuses=tuple(task_wire(job, task, gateway) for task in job.tasks if task.role == role.name),
            )
            for role in spec.task_roles
        ),
        services=tuple(services(job, site)),
        end_at=end.at if end is not None else None,
        idle=_idle(job, clock),
        doubt=doubt,
        rule_warning=warning,
        output_path=output,
    )


def _shortened(text: str) -> str:
    """The beginning of a text that may be as long as its document; a detail goes out at each change of a job."""
    return text if len(text) <= DESCRIPTION_CHARS else text[: DESCRIPTION_CHARS - 1] + "…"


def _idle(job: Job, clock: IdleClock | None) -> IdleWire | None:
    if job.spec.idle_timeout_s is None or job.state.final:
        return None
    timeout = timedelta(seconds=job.spec.idle_timeout_s)
    warned, held = clock is not None and clock.warned_at is not None, clock is not None and clock.held_since is not None
    return IdleWire(
        timeout_s=job.spec.idle_timeout_s,
        since=clock.since if clock is not None else None,
        used_by=clock.used_by.value if clock is not None and clock.used_by is not None else None,
        stop_at=stop_at(clock, timeout) if clock is not None and not held else None,
        warned=warned,
        unread={source.value: why for source, why in clock.unread.items()} if clock is not None else {},
        sentence=idle_sentence(clock, timeout) if clock is not None else "",
    )


def task_wire(job: Job, task: Task, gateway: PublicAddress | None) -> TaskWire:
    """A run of a task of the job."""
    placement, alias = task.placement, task_alias(job.alias, job.spec, task.role, task.index)
    return TaskWire(
        uid=task.uid,
        role=task.role,
        index=task.index,
        alias=alias,
        attempt=task.attempt,
        state=task.state,
        phase=task.phase,
        node=placement.node if placement else None,
        address=placement.address if placement else None,
        gpus=placement.gpus if placement else (),
        gpu_type=placement.gpu_type if placement else "",
        ports=placement.ports if placement else {},
        started_time=task.started_at,
        completed_time=task.ended_at,
        exit=_task_exit(task.exit) if task.exit else None,
        kept_until=task.kept_until if task.phase is Phase.KEPT else None,
        ssh_command=ssh_command(alias, gateway),
    )


def _task_exit(exit_: TaskExit) -> TaskExitWire:
    meaning = explain(exit_)
    return TaskExitWire(
        status=exit_.status,
        code=exit_.code,
        signal=exit_.signal,
        reason=exit_.reason,
        message=exit_.message,
        phrase=meaning.phrase,
        remedy=meaning.remedy,
    )


def ssh_command(alias: str, gateway: PublicAddress | None) -> str:
    """The command that logs in under this name; empty while the gateway's address is not known."""
    if gateway is None:
        return ""
    return f"ssh {alias}@{gateway.host}" if gateway.port == 22 else f"ssh -p {gateway.port} {alias}@{gateway.host}"


def services(job: Job, site: Site) -> Iterator[ServiceWire]:
    """Every port group of every task that the document asks for, but SSH's, in document order."""
    offered = {
        role.name: [port.label for port in role.ports if not port.implicit and port.label != SSH_LABEL]
        for role in job.spec.task_roles
    }
    for task in job.tasks:
        for label in offered[task.role]:
            alias = service_alias(job.alias, job.spec, task.role, task.index, label)
            ports = task.placement.ports.get(label, ()) if task.placement else ()
            yield ServiceWire(
                label=label,
                role=task.role,
                index=task.index,
                alias=alias,
                port=ports[0] if ports else None,
                url=service_url(alias, site),
                path_url=f"/s/{alias}/",
                state=task.state,
            )


def service_url(alias: str, site: Site) -> str:
    """The address of a service with a host name of its own."""
    base = urlsplit(site.base_url)
    port = f":{base.port}" if base.port is not None else ""
    return f"{base.scheme}://{alias}.{site.service_domain}{port}/"


def ssh_entries(job: Job, limits: Limits = EVERYTHING) -> tuple[SshEntry, ...]:
    """The logins of a job, which may do this there: its own name for its first task, then each task's."""
    tasks = [(task_alias(job.alias, job.spec, task.role, task.index), task) for task in job.tasks]
    return tuple(
        SshEntry(
            alias=alias,
            user=alias,
            role=task.role,
            index=task.index,
            state=task.state,
            reachable=task.state is State.RUNNING or task.phase is Phase.KEPT,
            ports=_forwarded(task, limits),
        )
        for alias, task in [*[(job.alias, task) for _, task in tasks[:1]], *tasks]
    )


def _forwarded(task: Task, limits: Limits) -> dict[str, int]:
    ports = task.placement.ports if task.placement is not None else {}
    return {
        label: numbers[0]
        for label, numbers in ports.items()
        if numbers and label != SSH_LABEL and (limits.ports is None or label in limits.ports)
    }


def node(value: Node, jobs: Sequence[Job]) -> NodeWire:
    """A node with what the placed tasks of these jobs use of it."""
    used = [
        (job.spec.role(task.role).resources, task.placement)
        for job in jobs
        for task in job.tasks
        if task.placement is not None and task.placement.node == value.name and task.holds_place
    ]
    return NodeWire(
        **{name: each for name, each in value if name != "others"},
        used=NodeUse(
            tasks=len(used),
            cpus=sum(resources.cpus for resources, _ in used),
            memory_mb=sum(resources.memory_mb for resources, _ in used),
            gpus=tuple(sorted(gpu for _, placement in used for gpu in placement.gpus)),
        ),
    )
