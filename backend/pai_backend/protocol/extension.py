"""``extras.jupyterPai`` of a v2 document: what v2 has no field for, followed here and ignored by every other OpenPAI.

v2 has no fixed ports, directories, debugging or way to end a job when some of its tasks are done. Converting to v2
puts these here (``convert.to_v2``), and authors who miss them in v2 may write them by hand, under v1's names. Other
fields are ours alone and mean the same in a v1 document. The table of all is ``model.extension``; here are the rules
between them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from pai_backend.model.extension import JOB_PARTS, ROLE_PARTS, document_fields
from pai_backend.model.spec import JobSpec, PortSpec, Resources, TaskRole
from pai_backend.model.text import Text
from pai_backend.protocol import own_fields, v2_extras
from pai_backend.protocol.field_table import Field, FieldKind, Table
from pai_backend.protocol.fields import Members, Path, Reader
from pai_backend.protocol.own_fields import KEY, MAX_NAME, read_fields, read_job_fields
from pai_backend.protocol.tree import Node
from pai_backend.protocol.v1_ports import LAST_PORT, Ranges

MEANT_IN_V2: Final = v2_extras.READ | {KEY}
"""Extras that v2 gives a meaning; in v1 they are free data like all others."""

_V1_NAME = re.compile(r"[A-Za-z0-9\-._~]+")
_NAMES = Field(FieldKind.OBJECT)
_OF_ROLE = document_fields(TaskRole)
_OF_RESOURCES = document_fields(Resources)
JOB: Final = own_fields.table(KEY, [*own_fields.JOB.values(), *JOB_PARTS])
ROLE: Final = own_fields.table(f"a task role of {KEY}", [*_OF_RESOURCES.values(), *ROLE_PARTS, *_OF_ROLE.values()])
NAMES: Final = Table(
    Text("the names of {key}", key=KEY),
    {
        "jobName": Field(
            FieldKind.TEXT, pattern=_V1_NAME, allowed=Text("the characters of a jobName"), longest=MAX_NAME
        ),
        "taskRoles": _NAMES,
        "portList": _NAMES,
    },
)
"""Name in this document -> name in the v1 document it was made from; for the way back, without meaning here."""


def honoured(spec: JobSpec, root: Node, reader: Reader) -> JobSpec:
    """``spec`` of the v2 document ``root`` with what its ``extras.jupyterPai`` adds; faults go to ``reader``."""
    extras = root.value.get("extras") if isinstance(root.value, dict) else None
    given = extras.value if extras is not None and isinstance(extras.value, dict) else {}
    node = given.get(KEY)
    job = reader.members(node, ("extras", KEY), JOB) if node is not None and node.value is not None else None
    changes = read_job_fields(own_fields.JOB, given, job, reader)
    if job is not None:
        _check_kill_all(job, spec, reader)
        _check_names(job, reader)
        _check_secret_env(job, changes.get("secret_env", {}), spec, reader)
        changes |= _parts(job, spec, reader)
    return spec.model_copy(update=changes) if changes else spec


def _parts(job: Members, spec: JobSpec, reader: Reader) -> dict[str, Any]:
    """What ``job``, the members of ``extras.jupyterPai``, changes of the task roles and extras."""
    changes: dict[str, Any] = {}
    if (roles := _roles(job, spec, reader)) is not None:
        changes["task_roles"] = roles
    if added := job.entries("extras"):
        changes["extras"] = {**spec.extras, **{name: value.plain() for name, value in added.items()}}
    return changes


def original_names(spec: JobSpec) -> tuple[str, Mapping[str, str], Mapping[str, str]]:
    """The names of the job, its roles and its labels before a conversion to v2, as far as the job says.

    The job's name is empty, and a role or label is not listed, when it was not renamed.
    """
    given = spec.extras.get(KEY)
    names = given.get("names") if isinstance(given, Mapping) else None
    if not isinstance(names, Mapping):
        return "", {}, {}
    return names.get("jobName", ""), names.get("taskRoles", {}), names.get("portList", {})


def _check_kill_all(job: Members, spec: JobSpec, reader: Reader) -> None:
    name = "killAllOnCompletedTaskNumber"
    limit = job.integer(name)
    if limit is not None and limit > spec.task_count:
        message = Text(
            "{name} ({limit}) is more than the job's {task_count} tasks",
            name=name,
            limit=limit,
            task_count=spec.task_count,
        )
        reader.fault(
            (*job.path, name),
            job.at(name),
            message,
            Text("Use a number from 0 (off) to {task_count}.", task_count=spec.task_count),
        )


def _check_secret_env(job: Members, given: Mapping[str, str], spec: JobSpec, reader: Reader) -> None:
    """A name that the document's secrets have too could mean either of them."""
    entries = job.entries("secretEnv")
    for variable, name in given.items():
        if name in spec.secret_names:
            path, at = (*job.path, "secretEnv", variable), entries[variable].at
            hint = Text("Rename one of them: secretEnv takes the secrets that you keep, which `pai secret list` shows.")
            reader.fault(path, at, Text("the secrets of this document have that name, too"), hint)


def _roles(job: Members, spec: JobSpec, reader: Reader) -> tuple[TaskRole, ...] | None:
    """The task roles with what is added to them; None when nothing is."""
    roles = {role.name: role for role in spec.task_roles}
    given = job.entries("taskRoles")
    for name, node in given.items():
        path = (*job.path, "taskRoles", name)
        if name not in roles:
            reader.fault(
                path, node.key_at, Text("this is not a task role of the job"), Text("Write one of $.taskRoles.")
            )
        elif (members := reader.members(node, path, ROLE)) is not None:
            roles[name] = _role(roles[name], members, reader)
            _check_min_instances(roles[name], members, spec, reader)
    return tuple(roles.values()) if given else None


def _role(role: TaskRole, members: Members, reader: Reader) -> TaskRole:
    begin = members.entries("beginAt")
    labels = {port.label for port in role.ports}
    for label, node in begin.items():
        if label not in labels:
            path = (*members.path, "beginAt", label)
            reader.fault(
                path, node.key_at, Text("the task role has no port of that label"), Text("Add it to the role's ports.")
            )
    path = (*members.path, "beginAt")
    ranges = Ranges(reader)
    ports = tuple(_port(port, begin.get(port.label), (*path, port.label), ranges, reader) for port in role.ports)
    needs = role.resources.model_copy(update=read_fields(_OF_RESOURCES, members, reader))
    return role.model_copy(update={"ports": ports, "resources": needs, **read_fields(_OF_ROLE, members, reader)})


def _check_min_instances(role: TaskRole, members: Members, spec: JobSpec, reader: Reader) -> None:
    """Its first tasks start together only without gang allocation, and are at most all of them."""
    least, path = role.min_instances, (*members.path, "minInstances")
    if least is None:
        return
    if spec.scheduling.gang_allocation:
        hint = Text(
            "Write gangAllocation: false in extras too: the others then start as room comes, each retried alone."
        )
        reader.fault(path, members.at("minInstances"), Text("all tasks of a gang start together"), hint)
    elif least > role.instances:
        message = Text(
            "minInstances ({least}) is more than the role's {instances} instances",
            least=least,
            instances=role.instances,
        )
        hint = Text("Use a number from 1 to {instances}.", instances=role.instances)
        reader.fault(path, members.at("minInstances"), message, hint)


def _port(port: PortSpec, node: Node | None, path: Path, ranges: Ranges, reader: Reader) -> PortSpec:
    """The port with its fixed beginning."""
    if node is None:
        return port
    if type(node.value) is not int or not 0 <= node.value <= LAST_PORT:
        reader.fault(
            path,
            node.at,
            Text("no port from 0 to {last_port}", last_port=LAST_PORT),
            Text("Write a number; 0 chooses at random."),
        )
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
                hint = Text("Remove the entry; it is written when a document is converted.")
                reader.fault((*names.path, kind, name), value.at, Text("this is not a valid name in OpenPAI v1"), hint)
