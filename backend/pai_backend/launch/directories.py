"""The directory fields of a document, and what every task of a job knows of the job and of all its tasks.

Of the four directory fields the variables in them are replaced, as OpenPAI v1 does it. Only these fields are rewritten;
a command sees the same names as ordinary shell variables. Source: OpenPAI v1 (the bare job name is put in, not
``user~job``); the seeds for the default outputDir.

A job of n tasks has O(n) variables about all its tasks; making them for each task again would be O(n²).

Where tasks do not reach the default file system, such as pods a directory of the backend, a job would lose what it
writes there, and nothing shows it until the results are gone: so that is told at submit.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from pai_backend.launch.room import TOTAL_BYTES, entry_bytes, fitting
from pai_backend.launch.spelling import qizhi_twins, second_spellings
from pai_backend.model import code_tree
from pai_backend.model.job import Job, Task
from pai_backend.model.plan import StagedInput
from pai_backend.model.spec import Dialect, JobSpec, TaskRole
from pai_backend.model.user_secret import LONGEST

CODE_BYTES = 200_000_000
"""The most that a codeDir may hold. Source: OpenPAI v1; the seeds say "less than 200MB"."""

_VARIABLE = re.compile(r"\$(?:PAI|QIZHI)_(DEFAULT_FS_URI|JOB_NAME|USER_NAME|USERNAME)")
_WITHOUT_FIELDS = (Dialect.OPENPAI_V2, Dialect.OPENPAI_V2_DRAFT)  # v2 has prerequisites in their place


@dataclass(frozen=True)
class Directories:
    """Where a job's inputs and outputs are, as URIs or paths; empty means none was named."""

    auth_file: str
    data_dir: str
    output_dir: str
    code_dir: str

    @property
    def inputs(self) -> tuple[StagedInput, ...]:
        """What is copied into a task's working directory: the codeDir, under its own base name, or a code tree's."""
        if not self.code_dir:
            return ()
        name = _base_name(self.code_dir)
        if tree := code_tree.split_name(name):
            return (StagedInput(uri=self.code_dir, name=tree[0], max_bytes=code_tree.TREE_BYTES),)
        return (StagedInput(uri=self.code_dir, name=name, max_bytes=CODE_BYTES),)

    @property
    def outputs(self) -> tuple[str, ...]:
        """What is made before a task's command runs: the outputDir."""
        return (self.output_dir,) if self.output_dir else ()


def directories(job: Job, default_fs_uri: str = "") -> Directories:
    """The directories of ``job``.

    Without an outputDir it is ``<default_fs_uri>/Output/<user>/<job uid>``: the seeds' ``Output/<jobName>`` is one
    directory for all users with a job of that name. It is empty when there is no default file system, because a path
    at the root of the task's machine is not a user's output directory. v2 knows no outputDir, so that a job of v2 has
    one where a command of it names the variable: empty, it would be that root.
    """
    spec = job.spec
    output = spec.output_dir
    if not output and default_fs_uri and (spec.dialect not in _WITHOUT_FIELDS or _counts_on_one(spec)):
        output = f"{default_fs_uri.rstrip('/')}/Output/$PAI_USER_NAME/{job.uid}"
    values = {
        "DEFAULT_FS_URI": default_fs_uri,
        "JOB_NAME": job.name,
        "USER_NAME": job.user,
        "USERNAME": job.user,
    }

    def substituted(text: str) -> str:
        # One pass: what is put in is not looked at again.
        return _VARIABLE.sub(lambda found: values[found[1]], text)

    return Directories(
        auth_file=substituted(spec.auth_file),
        data_dir=substituted(spec.data_dir),
        output_dir=substituted(output),
        code_dir=substituted(spec.code_dir),
    )


def output_path(job: Job, default_fs_uri: str) -> str:
    """The path of the job's output in the default file system; empty where it has none there."""
    root, place = default_fs_uri.rstrip("/"), directories(job, default_fs_uri).output_dir
    if not default_fs_uri or not place.startswith(f"{root}/"):
        return ""
    names = [name for name in place.removeprefix(root).split("/") if name not in ("", ".")]
    return "" if ".." in names else "/" + "/".join(names)


def _counts_on_one(spec: JobSpec) -> bool:
    """Whether a command writes to its output directory."""
    return any(name in role.command for role in spec.task_roles for name in ("PAI_OUTPUT_DIR", "QIZHI_OUTPUT_DIR"))


def _base_name(uri: str) -> str:
    """The last part of the path; ``code`` for the root of a file system, which has none."""
    _, scheme, rest = uri.rpartition("://")
    path = rest.partition("/")[2] if scheme else rest  # what stands before the first "/" is a host
    parts = [part for part in path.split("/") if part not in ("", ".", "..")]
    return parts[-1] if parts else "code"


Pairs = Iterator[tuple[str, str]]


@dataclass(frozen=True)
class SharedVariables:
    """Variables that are the same for every task of a job, and patterns of those that had no room."""

    variables: dict[str, str]
    left_out: tuple[str, ...]


def shared_environment(job: Job, default_fs_uri: str = "") -> SharedVariables:
    """The shared variables of ``job`` as it is placed now. Tasks without a placement have no address in them.

    Where two names meet (a role called "a_0" beside a role "a"), the earlier one stays.
    """
    families = {name: first_wins(pairs) for name, pairs in _families(job, default_fs_uri)}
    if job.spec.dialect is Dialect.QIZHI:
        families = {name: family | qizhi_twins(family) for name, family in families.items()}
    taken = sum(entry_bytes(name, str(value)) for name, value in job.spec.env.items())
    if job.spec.secret_env:  # whose values are not known here
        taken += LONGEST + sum(entry_bytes(name, "") for name in job.spec.secret_env)
    left_out = fitting(families, min(taken, TOTAL_BYTES))
    kept = [family for name, family in families.items() if name not in left_out]
    table = first_wins(pair for family in kept for pair in family.items())
    return SharedVariables({**second_spellings(table), **table}, left_out)


def first_wins(pairs: Pairs) -> dict[str, str]:
    """A table of the pairs; of two with one name the first stays."""
    table: dict[str, str] = {}
    for name, value in pairs:
        table.setdefault(name, value)
    return table


def _families(job: Job, default_fs_uri: str) -> Iterator[tuple[str, Pairs]]:
    """The shared variables by family, see ``room``; the nameless family always stays."""
    roles = job.spec.task_roles
    by_role: dict[str, list[Task]] = {role.name: [] for role in roles}
    for task in sorted(job.tasks, key=lambda task: task.index):
        by_role[task.role].append(task)
    tasks = [(role, by_role[role.name]) for role in roles]
    yield "", _of_job(job, default_fs_uri)
    yield "PAI_*TASK_ROLE_LIST", _role_lists(roles)
    yield "PAI_TASK_ROLE_TASK_COUNT_*", _counts(roles)
    yield "PAI_RESOURCE_*", ((f"PAI_RESOURCE_{role.name}", resource(role)) for role in roles)
    yield "PAI_MIN_*_TASK_COUNT_*", _completions(roles)
    yield "PAI_TASK_ROLE_*_HOST_LIST", _host_lists(tasks)
    yield "PAI_TASK_ROLE_INSTANCES", _instances(roles)
    yield "PAI_HOST_IP_*", _addresses(tasks)
    yield "PAI_PORT_LIST_*", _ports(tasks, "PAI_PORT_LIST_{role}_{index}_{label}")
    yield "PAI_*_PORT", _ports(tasks, "PAI_{role}_{index}_{label}_PORT")


def _of_job(job: Job, default_fs_uri: str) -> Pairs:
    """What all tasks of the job share. PAI_JOB_NAME is the jobName of the document, as the seeds say."""
    spec = job.spec
    where = directories(job, default_fs_uri)
    yield "PAI_JOB_NAME", job.name
    yield "PAI_USER_NAME", job.user
    yield "PAI_USERNAME", job.user
    yield "HADOOP_USER_NAME", job.user
    for name in ("FRAMEWORK_NAME", "PAI_FRAMEWORK_NAME", "FC_FRAMEWORK_NAME"):
        yield name, job.id
    yield "APP_ID", job.uid
    yield "PAI_DEFAULT_FS_URI", default_fs_uri
    yield "PAI_JOB_VC_NAME", spec.virtual_cluster
    yield "PAI_VIRTUAL_CLUSTER", spec.virtual_cluster
    yield "PAI_DATA_DIR", where.data_dir
    yield "PAI_OUTPUT_DIR", where.output_dir
    yield "PAI_CODE_DIR", where.code_dir
    for name in ("PAI_TASK_ROLE_COUNT", "PAI_JOB_TASK_ROLE_COUNT", "PAI_TASK_ROLES_NUM"):
        yield name, str(len(spec.task_roles))
    for name in ("PAI_JOB_TASK_COUNT", "PAI_TASKS_NUM"):
        yield name, str(spec.task_count)
    if spec.kill_all_on_completed is not None or spec.dialect is Dialect.QIZHI:
        yield "PAI_KILL_ALL_ON_COMPLETED_TASK_NUM", str(spec.kill_all_on_completed or 0)


def _role_lists(roles: Sequence[TaskRole]) -> Pairs:
    for name in ("PAI_TASK_ROLE_LIST", "PAI_JOB_TASK_ROLE_LIST"):
        yield name, ",".join(role.name for role in roles)


def _counts(roles: Sequence[TaskRole]) -> Pairs:
    for role in roles:
        yield f"PAI_TASK_ROLE_TASK_COUNT_{role.name}", str(role.instances)


def _completions(roles: Sequence[TaskRole]) -> Pairs:
    for role in roles:
        yield f"PAI_MIN_FAILED_TASK_COUNT_{role.name}", text_of_count(role.completion.min_failed)
        yield f"PAI_MIN_SUCCEEDED_TASK_COUNT_{role.name}", text_of_count(role.completion.min_succeeded)


def _instances(roles: Sequence[TaskRole]) -> Pairs:
    """Every task as ``role:index``, which the ssh scripts of OpenPAI v2's runtime read."""
    yield (
        "PAI_TASK_ROLE_INSTANCES",
        ",".join(f"{role.name}:{index}" for role in roles for index in range(role.instances)),
    )


def _host_lists(tasks: Sequence[tuple[TaskRole, Sequence[Task]]]) -> Pairs:
    """``address:port`` of each task's first http port, by index; last under the role's number, as 0.5 had them."""
    lists = [",".join(_hosts(own)) for _, own in tasks]
    for (role, _), hosts in zip(tasks, lists, strict=True):
        yield f"PAI_TASK_ROLE_{role.name}_HOST_LIST", hosts
    for number, hosts in enumerate(lists):  # last, because a role may be called "0"
        yield f"PAI_TASK_ROLE_{number}_HOST_LIST", hosts


def _hosts(tasks: Sequence[Task]) -> Iterator[str]:
    for task in tasks:
        if task.placement is not None and task.placement.ports.get("http"):
            yield f"{task.placement.address}:{task.placement.ports['http'][0]}"


def _addresses(tasks: Sequence[tuple[TaskRole, Sequence[Task]]]) -> Pairs:
    for role, own in tasks:
        for task in own:
            if task.placement is not None:
                yield f"PAI_HOST_IP_{role.name}_{task.index}", task.placement.address


def _ports(tasks: Sequence[tuple[TaskRole, Sequence[Task]]], pattern: str) -> Pairs:
    for role, own in tasks:
        for task in own:
            for label, ports in own_ports(role, task):
                yield pattern.format(role=role.name, index=task.index, label=label), comma(ports)


def own_ports(role: TaskRole, task: Task) -> Iterator[tuple[str, tuple[int, ...]]]:
    """(label, ports) of a placed task in the order of the document."""
    if task.placement is not None:
        for port in role.ports:
            if port.label in task.placement.ports:
                yield port.label, task.placement.ports[port.label]


def resource(role: TaskRole) -> str:
    """``gpus,cpus,memory,shm`` of a role, the last two in MiB, as OpenPAI prints it."""
    need = role.resources
    return f"{need.gpus},{need.cpus},{need.memory_mb},{need.shm_mb}"


def text_of_count(number: int | None) -> str:
    """A count of tasks; empty for a rule that is switched off."""
    return "" if number is None else str(number)


def comma(ports: Sequence[int]) -> str:
    """Port numbers in one variable."""
    return ",".join(map(str, ports))


_NAMES = re.compile(r"\b(?:PAI|QIZHI)_(?:OUTPUT_DIR|DEFAULT_FS_URI)\b")
_SAID_ONLY = {"auth_file": "", "description": "", "name": "", "submit_from": ""}  # the authFile is read by the backend
_FIELDS = {"codeDir": "code_dir", "dataDir": "data_dir", "outputDir": "output_dir"}


@dataclass(frozen=True)
class TaskReach:
    """Which places tasks reach: every URI that is of no single machine, and of paths those below ``directories``.

    ``directories`` None: all paths of this machine, since tasks run on it.
    """

    default_fs_uri: str = ""
    directories: tuple[str, ...] | None = None

    @property
    def task_fs_uri(self) -> str:
        """The default file system as tasks are told; empty where they do not reach it."""
        return self.default_fs_uri if self.reaches(self.default_fs_uri) else ""

    @property
    def default_directory(self) -> str | None:
        """The directory that tasks of other machines have as the default file system; None for any other storage."""
        return _path(self.default_fs_uri) if self.directories is not None and self.task_fs_uri else None

    def reaches(self, place: str) -> bool:
        """Whether what a task writes to this path or URI is there when the task is not."""
        path = _path(place)
        if path is None or self.directories is None:
            return True
        return any(PurePosixPath(path).is_relative_to(each) for each in self.directories)

    def lost(self, spec: JobSpec) -> tuple[str, str] | None:
        """What of a document would be lost: the field, empty where it is none of the directories', and its words.

        It is whatever names the default file system or a place in it, when tasks do not reach that, and an outputDir
        that is gone with its task.
        """
        if not self.reaches(self.default_fs_uri):
            for field, attribute in _FIELDS.items():
                found = _NAMES.search(getattr(spec, attribute))
                if found is not None:
                    return field, f"${found[0]}"
            found = _NAMES.search(spec.model_copy(update=_SAID_ONLY).model_dump_json())
            if found is not None:
                return "", f"${found[0]}"
        elif _NAMES.search(spec.output_dir):
            return None
        return None if self.reaches(spec.output_dir) else ("outputDir", spec.output_dir)


def _path(place: str) -> str | None:
    """The path that a path or a ``file:`` URI names; None for what is of no single machine."""
    if not place.startswith(("/", "file:")):
        return None
    return posixpath.normpath("/" + place.removeprefix("file:").lstrip("/"))
