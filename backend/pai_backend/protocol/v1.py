"""OpenPAI v1 JSON with its dialects QIZHI and SCM: the field tables and the rules between fields.

Source of the tables: the seeds' field list (SCM guide, section 4.2; QIZHI guide) and, where readers in
use accept more than the guides say, OpenPAI v1 from 0.12 on: a resource count left out gets a default,
retryCount may be -1 and -2, names may hold what the guides' expressions allow and nothing else.

SCM's own form writes ``storageGB`` and ``tmp`` into every document. The first is kept, the second is a
snapshot of its screen without meaning for a job; both are read without a word. SCM is closed source and
its guide does not list these two fields, so it may well write others: in a document that has one of them
an unknown field that resembles no known one is kept in ``extras`` with a warning, not refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from pai_backend.model import address
from pai_backend.model.spec import Completion, Dialect, JobSpec, Resources, TaskRole
from pai_backend.model.text import Text
from pai_backend.protocol import v1_ports
from pai_backend.protocol.field_table import Field, FieldKind, Table
from pai_backend.protocol.fields import Members, Reader
from pai_backend.protocol.own_fields import (
    COMMON,
    IN_V1,
    KEY,
    MAX_NAME,
    MAX_PATH,
    SECRET_ENV,
    read_job_fields,
    workspace_name,
)
from pai_backend.protocol.tree import Node, shown
from pai_backend.protocol.variables import check_variable

MAX_TASKS: Final = 10_000
"""Tasks of one job: an index has up to four digits in the stable names of tasks (``model.alias``)."""
MAX_ROLES: Final = 1_000
"""Each role is a set of variables in every task of the job; the largest jobs known have a few dozen."""
MAX_VARIABLES: Final = 10_000
"""Variables of jobEnvs. Linux passes no more than a few MiB of them to a program, names and values together."""
MAX_ARGUMENT: Final = 131_071
"""Bytes that Linux passes to a program in one argument or variable (MAX_ARG_STRLEN, without the final NUL)."""
UNKNOWN_FIELDS: Final = "jupyterPai.unknownFields"
"""In ``extras``: the fields of an SCM document that are not known here, path -> value."""

_JOB_NAME = re.compile(r"[A-Za-z0-9\-._~]+")
_ROLE_NAME = re.compile(r"[A-Za-z0-9._~]+")
_NO_SPACE = re.compile(r"\S+")
_FLAGS = ("isDebug", "paiAzRDMA")
"""Members of jobEnvs that are read as settings, besides being variables (OpenPAI v1, its job environment)."""
_OLD_NAMES = {
    "name": Text('Did you mean "jobName"?'),
    "dockerImage": Text('Did you mean "image"?'),
    "prerequisites": Text("This is a v2 field; v1 documents name the image in image."),
}

_WORD = Field(FieldKind.TEXT, default="", longest=MAX_NAME)
_DIRECTORY = Field(FieldKind.TEXT, default="", longest=MAX_PATH)
JOB: Final = Table(
    Text("the job"),
    {
        "jobName": Field(
            FieldKind.TEXT,
            required=True,
            pattern=_JOB_NAME,
            allowed=Text("letters, digits, '-', '.', '_' and '~'"),
            longest=MAX_NAME,
            empty=False,
        ),
        "image": Field(
            FieldKind.TEXT,
            required=True,
            pattern=_NO_SPACE,
            allowed=Text("characters without spaces"),
            longest=MAX_PATH,
            empty=False,
        ),
        "authFile": _DIRECTORY,
        "dataDir": _DIRECTORY,
        "outputDir": _DIRECTORY,
        "codeDir": _DIRECTORY,
        "virtualCluster": _WORD,
        "taskRoles": Field(FieldKind.LIST, required=True),
        "gpuType": _WORD,
        "retryCount": Field(FieldKind.INTEGER, default=0, low=-2),
        "address": Field(FieldKind.TEXT, default="", longest=address.MOST),
        "killAllOnCompletedTaskNumber": Field(FieldKind.INTEGER, low=0),
        "jobEnvs": Field(FieldKind.OBJECT),
        "extras": Field(FieldKind.OBJECT),
        "tmp": Field(FieldKind.ANY),
    },
    elsewhere=_OLD_NAMES
    | dict.fromkeys(
        ("taskNumber", "cpuNumber", "memoryMB", "gpuNumber", "shmMB", "storageGB", "command", "portList"),
        Text("Move it into the task role it is for ($.taskRoles[…])."),
    ),
)
ROLE: Final = Table(
    Text("a task role"),
    {
        "name": Field(
            FieldKind.TEXT,
            required=True,
            pattern=_ROLE_NAME,
            allowed=Text("letters, digits, '.', '_' and '~'"),
            longest=MAX_NAME,
            empty=False,
        ),
        "taskNumber": Field(FieldKind.INTEGER, expected=True, default=1, low=1, high=MAX_TASKS),
        "cpuNumber": Field(FieldKind.INTEGER, expected=True, default=1, low=1),
        "memoryMB": Field(FieldKind.INTEGER, expected=True, default=100, low=100),
        "shmMB": Field(FieldKind.INTEGER, default=64, low=0),
        "gpuNumber": Field(FieldKind.INTEGER, expected=True, default=0, low=0),
        "storageGB": Field(FieldKind.INTEGER, low=0),
        "portList": Field(FieldKind.LIST),
        "command": Field(FieldKind.TEXT, required=True, empty=False, lines=True),
        "minFailedTaskCount": Field(FieldKind.INTEGER, default=1, low=1, nullable=True),
        "minSucceededTaskCount": Field(FieldKind.INTEGER, low=1, nullable=True),
    },
    elsewhere={
        "instances": Text('Did you mean "taskNumber"?'),
        "commands": Text('Did you mean "command"?'),
        "image": Text("Move it to the job ($.image): one image serves all roles."),
        "gpuType": Text("Move it to the job ($.gpuType)."),
        "jobEnvs": Text("Move it to the job ($.jobEnvs)."),
        "retryCount": Text("Move it to the job ($.retryCount)."),
    },
)


def read(root: Node, reader: Reader) -> JobSpec | None:
    """The job that a v1 document describes, or None when ``reader`` now has faults."""
    scm = _is_scm(root)
    job = reader.members(root, (), JOB, keep_unknown=scm)
    if job is None:
        return None
    if job.text("jobName") in (".", ".."):
        message = Text("jobName must not be a directory's name")
        reader.fault(("jobName",), job.at("jobName"), message, Text("Add a letter or digit."))
    roles = _roles(job, reader, keep_unknown=scm)
    flags = _variables(job, reader)
    mine = _own(job, reader)
    own = read_job_fields(COMMON, job.entries("extras"), mine, reader)
    _take_address(root, job, own, reader)
    if mine is not None:
        _check_secret_env(mine.entries("secretEnv"), job.entries("jobEnvs"), reader)
    ready = [role for _, role in roles if role is not None]
    _check_totals(job, ready, reader)
    if reader.failed:
        return None
    dialect = _dialect(job, [members for members, _ in roles], scm=scm)
    _warn_obsolete(job, dialect, reader)
    extras = {name: node.plain() for name, node in job.entries("extras").items()}
    unknown = {path: value for members in (job, *(each for each, _ in roles)) for path, value in members.unknown}
    if unknown:
        extras.setdefault(UNKNOWN_FIELDS, unknown)
    return JobSpec(
        name=job.text("jobName") or "",
        dialect=dialect,
        image=job.text("image") or "",
        virtual_cluster=job.text("virtualCluster") or "default",
        gpu_type=job.text("gpuType") or None,
        retry_count=job.integer("retryCount") or 0,
        env={name: node.plain() for name, node in job.entries("jobEnvs").items()},
        extras=extras,
        auth_file=job.text("authFile") or "",
        data_dir=job.text("dataDir") or "",
        output_dir=job.text("outputDir") or "",
        code_dir=job.text("codeDir") or "",
        kill_all_on_completed=job.integer("killAllOnCompletedTaskNumber"),
        debug="isDebug" in flags,
        task_roles=tuple(role.model_copy(update={"infiniband": True}) for role in ready)
        if "paiAzRDMA" in flags
        else tuple(ready),
        **own,
    )


def _take_address(root: Node, job: Members, own: dict[str, Any], reader: Reader) -> None:
    """Add the workspace name that the job itself has to what its extras say."""
    if not job.text("address") or not isinstance(root.value, dict):
        return
    name = workspace_name(root.value["address"], ("address",), reader)
    if own.setdefault("address", name) != name:
        message = Text("extras.{key}.address is {address}", key=KEY, address=own["address"])
        reader.fault(("address",), job.at("address"), message, Text("Keep one of the two."))


def _is_scm(root: Node) -> bool:
    """Whether the document has one of the two fields that only SCM writes."""
    if not isinstance(root.value, dict):
        return False
    roles = root.value.get("taskRoles")
    listed = roles.value if roles is not None and isinstance(roles.value, list) else []
    return "tmp" in root.value or any(isinstance(role.value, dict) and "storageGB" in role.value for role in listed)


def _roles(job: Members, reader: Reader, *, keep_unknown: bool) -> list[tuple[Members, TaskRole | None]]:
    """The task roles with the fields they were read from; None for one with a fault (recorded)."""
    nodes = job.items("taskRoles")
    if not nodes and job.given("taskRoles") and job.values["taskRoles"] is not None:
        reader.fault(
            ("taskRoles",), job.at("taskRoles"), Text("taskRoles is empty"), Text("Add at least one task role.")
        )
    if len(nodes) > MAX_ROLES:
        message = Text("{count} task roles, more than {most}", count=len(nodes), most=MAX_ROLES)
        reader.fault(("taskRoles",), job.at("taskRoles"), message, Text("Use taskNumber for many equal tasks."))
        return []
    shared = _Shared()
    roles = [
        (members, _role(members, reader, shared))
        for number, node in enumerate(nodes)
        if (members := reader.members(node, ("taskRoles", number), ROLE, keep_unknown=keep_unknown)) is not None
    ]
    reader.distinct([members for members, _ in roles], "name", Text("role"))
    return roles


class _Shared:
    """The parts of a role of which a large job has many equal ones; each is made once."""

    def __init__(self) -> None:
        self.port: v1_ports.Make = cache(v1_ports.make)
        self.resources = cache(_resources)
        self.completion = cache(_completion)


def _resources(cpus: int, memory_mb: int, gpus: int, shm_mb: int, storage_gb: int | None) -> Resources:
    return Resources(cpus=cpus, memory_mb=memory_mb, gpus=gpus, shm_mb=shm_mb, storage_gb=storage_gb)


def _completion(failed: int | None, succeeded: int | None) -> Completion:
    return Completion(min_failed=failed, min_succeeded=succeeded)


def _role(role: Members, reader: Reader, shared: _Shared) -> TaskRole | None:
    """One task role; None when a field of it is faulty (recorded)."""
    name, command = role.text("name"), role.text("command")
    tasks = role.integer("taskNumber")
    cpus, memory_mb = role.integer("cpuNumber"), role.integer("memoryMB")
    gpus, shm_mb = role.integer("gpuNumber"), role.integer("shmMB")
    if memory_mb is not None and shm_mb is not None and shm_mb > memory_mb:
        hint = Text("Shared memory is part of the memory: lower shmMB or raise memoryMB.")
        if role.given("memoryMB"):
            message = Text("shmMB ({shm}) is more than memoryMB ({memory})", shm=shm_mb, memory=memory_mb)
        else:
            message = Text(
                "shmMB ({shm}) is more than memoryMB (missing, hence {memory})", shm=shm_mb, memory=memory_mb
            )
        reader.fault((*role.path, "shmMB"), role.at("shmMB"), message, hint)
    failed, succeeded = role.integer("minFailedTaskCount"), role.integer("minSucceededTaskCount")
    for counter, least in (("minFailedTaskCount", failed), ("minSucceededTaskCount", succeeded)):
        if tasks is not None and least is not None and least > tasks:
            message = Text(
                "{counter} ({least}) is more than taskNumber ({tasks})", counter=counter, least=least, tasks=tasks
            )
            hint = Text("Use a number from 1 to {tasks}, or null to switch the rule off.", tasks=tasks)
            reader.fault((*role.path, counter), role.at(counter), message, hint)
    if command is not None and _too_long(command):
        hint = Text("Put the script into codeDir or the image and call it from the command.")
        message = Text("command is longer than {most} bytes; Linux cannot start it", most=MAX_ARGUMENT)
        reader.warn("long-command", (*role.path, "command"), message, hint)
    ports = v1_ports.read(role, reader, shared.port)
    if name is None or command is None or tasks is None or ports is None:
        return None
    if cpus is None or memory_mb is None or gpus is None or shm_mb is None:
        return None
    return TaskRole(
        name=name,
        instances=tasks,
        resources=shared.resources(cpus, memory_mb, gpus, shm_mb, role.integer("storageGB")),
        ports=ports,
        command=command,
        completion=shared.completion(failed, succeeded),
    )


def _variables(job: Members, reader: Reader) -> set[str]:
    """Check the names of jobEnvs; the flags among them that are set."""
    flags: set[str] = set()
    variables = job.entries("jobEnvs")
    if len(variables) > MAX_VARIABLES:
        message = Text("{count} variables in jobEnvs, more than {most}", count=len(variables), most=MAX_VARIABLES)
        hint = Text("Put data into a file below codeDir or dataDir.")
        reader.fault(("jobEnvs",), job.at("jobEnvs"), message, hint)
        return flags
    for name, node in variables.items():
        path = ("jobEnvs", name)
        if name in _FLAGS:
            flags |= {name} if reader.boolean(node, path) else set()
        else:
            check_variable(name, node, path, reader)
        if isinstance(node.value, str) and _too_long(f"{name}={node.value}"):
            message = Text(
                "the variable is longer than {most} bytes; Linux cannot start a program with it", most=MAX_ARGUMENT
            )
            reader.warn("long-variable", path, message, Text("Put the data into dataDir and name it in the variable."))
    return flags


def _check_secret_env(secret: Mapping[str, Node], given: Mapping[str, Node], reader: Reader) -> None:
    """A variable has one value: that of jobEnvs, or a secret."""
    for name, node in secret.items():
        if name in given:
            message = Text("the variable {name} is also in jobEnvs", name=shown(name))
            reader.fault((*SECRET_ENV, name), node.key_at, message, Text("Keep one of the two."))


def _own(job: Members, reader: Reader) -> Members | None:
    """``extras.jupyterPai``, if the document has it; a name there that is not known is told, and kept."""
    node, path = job.entries("extras").get(KEY), ("extras", KEY)
    return reader.members(node, path, IN_V1, keep_unknown=True) if node is not None and node.value is not None else None


def _too_long(argument: str) -> bool:
    return len(argument) > MAX_ARGUMENT // 4 and len(argument.encode()) > MAX_ARGUMENT


def _check_totals(job: Members, roles: Sequence[TaskRole], reader: Reader) -> None:
    """Rules on the number of all tasks; not asked when a role is faulty, whose number is not known."""
    if len(roles) < len(job.items("taskRoles")):
        return
    total = sum(role.instances for role in roles)
    if total > MAX_TASKS:
        message = Text("the job has {total} tasks, more than {most}", total=total, most=MAX_TASKS)
        reader.fault(("taskRoles",), job.at("taskRoles"), message, Text("Lower taskNumber, or split the job."))
    limit = job.integer("killAllOnCompletedTaskNumber")
    if limit is not None and roles and limit > total:
        name = "killAllOnCompletedTaskNumber"
        message = Text("{name} ({limit}) is more than the job's {total} tasks", name=name, limit=limit, total=total)
        reader.fault((name,), job.at(name), message, Text("Use a number from 0 (off) to {total}.", total=total))


def _dialect(job: Members, roles: Sequence[Members], *, scm: bool) -> Dialect:
    """Which dialect a document without faults is written in.

    A document that uses QIZHI_ variables needs them, so that comes first; then the fields that only
    SCM's form writes; then QIZHI's way of ending a job, when no other way is used.
    """
    texts = [job.text(name) or "" for name in ("authFile", "dataDir", "outputDir", "codeDir")]
    texts += [role.text("command") or "" for role in roles]
    if any("QIZHI_" in text for text in texts):
        return Dialect.QIZHI
    if scm:
        return Dialect.SCM
    counted = any(role.given(name) for role in roles for name in ("minFailedTaskCount", "minSucceededTaskCount"))
    if job.given("killAllOnCompletedTaskNumber") and not counted:
        return Dialect.QIZHI
    return Dialect.OPENPAI_V1


def _warn_obsolete(job: Members, dialect: Dialect, reader: Reader) -> None:
    """OpenPAI v1 calls killAllOnCompletedTaskNumber obsolete from 0.7.2 on; QIZHI knows nothing else."""
    name = "killAllOnCompletedTaskNumber"
    if job.given(name) and dialect is not Dialect.QIZHI:
        hint = Text("Say minFailedTaskCount and minSucceededTaskCount in the task roles instead.")
        reader.warn("obsolete-field", (name,), Text("{name} is obsolete; it is still followed", name=name), hint)
