"""OpenPAI v1 JSON with its dialects QIZHI and SCM: the field tables and the rules between fields.

Source of the tables: the seeds' field list (SCM guide, section 4.2; QIZHI guide) and, where readers in
use accept more than the guides say, OpenPAI v1 from 0.12 on: a resource count left out gets a default,
retryCount may be -1 and -2, names may hold what the guides' expressions allow and nothing else.

SCM's own form writes ``storageGB`` and ``tmp`` into every document. The first is kept, the second is a
snapshot of its screen without meaning for a job; both are read without a word.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from pai_backend.model.spec import Completion, Dialect, JobSpec, PortSpec, Resources, TaskRole
from pai_backend.protocol.fields import Field, Kind, Members, Path, Reader, Table
from pai_backend.protocol.locate import Node
from pai_backend.protocol.position import shown

MAX_TASKS: Final = 10_000
"""Tasks of one job: an index has up to four digits in the stable names of tasks (``model.alias``)."""
MAX_NAME: Final = 255
"""Names become parts of file names, which end at 255 bytes on the usual file systems."""
MAX_PATH: Final = 4096
"""Directories and images: the longest path of Linux (PATH_MAX)."""
MAX_ARGUMENT: Final = 131_071
"""Bytes that Linux passes to a program in one argument or variable (MAX_ARG_STRLEN, without the final NUL)."""
IMPLICIT_PORTS: Final = (PortSpec(label="http", implicit=True), PortSpec(label="ssh", implicit=True))
"""OpenPAI v1 gives every task one port of each, declared or not."""

_JOB_NAME = re.compile(r"[A-Za-z0-9\-._~]+")
_ROLE_NAME = re.compile(r"[A-Za-z0-9._~]+")
_NO_SPACE = re.compile(r"\S+")
_RESERVED = re.compile(r"(?:PAI|QIZHI)_.*", re.DOTALL)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NOT_A_VARIABLE = re.compile(r"[=\x00-\x1f\x7f]")
_LAST_PORT = 65535
_OLD_NAMES = {
    "name": 'Did you mean "jobName"?',
    "dockerImage": 'Did you mean "image"?',
    "prerequisites": "This is a v2 field; v1 documents name the image in image.",
}

_WORD = Field(Kind.TEXT, default="", longest=MAX_NAME)
_DIRECTORY = Field(Kind.TEXT, default="", longest=MAX_PATH)
JOB: Final = Table(
    "the job",
    {
        "jobName": Field(
            Kind.TEXT,
            required=True,
            pattern=_JOB_NAME,
            allowed="letters, digits, '-', '.', '_' and '~'",
            longest=MAX_NAME,
            empty=False,
        ),
        "image": Field(
            Kind.TEXT,
            required=True,
            pattern=_NO_SPACE,
            allowed="characters without spaces",
            longest=MAX_PATH,
            empty=False,
        ),
        "authFile": _DIRECTORY,
        "dataDir": _DIRECTORY,
        "outputDir": _DIRECTORY,
        "codeDir": _DIRECTORY,
        "virtualCluster": _WORD,
        "taskRoles": Field(Kind.LIST, required=True),
        "gpuType": _WORD,
        "retryCount": Field(Kind.INTEGER, default=0, low=-2),
        "killAllOnCompletedTaskNumber": Field(Kind.INTEGER, low=0),
        "jobEnvs": Field(Kind.OBJECT),
        "extras": Field(Kind.OBJECT),
        "tmp": Field(Kind.ANY),
    },
    elsewhere=_OLD_NAMES
    | dict.fromkeys(
        ("taskNumber", "cpuNumber", "memoryMB", "gpuNumber", "shmMB", "storageGB", "command", "portList"),
        "Move it into the task role it is for ($.taskRoles[…]).",
    ),
)
ROLE: Final = Table(
    "a task role",
    {
        "name": Field(
            Kind.TEXT,
            required=True,
            pattern=_ROLE_NAME,
            allowed="letters, digits, '.', '_' and '~'",
            longest=MAX_NAME,
            empty=False,
        ),
        "taskNumber": Field(Kind.INTEGER, expected=True, default=1, low=1, high=MAX_TASKS),
        "cpuNumber": Field(Kind.INTEGER, expected=True, default=1, low=1),
        "memoryMB": Field(Kind.INTEGER, expected=True, default=100, low=100),
        "shmMB": Field(Kind.INTEGER, default=64, low=0),
        "gpuNumber": Field(Kind.INTEGER, expected=True, default=0, low=0),
        "storageGB": Field(Kind.INTEGER, low=0),
        "portList": Field(Kind.LIST),
        "command": Field(Kind.TEXT, required=True, empty=False, lines=True),
        "minFailedTaskCount": Field(Kind.INTEGER, default=1, low=1, nullable=True),
        "minSucceededTaskCount": Field(Kind.INTEGER, low=1, nullable=True),
    },
    elsewhere={
        "instances": 'Did you mean "taskNumber"?',
        "commands": 'Did you mean "command"?',
        "image": "Move it to the job ($.image): one image serves all roles.",
        "gpuType": "Move it to the job ($.gpuType).",
        "jobEnvs": "Move it to the job ($.jobEnvs).",
        "retryCount": "Move it to the job ($.retryCount).",
    },
)
PORT: Final = Table(
    "a port list entry",
    {
        "label": Field(
            Kind.TEXT,
            required=True,
            pattern=_ROLE_NAME,
            allowed="letters, digits, '.', '_' and '~'",
            longest=MAX_NAME,
            empty=False,
        ),
        "beginAt": Field(Kind.INTEGER, default=0, low=0, high=_LAST_PORT),
        "portNumber": Field(Kind.INTEGER, default=1, low=1, high=_LAST_PORT),
    },
    elsewhere={"port": 'Did you mean "beginAt"?', "name": 'Did you mean "label"?'},
)


def read(root: Node, reader: Reader) -> JobSpec | None:
    """The job that a v1 document describes, or None when ``reader`` now has faults."""
    job = reader.members(root, (), JOB)
    if job is None:
        return None
    if job.text("jobName") in (".", ".."):
        message = "jobName must not be a directory's name"
        reader.fault(("jobName",), job.at("jobName"), message, "Add a letter or digit.")
    if job.given("taskRoles") and not job.items("taskRoles") and job.values["taskRoles"] is not None:
        reader.fault(("taskRoles",), job.at("taskRoles"), "taskRoles is empty", "Add at least one task role.")
    roles = [
        (members, _role(members, reader))
        for number, node in enumerate(job.items("taskRoles"))
        if (members := reader.members(node, ("taskRoles", number), ROLE)) is not None
    ]
    _distinct(reader, [members for members, _ in roles], "name", "role")
    debug = _variables(job, reader)
    _check_totals(job, [role for _, role in roles], reader)
    ready = tuple(role for _, role in roles if role is not None)
    if reader.failed:
        return None
    dialect = _dialect(job, [members for members, _ in roles])
    _warn_obsolete(job, dialect, reader)
    return JobSpec(
        name=job.text("jobName") or "",
        dialect=dialect,
        image=job.text("image") or "",
        virtual_cluster=job.text("virtualCluster") or "default",
        gpu_type=job.text("gpuType") or None,
        retry_count=job.integer("retryCount") or 0,
        env={name: node.plain() for name, node in job.entries("jobEnvs").items()},
        extras={name: node.plain() for name, node in job.entries("extras").items()},
        auth_file=job.text("authFile") or "",
        data_dir=job.text("dataDir") or "",
        output_dir=job.text("outputDir") or "",
        code_dir=job.text("codeDir") or "",
        kill_all_on_completed=job.integer("killAllOnCompletedTaskNumber"),
        debug=debug,
        task_roles=ready,
    )


def _role(role: Members, reader: Reader) -> TaskRole | None:
    """One task role; None when a field of it is faulty (recorded)."""
    name, command = role.text("name"), role.text("command")
    tasks = role.integer("taskNumber")
    cpus, memory_mb = role.integer("cpuNumber"), role.integer("memoryMB")
    gpus, shm_mb = role.integer("gpuNumber"), role.integer("shmMB")
    if memory_mb is not None and shm_mb is not None and shm_mb > memory_mb:
        message = f"shmMB ({shm_mb}) is more than memoryMB ({memory_mb})"
        hint = "Shared memory is part of the memory: lower shmMB or raise memoryMB."
        reader.fault((*role.path, "shmMB"), role.at("shmMB"), message, hint)
    for counter in ("minFailedTaskCount", "minSucceededTaskCount"):
        least = role.integer(counter)
        if tasks is not None and least is not None and least > tasks:
            message = f"{counter} ({least}) is more than taskNumber ({tasks})"
            hint = f"Use a number from 1 to {tasks}, or null to switch the rule off."
            reader.fault((*role.path, counter), role.at(counter), message, hint)
    if command is not None and _too_long(command):
        hint = "Put the script into codeDir or the image and call it from the command."
        message = f"command is longer than {MAX_ARGUMENT} bytes; Linux cannot start it"
        reader.warn("long-command", (*role.path, "command"), message, hint)
    ports = _ports(role, reader)
    if name is None or command is None or tasks is None or ports is None:
        return None
    if cpus is None or memory_mb is None or gpus is None or shm_mb is None:
        return None
    return TaskRole(
        name=name,
        instances=tasks,
        resources=Resources(
            cpus=cpus, memory_mb=memory_mb, gpus=gpus, shm_mb=shm_mb, storage_gb=role.integer("storageGB")
        ),
        ports=ports,
        command=command,
        completion=Completion(
            min_failed=role.integer("minFailedTaskCount"), min_succeeded=role.integer("minSucceededTaskCount")
        ),
    )


def _ports(role: Members, reader: Reader) -> tuple[PortSpec, ...] | None:
    """The declared ports of a role and the implicit ones after them; None when one is faulty."""
    entries = [
        members
        for number, node in enumerate(role.items("portList"))
        if (members := reader.members(node, (*role.path, "portList", number), PORT)) is not None
    ]
    _distinct(reader, entries, "label", "port list entry")
    ports: list[PortSpec] = []
    taken: list[tuple[int, int, str]] = []
    for entry in entries:
        label, first, count = entry.text("label"), entry.integer("beginAt"), entry.integer("portNumber")
        if label is None or first is None or count is None:
            continue
        if first:
            _check_range(entry, label, first, first + count - 1, taken, reader)
        ports.append(PortSpec(label=label, count=count, begin_at=first))
    if len(ports) < len(role.items("portList")):
        return None
    declared = {port.label for port in ports}
    return (*ports, *(port for port in IMPLICIT_PORTS if port.label not in declared))


def _check_range(
    entry: Members, label: str, first: int, last: int, taken: list[tuple[int, int, str]], reader: Reader
) -> None:
    """A fixed range must be ports and must not overlap an earlier one of its role; remembers it in ``taken``."""
    path, at = (*entry.path, "beginAt"), entry.at("beginAt")
    if last > _LAST_PORT:
        message = f"the ports {first} to {last} go beyond {_LAST_PORT}"
        reader.fault(path, at, message, "Begin lower, ask for fewer, or use 0 for ports chosen at random.")
        return
    for other_first, other_last, other in taken:
        if first <= other_last and other_first <= last:
            message = (
                f"the ports {first} to {last} overlap those of label {shown(other)} ({other_first} to {other_last})"
            )
            reader.fault(path, at, message, "Give each label its own range, or use 0 for ports chosen at random.")
            break
    taken.append((first, last, label))


def _distinct(reader: Reader, objects: Sequence[Members], field: str, what: str) -> None:
    """Names within one list must differ."""
    seen: dict[str, Path] = {}
    for members in objects:
        name = members.text(field)
        if name is None:
            continue
        if name in seen:
            message = f"another {what} is already called {shown(name)}"
            reader.fault((*members.path, field), members.at(field), message, f"Give each {what} its own {field}.")
        seen.setdefault(name, members.path)


def _variables(job: Members, reader: Reader) -> bool:
    """Check the names of jobEnvs; whether it asks for debugging (isDebug)."""
    debug = False
    for name, node in job.entries("jobEnvs").items():
        path = ("jobEnvs", name)
        if name == "isDebug":
            debug = reader.boolean(node, path)
        elif not name or _NOT_A_VARIABLE.search(name):
            message = "the name of a variable must not be empty and holds neither '=' nor control characters"
            reader.fault(path, node.key_at, message, "Use letters, digits and '_'.")
        elif _RESERVED.fullmatch(name):
            hint = "Choose another prefix: a variable that the platform sets keeps the platform's value."
            reader.warn("reserved-variable", path, f"the name {shown(name)} belongs to the platform", hint)
        elif not _VARIABLE.fullmatch(name):
            hint = "Use letters, digits and '_' to reach it in a command."
            reader.warn("unreachable-variable", path, f"a shell cannot read a variable called {shown(name)}", hint)
        if isinstance(node.value, str) and _too_long(f"{name}={node.value}"):
            message = f"the variable is longer than {MAX_ARGUMENT} bytes; Linux cannot start a program with it"
            reader.warn("long-variable", path, message, "Put the data into dataDir and name it in the variable.")
    return debug


def _too_long(argument: str) -> bool:
    return len(argument) > MAX_ARGUMENT // 4 and len(argument.encode()) > MAX_ARGUMENT


def _check_totals(job: Members, roles: Sequence[TaskRole | None], reader: Reader) -> None:
    """Rules on the number of all tasks; not asked when a role is faulty, whose number is not known."""
    known = [role for role in roles if role is not None]
    if len(known) < len(job.items("taskRoles")):
        return
    total = sum(role.instances for role in known)
    if total > MAX_TASKS:
        message = f"the job has {total} tasks, more than {MAX_TASKS}"
        reader.fault(("taskRoles",), job.at("taskRoles"), message, "Lower taskNumber, or split the job.")
    limit = job.integer("killAllOnCompletedTaskNumber")
    if limit is not None and known and limit > total:
        name = "killAllOnCompletedTaskNumber"
        message = f"{name} ({limit}) is more than the job's {total} tasks"
        reader.fault((name,), job.at(name), message, f"Use a number from 0 (off) to {total}.")


def _dialect(job: Members, roles: Sequence[Members]) -> Dialect:
    """Which dialect a document without faults is written in.

    A document that uses QIZHI_ variables needs them, so that comes first; then the fields that only
    SCM's form writes; then QIZHI's way of ending a job, when no other way is used.
    """
    texts = [job.text(name) or "" for name in ("authFile", "dataDir", "outputDir", "codeDir")]
    texts += [role.text("command") or "" for role in roles]
    if any("QIZHI_" in text for text in texts):
        return Dialect.QIZHI
    if job.given("tmp") or any(role.given("storageGB") for role in roles):
        return Dialect.SCM
    counted = any(role.given(name) for role in roles for name in ("minFailedTaskCount", "minSucceededTaskCount"))
    if job.given("killAllOnCompletedTaskNumber") and not counted:
        return Dialect.QIZHI
    return Dialect.OPENPAI_V1


def _warn_obsolete(job: Members, dialect: Dialect, reader: Reader) -> None:
    """OpenPAI v1 calls killAllOnCompletedTaskNumber obsolete from 0.7.2 on; QIZHI knows nothing else."""
    name = "killAllOnCompletedTaskNumber"
    if job.given(name) and dialect is not Dialect.QIZHI:
        hint = "Say minFailedTaskCount and minSucceededTaskCount in the task roles instead."
        reader.warn("obsolete-field", (name,), f"{name} is obsolete; it is still followed", hint)
