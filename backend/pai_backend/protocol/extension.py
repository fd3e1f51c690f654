"""``extras.jupyterPai`` of a v2 document: what v2 has no field for, followed here and ignored by every other OpenPAI.

v2 has no fixed ports, directories, debugging or way to end a job when some of its tasks are done. Converting to v2
puts these here (``convert.to_v2``), and authors who miss them in v2 may write them by hand. The names are v1's, but for
``expectedRunTime``, ``idleTimeout`` and ``nodeSelector``, which are ours and mean the same in a v1 document (``v1``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from pai_backend.model.spec import JobSpec, PortSpec, TaskRole
from pai_backend.protocol import v2_extras
from pai_backend.protocol.fields import Field, FieldKind, Members, Path, Reader, Table
from pai_backend.protocol.idle_timeout import NAME as IDLE_TIMEOUT
from pai_backend.protocol.idle_timeout import read_idle_timeout
from pai_backend.protocol.locate import Node
from pai_backend.protocol.node_selector import NAME as NODE_SELECTOR
from pai_backend.protocol.node_selector import read_node_selector
from pai_backend.protocol.run_time import NAME as RUN_TIME
from pai_backend.protocol.run_time import read_run_time
from pai_backend.protocol.v1 import MAX_NAME, MAX_PATH, OWN_EXTRAS
from pai_backend.protocol.v1_ports import LAST_PORT, Ranges

KEY: Final = OWN_EXTRAS
"""Its name in ``extras``."""
MEANT_IN_V2: Final = v2_extras.READ | {KEY}
"""Extras that v2 gives a meaning; in v1 they are free data like all others."""

_V1_NAME = re.compile(r"[A-Za-z0-9\-._~]+")
_WORD = Field(FieldKind.TEXT, longest=MAX_NAME)
_DIRECTORY = Field(FieldKind.TEXT, longest=MAX_PATH)
_NAMES = Field(FieldKind.OBJECT)
JOB: Final = Table(
    "jupyterPai",
    {
        "authFile": _DIRECTORY,
        "dataDir": _DIRECTORY,
        "outputDir": _DIRECTORY,
        "codeDir": _DIRECTORY,
        "gpuType": _WORD,
        "retryCount": Field(FieldKind.INTEGER, low=-2),
        "killAllOnCompletedTaskNumber": Field(FieldKind.INTEGER, low=0),
        "isDebug": Field(FieldKind.ANY),
        RUN_TIME: Field(FieldKind.ANY),
        IDLE_TIMEOUT: Field(FieldKind.ANY),
        NODE_SELECTOR: Field(FieldKind.OBJECT),
        "taskRoles": Field(FieldKind.OBJECT),
        "extras": Field(FieldKind.OBJECT),
        "names": Field(FieldKind.OBJECT),
    },
)
ROLE: Final = Table(
    "a task role of jupyterPai",
    {
        "storageGB": Field(FieldKind.INTEGER, low=0),
        "beginAt": Field(FieldKind.OBJECT),
        "minInstances": Field(FieldKind.INTEGER, low=1),
    },
)
NAMES: Final = Table(
    "the names of jupyterPai",
    {
        "jobName": Field(FieldKind.TEXT, pattern=_V1_NAME, allowed="the characters of a jobName", longest=MAX_NAME),
        "taskRoles": _NAMES,
        "portList": _NAMES,
    },
)
"""Name in this document -> name in the v1 document it was made from; for the way back, without meaning here."""
_TEXTS = {
    "authFile": "auth_file",
    "dataDir": "data_dir",
    "outputDir": "output_dir",
    "codeDir": "code_dir",
    "gpuType": "gpu_type",
}


def honoured(spec: JobSpec, root: Node, reader: Reader) -> JobSpec:
    """``spec`` of the v2 document ``root`` with what its ``extras.jupyterPai`` adds; faults go to ``reader``."""
    extras = root.value.get("extras") if isinstance(root.value, dict) else None
    given = extras.value if extras is not None and isinstance(extras.value, dict) else {}
    node = given.get(KEY)
    job = reader.members(node, ("extras", KEY), JOB) if node is not None and node.value is not None else None
    idle_timeout_s = read_idle_timeout(given, job, reader)
    if idle_timeout_s is not None:
        spec = spec.model_copy(update={"idle_timeout_s": idle_timeout_s})
    return _with_own(spec, job, reader) if job is not None else spec


def _with_own(spec: JobSpec, job: Members, reader: Reader) -> JobSpec:
    """``spec`` with what ``job``, the members of ``extras.jupyterPai``, says."""
    changes: dict[str, Any] = {attribute: job.text(name) or None for name, attribute in _TEXTS.items()}
    changes["retry_count"] = job.integer("retryCount")
    changes["kill_all_on_completed"] = _kill_all(job, spec, reader)
    changes["debug"] = _flag(job, "isDebug", reader)
    changes["expected_run_s"] = _run_time(job, reader)
    changes["node_selector"] = read_node_selector(job, reader)
    changes["task_roles"] = _roles(job, spec, reader)
    added = {name: value.plain() for name, value in job.entries("extras").items()}
    changes["extras"] = {**spec.extras, **added} if added else None
    _check_names(job, reader)
    return spec.model_copy(update={name: value for name, value in changes.items() if value is not None})


def original_names(spec: JobSpec) -> tuple[str, Mapping[str, str], Mapping[str, str]]:
    """The names of the job, its roles and its labels before a conversion to v2, as far as the job says.

    The job's name is empty, and a role or label is not listed, when it was not renamed.
    """
    given = spec.extras.get(KEY)
    names = given.get("names") if isinstance(given, Mapping) else None
    if not isinstance(names, Mapping):
        return "", {}, {}
    return names.get("jobName", ""), names.get("taskRoles", {}), names.get("portList", {})


def _flag(job: Members, name: str, reader: Reader) -> bool | None:
    node = job.values[name]
    return reader.boolean(node, (*job.path, name)) if isinstance(node, Node) else None


def _run_time(job: Members, reader: Reader) -> int | None:
    node = job.values[RUN_TIME]
    return read_run_time(node, (*job.path, RUN_TIME), reader) if isinstance(node, Node) else None


def _kill_all(job: Members, spec: JobSpec, reader: Reader) -> int | None:
    name = "killAllOnCompletedTaskNumber"
    limit = job.integer(name)
    if limit is not None and limit > spec.task_count:
        message = f"{name} ({limit}) is more than the job's {spec.task_count} tasks"
        reader.fault((*job.path, name), job.at(name), message, f"Use a number from 0 (off) to {spec.task_count}.")
    return limit


def _roles(job: Members, spec: JobSpec, reader: Reader) -> tuple[TaskRole, ...] | None:
    """The task roles with what is added to them; None when nothing is."""
    roles = {role.name: role for role in spec.task_roles}
    given = job.entries("taskRoles")
    for name, node in given.items():
        path = (*job.path, "taskRoles", name)
        if name not in roles:
            reader.fault(path, node.key_at, "this is not a task role of the job", "Write one of $.taskRoles.")
        elif (members := reader.members(node, path, ROLE)) is not None:
            roles[name] = _elastic(_role(roles[name], members, reader), members, spec, reader)
    return tuple(roles.values()) if given else None


def _role(role: TaskRole, members: Members, reader: Reader) -> TaskRole:
    begin = members.entries("beginAt")
    labels = {port.label for port in role.ports}
    for label, node in begin.items():
        if label not in labels:
            path = (*members.path, "beginAt", label)
            reader.fault(path, node.key_at, "the task role has no port of that label", "Add it to the role's ports.")
    path = (*members.path, "beginAt")
    ranges = Ranges(reader)
    ports = tuple(_port(port, begin.get(port.label), (*path, port.label), ranges, reader) for port in role.ports)
    storage = members.integer("storageGB")
    needs = role.resources.model_copy(update={"storage_gb": storage}) if storage is not None else role.resources
    return role.model_copy(update={"ports": ports, "resources": needs})


def _elastic(role: TaskRole, members: Members, spec: JobSpec, reader: Reader) -> TaskRole:
    """The role with how many of its tasks start together, where the others follow as room comes."""
    least, path = members.integer("minInstances"), (*members.path, "minInstances")
    if least is None:
        return role
    if spec.scheduling.gang_allocation:
        hint = "Write gangAllocation: false in extras too: the others then start as room comes, each retried alone."
        reader.fault(path, members.at("minInstances"), "all tasks of a gang start together", hint)
    elif least > role.instances:
        message = f"minInstances ({least}) is more than the role's {role.instances} instances"
        hint = f"Use a number from 1 to {role.instances}."
        reader.fault(path, members.at("minInstances"), message, hint)
    return role.model_copy(update={"min_instances": least})


def _port(port: PortSpec, node: Node | None, path: Path, ranges: Ranges, reader: Reader) -> PortSpec:
    """The port with its fixed beginning."""
    if node is None:
        return port
    if type(node.value) is not int or not 0 <= node.value <= LAST_PORT:
        reader.fault(path, node.at, f"no port from 0 to {LAST_PORT}", "Write a number; 0 chooses at random.")
        return port
    if node.value:
        ranges.add(path, node.at, port.label, node.value, node.value + port.count - 1)
    return port.model_copy(update={"begin_at": node.value})


def _check_names(job: Members, reader: Reader) -> None:
    """The names of the way back must be names of v1."""
    node = job.values["names"]
    names = reader.members(node, (*job.path, "names"), NAMES) if isinstance(node, Node) else None
    if names is None:
        return
    for kind in ("taskRoles", "portList"):
        for name, value in names.entries(kind).items():
            if not isinstance(value.value, str) or not _V1_NAME.fullmatch(value.value):
                hint = "Remove the entry; it is written when a document is converted."
                reader.fault((*names.path, kind, name), value.at, "this is not a valid name in OpenPAI v1", hint)
