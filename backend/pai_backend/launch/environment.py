"""The environment variables of a task: the table of the seeds and its kin of OpenPAI v1.

Source: the SCM guide, section 4.1; the QIZHI guide's table; OpenPAI v1 for exact formats and older
names that images still read. Left out are the identifiers of YARN (APP_ID, PAI_CONTAINER_ID).

All peers are placed before any task starts, so every task has the addresses of all from the beginning.
Role names and port labels stand in variable names as written. Names with ``.`` or ``~`` cannot be read
by a shell, so those variables are given a second time with ``_`` in their place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from pai_backend.launch.directories import directories
from pai_backend.model.job import Job, Task
from pai_backend.model.spec import Dialect, TaskRole

Pairs = Iterator[tuple[str, str]]
_NOT_SHELL = re.compile(r"[^A-Za-z0-9_]")


def environment(job: Job, task: Task, *, default_fs_uri: str = "", work_dir: str = "") -> dict[str, str]:
    """All variables that the platform and the document give to ``task``; deterministic.

    A task of ``job`` without a placement is left out of the variables about addresses and ports.
    ``PAI_WORK_DIR`` is set when ``work_dir`` is; else whoever knows the directory adds it.

    jobEnvs come last and as written: no ``$NAME`` in them is expanded, what is no text is given as JSON.
    They cannot replace a variable of the platform: the seeds say that they are available in the
    container and not to be replaced, and a task whose peers' addresses are a user's invention helps
    nobody. ``protocol`` warns of such names.
    """
    own = job.spec.role(task.role)
    tasks = _with_own(job, task)
    table: dict[str, str] = {}
    # setdefault: where two names meet (a role called "a_0" beside a role "a"), the earlier one stays.
    for name, value in _of_platform(job, own, task, tasks, default_fs_uri, work_dir):
        table.setdefault(name, value)
    if job.spec.dialect is Dialect.QIZHI:
        table |= {"QIZHI_" + name[len("PAI_") :]: value for name, value in table.items() if name.startswith("PAI_")}
        for label, ports in _own_ports(own, task):  # the QIZHI guide prints two underscores
            table.setdefault(f"QIZHI_CONTAINER_HOST__{label}_PORT_LIST", _comma(ports))
    for name in [name for name in table if not name.isidentifier()]:
        table.setdefault(_NOT_SHELL.sub("_", name), table[name])
    for name, given in job.spec.env.items():
        table.setdefault(name, given if isinstance(given, str) else _json(given))
    return table


def path_variables(env: Mapping[str, str], *, work_dir: str, job_info_file: str) -> dict[str, str]:
    """What only an engine can add to a plan's environment: where it put the task's directory and job info file.

    A task whose variables also stand under ``QIZHI_`` gets these two under both prefixes.
    """
    own = {"PAI_WORK_DIR": work_dir, "PAI_JOB_INFO_FILE": job_info_file}
    if "QIZHI_JOB_NAME" in env:
        own |= {"QIZHI_" + name[len("PAI_") :]: value for name, value in own.items()}
    return own


def _of_platform(
    job: Job, own: TaskRole, task: Task, tasks: Sequence[Task], default_fs_uri: str, work_dir: str
) -> Pairs:
    if work_dir:
        yield "PAI_WORK_DIR", work_dir
    yield from _of_job(job, default_fs_uri)
    yield from _of_own_role(job, own)
    yield from _of_own_task(own, task)
    for role in job.spec.task_roles:
        yield from _of_role(role)
    for role in job.spec.task_roles:
        yield from _of_peers(role, [peer for peer in tasks if peer.role == role.name])
    yield from _by_role_number(job, tasks)


def _of_job(job: Job, default_fs_uri: str) -> Pairs:
    """What all tasks of the job share. PAI_JOB_NAME is the jobName of the document, as the seeds say."""
    spec = job.spec
    where = directories(job, default_fs_uri)
    roles = ",".join(role.name for role in spec.task_roles)
    yield "PAI_JOB_NAME", job.name
    yield "PAI_USER_NAME", job.user
    yield "PAI_USERNAME", job.user
    yield "HADOOP_USER_NAME", job.user
    yield "FRAMEWORK_NAME", job.id
    yield "PAI_DEFAULT_FS_URI", default_fs_uri
    yield "PAI_JOB_VC_NAME", spec.virtual_cluster
    yield "PAI_VIRTUAL_CLUSTER", spec.virtual_cluster
    yield "PAI_DATA_DIR", where.data_dir
    yield "PAI_OUTPUT_DIR", where.output_dir
    yield "PAI_CODE_DIR", where.code_dir
    for name in ("PAI_TASK_ROLE_COUNT", "PAI_JOB_TASK_ROLE_COUNT", "PAI_TASK_ROLES_NUM"):
        yield name, str(len(spec.task_roles))
    for name in ("PAI_TASK_ROLE_LIST", "PAI_JOB_TASK_ROLE_LIST"):
        yield name, roles
    for name in ("PAI_JOB_TASK_COUNT", "PAI_TASKS_NUM"):
        yield name, str(spec.task_count)
    if spec.kill_all_on_completed is not None or spec.dialect is Dialect.QIZHI:
        yield "PAI_KILL_ALL_ON_COMPLETED_TASK_NUM", str(spec.kill_all_on_completed or 0)


def _of_own_role(job: Job, own: TaskRole) -> Pairs:
    """The numbers of the task's own role, with the names before 0.5 beside them."""
    need = own.resources
    prefix = "PAI_CURRENT_TASK_ROLE"
    yield f"{prefix}_NAME", own.name
    yield "PAI_TASK_ROLE_NAME", own.name
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
    yield f"{prefix}_MIN_FAILED_TASK_COUNT", _count(own.completion.min_failed)
    yield f"{prefix}_MIN_SUCCEEDED_TASK_COUNT", _count(own.completion.min_succeeded)
    yield "PAI_RESOURCE", _resource(own)


def _of_own_task(own: TaskRole, task: Task) -> Pairs:
    """Index, address and ports of the task itself; a port variable with one port is fit for ``--port``."""
    for name in ("PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX", "PAI_TASK_ROLE_INDEX", "PAI_TASK_INDEX"):
        yield name, str(task.index)
    if task.placement is None:
        return
    for name in ("PAI_CONTAINER_HOST_IP", "PAI_CURRENT_CONTAINER_IP"):
        yield name, task.placement.address
    groups = list(_own_ports(own, task))
    # Every group ends with ";", the last one too: OpenPAI has it so, whatever its documents show.
    yield "PAI_CONTAINER_HOST_PORT_LIST", "".join(f"{label}:{_comma(ports)};" for label, ports in groups)
    for label, ports in groups:
        yield f"PAI_CONTAINER_HOST_{label}_PORT_LIST", _comma(ports)
        if label == "http" and ports:
            yield "PAI_CONTAINER_HOST_PORT", str(ports[0])
            yield "PAI_CURRENT_CONTAINER_PORT", str(ports[0])
        if label == "ssh" and ports:
            yield "PAI_CONTAINER_SSH_PORT", str(ports[0])


def _of_role(role: TaskRole) -> Pairs:
    """What every task knows of any role."""
    yield f"PAI_TASK_ROLE_TASK_COUNT_{role.name}", str(role.instances)
    yield f"PAI_RESOURCE_{role.name}", _resource(role)
    yield f"PAI_MIN_FAILED_TASK_COUNT_{role.name}", _count(role.completion.min_failed)
    yield f"PAI_MIN_SUCCEEDED_TASK_COUNT_{role.name}", _count(role.completion.min_succeeded)


def _of_peers(role: TaskRole, tasks: Sequence[Task]) -> Pairs:
    """Addresses and ports of the tasks of one role, in order of their index."""
    yield f"PAI_TASK_ROLE_{role.name}_HOST_LIST", _host_list(tasks)
    for task in tasks:
        if task.placement is None:
            continue
        yield f"PAI_HOST_IP_{role.name}_{task.index}", task.placement.address
        for label, ports in _own_ports(role, task):
            yield f"PAI_PORT_LIST_{role.name}_{task.index}_{label}", _comma(ports)
            yield f"PAI_{role.name}_{task.index}_{label}_PORT", _comma(ports)


def _by_role_number(job: Job, tasks: Sequence[Task]) -> Pairs:
    """Host lists under the role's number, as 0.5 had them; last, because a role may be called "0"."""
    for number, role in enumerate(job.spec.task_roles):
        yield f"PAI_TASK_ROLE_{number}_HOST_LIST", _host_list([task for task in tasks if task.role == role.name])


def _with_own(job: Job, own: Task) -> list[Task]:
    """The job's tasks by index, with ``own`` in the place of the job's copy of it, which may be older."""
    others = [task for task in job.tasks if (task.role, task.index) != (own.role, own.index)]
    return sorted([*others, own], key=lambda task: task.index)


def _own_ports(role: TaskRole, task: Task) -> Iterator[tuple[str, tuple[int, ...]]]:
    """(label, ports) in the order of the document."""
    if task.placement is not None:
        for port in role.ports:
            if port.label in task.placement.ports:
                yield port.label, task.placement.ports[port.label]


def _host_list(tasks: Sequence[Task]) -> str:
    """``address:port`` of each task's first http port."""
    return ",".join(
        f"{task.placement.address}:{task.placement.ports['http'][0]}"
        for task in tasks
        if task.placement is not None and task.placement.ports.get("http")
    )


def _resource(role: TaskRole) -> str:
    need = role.resources
    return f"{need.gpus},{need.cpus},{need.memory_mb},{need.shm_mb}"


def _count(number: int | None) -> str:
    return "" if number is None else str(number)


def _comma(ports: Sequence[int]) -> str:
    return ",".join(map(str, ports))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
