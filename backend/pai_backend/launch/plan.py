"""The plan of a task: everything an engine needs to start it, decided."""

from __future__ import annotations

from collections.abc import Mapping

from pai_backend.launch.environment import environment
from pai_backend.model.errors import Bug
from pai_backend.model.job import Job, Task
from pai_backend.model.plan import SshPlan, TaskPlan


def build_plan(
    job: Job,
    task: Task,
    *,
    ssh: SshPlan | None,
    extra_env: Mapping[str, str],
    default_fs_uri: str = "",
) -> TaskPlan:
    """The plan for ``task`` where it is placed; a function of its arguments alone.

    ``extra_env`` holds defaults that the platform adds, such as a token for Jupyter: jobEnvs may set the
    same names and win, so the document's word on its own programs stands. The command is the document's,
    untouched: it goes through exactly one bash parse, in the engine.
    Raises Bug when the task has no placement.
    """
    if task.placement is None:
        raise Bug(f"task {task.uid} has no placement")
    role = job.spec.role(task.role)
    return TaskPlan(
        uid=task.uid,
        job_name=job.name,
        user=job.user,
        role=task.role,
        index=task.index,
        image=job.spec.image,
        command=role.command,
        env=dict(extra_env) | environment(job, task, default_fs_uri=default_fs_uri),
        placement=task.placement,
        cpus=role.resources.cpus,
        memory_mb=role.resources.memory_mb,
        shm_mb=role.resources.shm_mb,
        ssh=ssh,
    )
