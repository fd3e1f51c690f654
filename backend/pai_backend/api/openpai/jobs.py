"""Jobs in OpenPAI's shapes: pure functions from the model to ``openpai.wire``."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from pai_backend.api import present
from pai_backend.api.context import PublicAddress, Site
from pai_backend.api.openpai import states
from pai_backend.api.openpai.states import exit_spec, job_exit_spec
from pai_backend.api.openpai.wire import (
    Diagnostics,
    ExitMessages,
    ExitSpec,
    Hived,
    JobAttempt,
    JobStatus,
    OpenPaiDetail,
    Role,
    RoleName,
    TaskRun,
    TaskStatus,
    TaskWithRuns,
)
from pai_backend.api.wire import RetryDetails
from pai_backend.model.alias import task_alias
from pai_backend.model.job import Desired, Job, JobExit, Phase, State, Task, TaskExit
from pai_backend.store.base import JobSummary

HIVED_NONE = Hived(affinity_group_name=None, lazy_preempted=None, lazy_preemption_status=None)


def milliseconds(time: datetime) -> int:
    """A time as OpenPAI has it."""
    return int(time.timestamp() * 1000)


def _or_none(time: datetime | None) -> int | None:
    return milliseconds(time) if time is not None else None


def debug_id(user: str, name: str) -> str:
    """OpenPAI's name of a job inside Kubernetes."""
    return hashlib.md5(f"{user}~{name}".encode(), usedforsecurity=False).hexdigest()


def task_number(uid: str) -> int:
    """The number that stands for a run of a task: the same for the same uid, and exact in JavaScript."""
    return int.from_bytes(hashlib.sha256(uid.encode()).digest()[:6])


@dataclass(frozen=True)
class Attempt:
    """One attempt of a job: the latest run of each task in it, and when it began and ended."""

    job: Job
    number: int
    tasks: tuple[Task, ...]
    runs: dict[tuple[str, int], tuple[Task, ...]]
    """All runs of each task in this attempt, oldest first."""
    created: datetime
    completed: datetime | None
    retry_reason: str

    @property
    def is_latest(self) -> bool:
        """Whether the job has come to no later one."""
        return self.number == self.job.attempt

    @property
    def exit(self) -> JobExit | None:
        """Why it ended; of an earlier attempt the first failure in it stands for the decision."""
        if self.is_latest:
            return self.job.exit
        failed = [task for task in self.tasks if task.state is State.FAILED and task.exit is not None]
        first = min(failed, key=lambda task: task.exit.at if task.exit else self.created, default=None)
        if first is None or first.exit is None:
            return JobExit(status=0, message=self.retry_reason)
        return JobExit(status=first.exit.status, message=self.retry_reason, role=first.role, index=first.index)

    @property
    def state(self) -> str:
        """The job's state; for an earlier attempt how that ended."""
        if self.is_latest:
            return self.job.state.value
        return State.FAILED.value if self.exit is not None and self.exit.status else State.SUCCEEDED.value

    @property
    def phase(self) -> Phase:
        """The job's phase; an earlier attempt has ended."""
        return self.job.phase if self.is_latest else Phase.ENDED


def row(summary: JobSummary, version: int) -> dict[str, object]:
    """A list row in the words of REST v1 or v2, as ``wire.JobRow`` describes it.

    Not through that model: making it takes ten times as long as all else, and OpenPAI's pages have 5000 rows.
    """
    submitted = milliseconds(summary.submitted_at)
    return {
        "username": summary.user,
        "state": states.job_state(summary.state, version),
        "subState": states.sub_state(summary.phase),
        "executionType": summary.desired,
        "retries": summary.retries,
        "retryDetails": {
            "user": summary.retries - summary.platform_retries - summary.resource_retries,
            "platform": summary.platform_retries,
            "resource": summary.resource_retries,
        },
        "retryDelayTime": None,
        "submissionTime": submitted,
        "createdTime": submitted,
        "launchedTime": _or_none(summary.launched_at),
        "completedTime": _or_none(summary.completed_at),
        "appExitCode": summary.exit_status,
        "virtualCluster": summary.virtual_cluster,
        "totalGpuNumber": summary.gpu_count,
        "totalTaskNumber": summary.task_count,
        "totalTaskRoleNumber": summary.role_count,
        "debugId": debug_id(summary.user, summary.name),
        "name": summary.name,
        "tags": summary.tags,
        "jobPriority": summary.priority,
        "uid": summary.uid,
        "alias": summary.alias,
        "phase": summary.phase,
        "why": summary.why,
        "gpuTypes": summary.gpu_types,
    }


def detail(attempt: Attempt, version: int, now: datetime, site: Site, gateway: PublicAddress | None) -> OpenPaiDetail:
    """Everything about one attempt."""
    job = attempt.job
    return OpenPaiDetail(
        debug_id=debug_id(job.user, job.name),
        name=job.name,
        tags=job.tags,
        job_priority=job.spec.scheduling.priority_class,
        job_status=_job_status(attempt, version, now),
        task_roles=_roles(attempt, gateway),
        id=job.id,
        uid=job.uid,
        alias=job.alias,
        phase=attempt.phase,
        why=job.why,
        description=job.spec.description,
        ssh_command=present.ssh_command(job.alias, gateway),
        services=tuple(present.services(job, site)),
        warnings=job.warnings,
    )


def job_attempt(attempt: Attempt, gateway: PublicAddress | None) -> JobAttempt:
    """One line of a job's retry history."""
    job, exit_ = attempt.job, attempt.exit
    spec = _attempt_exit_spec(attempt)
    return JobAttempt(
        job_name=job.name,
        framework_name=job.id,
        user_name=job.user,
        state=attempt.state,
        origin_state=states.sub_state(attempt.phase),
        max_attempt_count=job.spec.retry_count + 1 if job.spec.retry_count >= 0 else None,
        attempt_index=attempt.number,
        job_attempt_index=attempt.number,
        job_started_time=milliseconds(job.submitted_at),
        attempt_started_time=_or_none(_launched(attempt.tasks)),
        attempt_completed_time=_or_none(attempt.completed),
        exit_code=_exit_code(attempt),
        exit_phrase=spec.phrase if spec else None,
        exit_type=spec.type if spec else None,
        exit_diagnostics=Diagnostics(diagnostics_summary=exit_.message, launcher=exit_.message) if exit_ else None,
        app_exit_spec=spec,
        total_gpu_number=_gpu_count(job),
        total_task_number=job.spec.task_count,
        total_task_role_number=len(job.spec.task_roles),
        task_roles=_roles(attempt, gateway),
        is_latest=attempt.is_latest,
    )


def task_with_runs(attempt: Attempt, role: str, index: int, gateway: PublicAddress | None) -> TaskWithRuns:
    """One task with its runs, the latest first. Raises KeyError when the attempt has no such task."""
    runs = attempt.runs[role, index]
    latest = _task(attempt, runs, gateway)
    shown = tuple(_run(attempt, run, number) for number, run in enumerate(runs))
    return TaskWithRuns(**dict(latest), attempts=shown[::-1])


def _job_status(attempt: Attempt, version: int, now: datetime) -> JobStatus:
    job, exit_ = attempt.job, attempt.exit
    launched = _launched(attempt.tasks)
    spec = _attempt_exit_spec(attempt)
    ended = attempt.completed is not None
    return JobStatus(
        username=job.user,
        state=states.job_state(attempt.state, version),
        sub_state=states.sub_state(attempt.phase),
        execution_type=job.desired,
        retries=job.retries.total,
        retry_details=RetryDetails(
            user=job.retries.user, platform=job.retries.by_platform, resource=job.retries.resource
        ),
        retry_delay_time=_delay_s(job, now),
        submission_time=milliseconds(job.submitted_at),
        created_time=milliseconds(job.submitted_at),
        launched_time=_or_none(job.launched_at),
        completed_time=_or_none(job.completed_at),
        app_exit_code=_exit_code(attempt),
        virtual_cluster=job.spec.virtual_cluster,
        total_gpu_number=_gpu_count(job),
        total_task_number=job.spec.task_count,
        total_task_role_number=len(job.spec.task_roles),
        attempt_id=attempt.number,
        attempt_state=states.ATTEMPT_COMPLETED if ended else states.sub_state(attempt.phase),
        app_id=job.uid,
        app_progress=1 if ended else 0,
        app_tracking_url="",
        app_created_time=milliseconds(attempt.created),
        app_launched_time=_or_none(launched),
        app_completed_time=_or_none(attempt.completed),
        app_exit_spec=spec,
        app_exit_diagnostics=exit_.message if exit_ else None,
        app_exit_messages=ExitMessages(container=exit_.message, runtime=None, launcher=None) if exit_ else None,
        app_exit_trigger_message=exit_.message if exit_ else None,
        app_exit_trigger_task_role_name=exit_.role if exit_ else None,
        app_exit_trigger_task_index=exit_.index if exit_ else None,
        app_exit_type=spec.type if spec else None,
    )


def _deciding(attempt: Attempt, exit_: JobExit) -> TaskExit | None:
    """The exit of the task that decided the attempt, where one did."""
    runs = attempt.runs.get((exit_.role or "", exit_.index or 0), ())
    return next((run.exit for run in reversed(runs) if run.exit and run.exit.status == exit_.status), None)


def _exit_code(attempt: Attempt) -> int | None:
    """The attempt's code: the same that stands in its exit specification when the platform ended it."""
    exit_ = attempt.exit
    if exit_ is None:
        return None
    deciding = _deciding(attempt, exit_)
    return (states.platform_code(deciding) if deciding is not None else None) or exit_.status


def _attempt_exit_spec(attempt: Attempt) -> ExitSpec | None:
    exit_ = attempt.exit
    if exit_ is None:
        return None
    deciding = _deciding(attempt, exit_)
    return job_exit_spec(exit_, deciding, stopped=attempt.state == State.STOPPED.value, at=attempt.created)


def _roles(attempt: Attempt, gateway: PublicAddress | None) -> dict[str, Role]:
    job = attempt.job
    tasks: dict[str, list[TaskStatus]] = {role.name: [] for role in job.spec.task_roles}
    for task in attempt.tasks:
        status = _task(attempt, attempt.runs[task.role, task.index], gateway)
        tasks[task.role].append(status.model_copy(update={"task_uid": task_number(task.uid)}))
    return {
        name: Role(task_role_status=RoleName(name=name), task_statuses=tuple(statuses))
        for name, statuses in tasks.items()
    }


def _task(attempt: Attempt, runs: Sequence[Task], gateway: PublicAddress | None) -> TaskStatus:
    """A task in its latest run; ``runs`` are oldest first."""
    job, task = attempt.job, runs[-1]
    alias = task_alias(job.alias, job.spec, task.role, task.index)
    shown = _run(attempt, task, len(runs) - 1)
    return TaskStatus(
        **dict(shown),
        retries=len(runs) - 1,
        accountable_retries=task.retries.charged,
        current_attempt_created_time=shown.created_time,
        current_attempt_launched_time=shown.launched_time,
        current_attempt_completed_time=shown.completed_time,
        hived=HIVED_NONE,
        alias=alias,
        phase=task.phase,
        ssh_command=present.ssh_command(alias, gateway),
    )


def _run(attempt: Attempt, task: Task, number: int) -> TaskRun:
    """One run; ``number`` counts the task's runs within the attempt, from 0."""
    job, place = attempt.job, task.placement
    return TaskRun(
        task_role_name=task.role,
        task_index=task.index,
        task_uid=task.uid,
        uid=task.uid,
        task_state=task.state.value,
        container_id=task.uid if place else None,
        container_ip=place.address if place else None,
        container_node_name=place.node if place else None,
        container_ports={label: ",".join(map(str, ports)) for label, ports in place.ports.items()} if place else None,
        container_gpus=str(sum(1 << gpu for gpu in place.gpus)) if place else None,
        container_log=log_path(job, attempt.number, task.role, task.index, number),
        container_exit_code=states.task_exit_code(job, task),
        container_exit_spec=exit_spec(task.exit) if task.exit else None,
        container_exit_diagnostics=task.exit.message if task.exit else None,
        created_time=milliseconds(attempt.created),
        launched_time=_or_none(task.started_at),
        completed_time=_or_none(task.ended_at),
        attempt_id=number,
        attempt_state=states.ATTEMPT_COMPLETED if task.state.final else states.sub_state(task.phase),
    )


def log_path(job: Job, attempt: int, role: str, index: int, run: int) -> str:
    """Where the logs of one run are listed."""
    owner, role = quote(job.id, safe="~"), quote(role, safe="~")
    return f"/api/v2/jobs/{owner}/attempts/{attempt}/taskRoles/{role}/taskIndex/{index}/attempts/{run}/logs"


def _launched(tasks: Sequence[Task]) -> datetime | None:
    return min((task.started_at for task in tasks if task.started_at), default=None)


def _gpu_count(job: Job) -> int:
    return sum(role.instances * role.resources.gpus for role in job.spec.task_roles)


def _delay_s(job: Job, now: datetime) -> int | None:
    if job.phase is not Phase.BACKING_OFF or job.backoff_until is None or job.desired is Desired.STOP:
        return None
    return max(0, round((job.backoff_until - now).total_seconds()))
