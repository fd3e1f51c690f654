"""The plan of a task: everything an engine needs to start it, decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pai_backend.launch.directories import directories
from pai_backend.launch.environment import TRUNCATED, environment, with_own
from pai_backend.launch.parts import JobParts, job_parts
from pai_backend.model.errors import Bug
from pai_backend.model.job import Job, Task
from pai_backend.model.plan import RegistryLogin, SshPlan, TaskPlan
from pai_backend.model.spec import Dialect, JobSpec, TaskRole
from pai_backend.model.tags import fill

NO_SECRETS: Mapping[str, Any] = MappingProxyType({})

STRICT = "set -o errexit -o nounset -o pipefail"
"""How OpenPAI v2 runs the commands of a role: the first that fails ends the task, and so does an unset name."""


def build_plan(
    job: Job,
    task: Task,
    *,
    ssh: SshPlan | None,
    extra_env: Mapping[str, str],
    default_fs_uri: str = "",
    secrets: Mapping[str, Any] = NO_SECRETS,
    parts: JobParts | None = None,
    image_login: RegistryLogin | None = None,
) -> TaskPlan:
    """The plan for ``task`` where it is placed; a function of its arguments alone.

    ``extra_env`` holds defaults that the platform adds, such as a token for Jupyter: jobEnvs may set the
    same names and win, so the document's word on its own programs stands. ``secrets`` are the values of the
    document's secrets, and ``parts`` the job's ``job_parts``, made here when they are not given: whoever
    plans many tasks of a job passes them.

    Raises Bug when the task has no placement, UnresolvedTag when a v2 document names a secret that it does
    not have; neither holds a value.
    """
    if task.placement is None:
        raise Bug(f"task {task.uid} has no placement")
    role = job.spec.role(task.role)
    parts = parts or job_parts(with_own(job, task), default_fs_uri)
    env = environment(job, task, secrets=secrets, parts=parts)
    for name, value in extra_env.items():
        env.setdefault(name, value)
    where = directories(job, default_fs_uri)
    plan = TaskPlan(
        uid=task.uid,
        job_name=job.name,
        user=job.user,
        role=task.role,
        index=task.index,
        job_attempt=task.job_attempt,
        job_tasks=job.spec.task_count,
        job_placed=parts.placed,
        virtual_cluster=job.spec.virtual_cluster,
        image=job.spec.image_of(role),
        command=_command(job.spec, role, secrets, env.get(TRUNCATED, "")),
        env={},
        placement=task.placement,
        cpus=role.resources.cpus,
        memory_mb=role.resources.memory_mb,
        shm_mb=role.resources.shm_mb,
        ssh=ssh,
        image_login=image_login,
        infiniband=role.infiniband,
        inputs=where.inputs,
        outputs=where.outputs,
        keep_on_failure=job.spec.debug,
        job_info=parts.info,
    )
    # Not validated anew: the texts are our own, and of a large job there are ten thousand for every task.
    return plan.model_copy(update={"env": env})


def _command(spec: JobSpec, role: TaskRole, secrets: Mapping[str, Any], left_out: str) -> str:
    """The role's shell text, for exactly one bash parse.

    That of a v1 document is passed on untouched: ``<%`` in it is shell. What must come before it stands in
    one line of its own, so that line numbers in bash's messages are off by one at most.
    """
    text = role.command
    if spec.dialect in (Dialect.OPENPAI_V2, Dialect.OPENPAI_V2_DRAFT):
        text = fill(text, "secrets", secrets)
    before: Sequence[str] = ()
    if left_out:
        told = f"pai: this job is too large for variables named {left_out}; PAI_JOB_INFO_FILE names a file with all"
        before = (f"echo '{told}' >&2",)
    if role.strict:
        before = (*before, STRICT)
    return f"{'; '.join(before)}\n{text}" if before else text
