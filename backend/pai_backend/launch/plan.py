"""The plan of a task: everything an engine needs to start it, decided; with the environment variables of the task.

They are the tables of the seeds and their kin of OpenPAI. Source: the SCM guide, section 4.1; the QIZHI guide's table;
OpenPAI v1 and v2 for exact formats and for older names that images still read; FrameworkController for ``FC_*``.
``tests/unit/launch/test_environment.py`` has the whole table, each name with where it is from.

All peers of a gang are placed before any task starts, so every task has the addresses of all from the
beginning. What all tasks of a job are told is made once for all of them (``directories``); here is what is a
task's own, and how both join with the variables of the document.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pai_backend.launch.directories import Pairs, comma, directories, own_ports, resource, text_of_count
from pai_backend.launch.job_info import JobParts, job_parts
from pai_backend.launch.room import VARIABLE_BYTES, entry_bytes
from pai_backend.launch.service_addresses import FAMILY, ServiceSite, service_variables
from pai_backend.launch.spelling import qizhi_twins, second_spellings
from pai_backend.model.errors import Bug
from pai_backend.model.job import Job, Task
from pai_backend.model.plan import RegistryLogin, SshPlan, TaskPlan
from pai_backend.model.spec import Dialect, JobSpec, TaskRole
from pai_backend.model.tags import UnresolvedTag, fill, scalar
from pai_backend.model.text import Text

TRUNCATED = "PAI_ENV_TRUNCATED"
"""Set only when variables were left out for lack of room: patterns of their names, with commas between."""


def environment(
    job: Job,
    task: Task,
    *,
    default_fs_uri: str = "",
    secrets: Mapping[str, Any] | None = None,
    parts: JobParts | None = None,
) -> dict[str, str]:
    """All variables that the platform and the document give to ``task``; deterministic.

    A task of ``job`` without a placement is left out of the variables about addresses and ports. An engine
    adds :func:`path_variables`. ``parts`` are the job's :func:`job_parts`, made here when they are not given.

    jobEnvs come last and as written: no ``$NAME`` in them is expanded, what is no text is given as JSON.
    They cannot replace a variable of the platform: the seeds say that they are available in the
    container and not to be replaced, and a task whose peers' addresses are a user's invention helps
    none. ``protocol`` warns of such names.

    Tags of secrets in a v2 document stay as they are when ``secrets`` is None, and variables of ``secretEnv`` are left
    out. Raises UnresolvedTag when there are secrets and one that a tag names is not among them.
    """
    parts = parts or job_parts(with_own(job, task), default_fs_uri)
    own = _own(job, task)
    left_out = [*parts.left_out, *_drop_oversized(own)]
    table = parts.shared.copy()
    table.update(own)
    if left_out:
        table[TRUNCATED] = ",".join(left_out)
    for name, text in _of_document(job.spec, secrets):
        table.setdefault(name, text)
    return table


def path_variables(env: Mapping[str, str], *, work_dir: str, job_info_file: str) -> dict[str, str]:
    """What only an engine can add to a plan's environment: where it put the task's directory and job info file.

    A task whose variables also stand under ``QIZHI_`` gets these two under both prefixes.
    """
    own = {"PAI_WORK_DIR": work_dir, "PAI_JOB_INFO_FILE": job_info_file}
    return own | qizhi_twins(own) if "QIZHI_JOB_NAME" in env else own


def with_own(job: Job, own: Task) -> Job:
    """``job`` with ``own`` in the place of its copy of that task, which may be older."""
    if any(task is own for task in job.tasks):
        return job
    others = [task for task in job.tasks if (task.role, task.index) != (own.role, own.index)]
    return job.model_copy(update={"tasks": (*others, own)})


def _own(job: Job, task: Task) -> dict[str, str]:
    """What is the task's own, under every prefix and spelling."""
    role = job.spec.role(task.role)
    table: dict[str, str] = {}
    for name, value in (*_of_role(job, role), *_of_task(job, role, task)):
        table.setdefault(name, value)
    if job.spec.dialect is Dialect.QIZHI:
        table |= qizhi_twins(table)
        twin = "QIZHI_CONTAINER_HOST_PORT_LIST"
        if twin in table:  # the QIZHI guide shows "label:port;label:port", with nothing behind the last
            table[twin] = table[twin].removesuffix(";")
        for label, ports in own_ports(role, task):  # the QIZHI guide prints two underscores
            table.setdefault(f"QIZHI_CONTAINER_HOST__{label}_PORT_LIST", comma(ports))
    return {**second_spellings(table), **table}


def _of_role(job: Job, own: TaskRole) -> Pairs:
    """The numbers of the task's own role, with the names before 0.5 beside them."""
    need = own.resources
    prefix = "PAI_CURRENT_TASK_ROLE"
    yield f"{prefix}_NAME", own.name
    yield "PAI_TASK_ROLE_NAME", own.name
    yield "FC_TASKROLE_NAME", own.name
    yield "PAI_TASK_ROLE_NO", str([role.name for role in job.spec.task_roles].index(own.name))
    for name in (f"{prefix}_TASK_COUNT", "PAI_TASK_ROLE_NUM"):
        yield name, str(own.instances)
    for name in (f"{prefix}_CPU_COUNT", "PAI_TASK_CPU_NUM"):
        yield name, str(need.cpus)
    for name in (f"{prefix}_MEM_MB", "PAI_TASK_MEM_MB"):
        yield name, str(need.memory_mb)
    for name in (f"{prefix}_GPU_COUNT", "PAI_TASK_GPU_NUM"):
        yield name, str(need.gpus)
    yield f"{prefix}_SHM_MB", str(need.shm_mb)
    yield f"{prefix}_MIN_FAILED_TASK_COUNT", text_of_count(own.completion.min_failed)
    yield f"{prefix}_MIN_SUCCEEDED_TASK_COUNT", text_of_count(own.completion.min_succeeded)
    yield "PAI_RESOURCE", resource(own)


def _of_task(job: Job, own: TaskRole, task: Task) -> Pairs:
    """Names, address and ports of the task itself; a port variable with one port is fit for ``--port``."""
    index = ("PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX", "PAI_TASK_ROLE_INDEX", "PAI_TASK_INDEX", "FC_TASK_INDEX")
    for name in index:
        yield name, str(task.index)
    yield "PAI_CONTAINER_ID", task.uid
    yield "FC_FRAMEWORK_ATTEMPT_ID", str(job.attempt)
    yield "FC_TASK_ATTEMPT_ID", str(task.attempt)
    if task.placement is None:
        return
    for name in ("PAI_CONTAINER_HOST_IP", "PAI_CURRENT_CONTAINER_IP"):
        yield name, task.placement.address
    groups = list(own_ports(own, task))
    # Every group ends with ";", the last one too: OpenPAI has it so, whatever its documents show.
    yield "PAI_CONTAINER_HOST_PORT_LIST", "".join(f"{label}:{comma(ports)};" for label, ports in groups)
    for label, ports in groups:
        yield f"PAI_CONTAINER_HOST_{label}_PORT_LIST", comma(ports)
        if label == "http" and ports:
            yield "PAI_CONTAINER_HOST_PORT", str(ports[0])
            yield "PAI_CURRENT_CONTAINER_PORT", str(ports[0])
        if label == "ssh" and ports:
            yield "PAI_CONTAINER_SSH_PORT", str(ports[0])


def _drop_oversized(table: dict[str, str]) -> list[str]:
    """Take out what is too long for one variable, and name it; only a task with thousands of ports has such."""
    names = [name for name, value in table.items() if entry_bytes(name, value) > VARIABLE_BYTES]
    for name in names:
        del table[name]
    return names


def _of_document(spec: JobSpec, secrets: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
    """The document's own variables as texts. Only a v2 document has tags; in others ``<%`` is text like any other."""
    tagged = spec.dialect in (Dialect.OPENPAI_V2, Dialect.OPENPAI_V2_DRAFT)
    for name, given in spec.env.items():
        text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, separators=(",", ":"))
        yield name, fill(text, "secrets", secrets) if tagged and secrets is not None else text
    if secrets is None:
        return
    for name, secret in spec.secret_env.items():
        if secret not in secrets:
            raise UnresolvedTag(name, Text("the job has no secret {secret}", secret=secret))
        yield name, scalar(secrets[secret])


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
    services: ServiceSite | None = None,
) -> TaskPlan:
    """The plan for ``task`` where it is placed; a function of its arguments alone.

    ``extra_env`` holds defaults that the platform adds, such as a token for Jupyter: jobEnvs may set the
    same names and win, so the document's word on its own programs stands. ``secrets`` are the values of the
    document's secrets, and ``parts`` the job's ``job_parts``, made here when they are not given: a caller that
    plans many tasks of a job passes them. ``services``: where they are found, for variables with their addresses.

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
    if services is not None:
        addresses = service_variables(job, task, services)
        more = {TRUNCATED: ",".join(filter(None, [env.get(TRUNCATED), FAMILY]))}
        env |= more if addresses is None else addresses
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
        gang=job.spec.task_count if job.spec.scheduling.gang_allocation else 1,
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
        pods=job.spec.kubernetes,
        inputs=where.inputs,
        outputs=where.outputs,
        keep_on_failure=job.spec.debug,
        debugger=job.spec.debugger,
        job_info=parts.info,
    )
    # Not validated again: the texts are our own, and of a large job there are ten thousand for every task.
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
