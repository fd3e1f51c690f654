"""OpenPAI protocol v2: what a job document with ``protocolVersion: 2`` means.

This module reads the job as a whole; ``v2_tables`` has its fields, ``v2_prerequisites``, ``v2_extras`` and
``v2_roles`` its parts. Tags are filled here, all but those of ``$secrets``: their values are handed over beside the
spec and are no part of it.
Source: the seeds' v2 document; where upstream's server differs, the field's comment says what is followed.

Names of the protocol's drafts from before 2019, and misspellings in its own examples, are read as names of today. Each
stands for one field only, at the one place where it is looked for, so what was meant is certain; a document that has
both the old and the new name is left as it is, and the reader says which is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from pai_backend.model.spec import Dialect, JobSpec, TaskRole
from pai_backend.model.text import Text
from pai_backend.model.user_secret import SecretUse
from pai_backend.protocol import v2_tables as tables
from pai_backend.protocol.field_table import kind_of
from pai_backend.protocol.fields import Members, Path, Reader
from pai_backend.protocol.plugins import KEY, Plugin, plugins_of
from pai_backend.protocol.template import Template, values_of
from pai_backend.protocol.tree import Node, Unreadable, shown
from pai_backend.protocol.v1 import MAX_TASKS
from pai_backend.protocol.v2_extras import Extras, read_extras
from pai_backend.protocol.v2_prerequisites import IMAGE, Prerequisites, Reading, read_prerequisites
from pai_backend.protocol.v2_roles import Deployed, Surroundings, read_role

_JOB: Final = {
    "protocol_version": "protocolVersion",
    "default": "defaults",
    "job_retry_count": "jobRetryCount",
    "task_roles": "taskRoles",
}
_ROLE: Final = {
    "instance": "instances",
    "resourcePerInstanec": "resourcePerInstance",
    "resource_per_instance": "resourcePerInstance",
    "task_retry_count": "taskRetryCount",
    "docker_image": "dockerImage",
    "extra_container_options": "extraContainerOptions",
}
_IN_ROLE: Final = {
    "completion": {
        "min_failed_instances": "minFailedInstances",
        "min_succeeded_instances": "minSucceededInstances",
    },
    "resourcePerInstance": {"memory_mb": "memoryMB"},
    "extraContainerOptions": {"shm_mb": "shmMB"},
}
_PREREQUISITE: Final = {"protocol_version": "protocolVersion"}
_AUTH: Final = {"passward": "password", "registry_uri": "registryuri"}
PASSWORDS: Final = ("password", *(old for old, new in _AUTH.items() if new == "password"))
"""The names under which the password of an ``auth`` is read."""
_DEFAULTS: Final = {"virtual_cluster": "virtualCluster"}
_DEPLOYMENT: Final = {"task_roles": "taskRoles"}
_DEPLOYED: Final = {"pre_commands": "preCommands", "post_commands": "postCommands"}


def modernised(root: Node, reader: Reader) -> tuple[Node, bool]:
    """``root`` with today's names, and whether it had others; warns of each. ``root`` itself is not changed."""
    names = _Names(reader)
    job = names.renamed(root, (), _JOB)
    for name, change in (
        ("taskRoles", names.role),
        ("prerequisites", names.prerequisite),
        ("deployments", names.deployment),
    ):
        job = names.within(job, (), name, partial(names.each, change=change))
    job = names.within(job, (), "defaults", partial(names.renamed, names=_DEFAULTS))
    return job, names.found


_Change = Callable[[Node, Path], Node]


class _Names:
    """Renames members; each method gives back the node it was given when there is nothing to rename."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.found = False

    def renamed(self, node: Node, path: Path, names: Mapping[str, str]) -> Node:
        """``node`` with the members in ``names`` under their new names."""
        if not isinstance(node.value, dict) or names.keys().isdisjoint(node.value):
            return node
        members = {}
        for key, member in node.value.items():
            new = names.get(key, key)
            if new != key and new not in node.value:
                self.found = True
                if self.reader.room_for_warning():
                    message = Text("{key} is read as {new}", key=shown(key), new=new)
                    self.reader.warn("draft-name", (*path, key), message, Text("Write {new}.", new=new))
                members[new] = member
            else:
                members[key] = member
        return Node(members, node.at, node.key_at)

    def within(self, node: Node, path: Path, name: str, change: _Change) -> Node:
        """``node`` with its member ``name`` changed."""
        if not isinstance(node.value, dict) or name not in node.value:
            return node
        old = node.value[name]
        new = change(old, (*path, name))
        return node if new is old else Node({**node.value, name: new}, node.at, node.key_at)

    def each(self, node: Node, path: Path, change: _Change) -> Node:
        """``node`` with every member or item changed."""
        if isinstance(node.value, dict):
            members = {key: change(member, (*path, key)) for key, member in node.value.items()}
            same = all(member is node.value[key] for key, member in members.items())
            return node if same else Node(members, node.at, node.key_at)
        if isinstance(node.value, list):
            items = [change(item, (*path, number)) for number, item in enumerate(node.value)]
            same = all(item is old for item, old in zip(items, node.value, strict=True))
            return node if same else Node(items, node.at, node.key_at)
        return node

    def role(self, node: Node, path: Path) -> Node:
        """A task role."""
        node = self.renamed(node, path, _ROLE)
        for name, names in _IN_ROLE.items():
            node = self._inside(node, path, name, names)
        return node

    def prerequisite(self, node: Node, path: Path) -> Node:
        """A prerequisite."""
        return self._inside(self.renamed(node, path, _PREREQUISITE), path, "auth", _AUTH)

    def deployment(self, node: Node, path: Path) -> Node:
        """A deployment and its roles."""
        node = self.renamed(node, path, _DEPLOYMENT)
        return self.within(node, path, "taskRoles", partial(self.each, change=self._deployed))

    def _deployed(self, node: Node, path: Path) -> Node:
        return self.renamed(node, path, _DEPLOYED)

    def _inside(self, node: Node, path: Path, name: str, names: Mapping[str, str]) -> Node:
        """``node`` with the members of its member ``name`` renamed."""
        if not isinstance(node.value, dict):
            return node
        inner = node.value.get(name)
        if inner is None or not isinstance(inner.value, dict) or names.keys().isdisjoint(inner.value):
            return node
        return Node({**node.value, name: self.renamed(inner, (*path, name), names)}, node.at, node.key_at)


LIMITS: Final[Sequence[tuple[tuple[str, ...], int, Text]]] = (
    (("taskRoles",), 1_000, Text("Use instances for equal tasks, or split the job.")),
    (("prerequisites",), 500, Text("Several roles may choose the same prerequisite.")),
    (("deployments",), 100, Text("Keep those that are used.")),
    (("extras", KEY), 32, Text("Put the commands of several plugins into one.")),
    (("extras", "storages"), 100, Text("Mount fewer storages.")),
)
"""What a job may have of each: what keeps a document of many small parts cheap to read."""


@dataclass(frozen=True)
class Read:
    """The job of a v2 document, the values of its secrets, and what its tags take of those of its user."""

    spec: JobSpec
    secrets: Mapping[str, Any]
    users_secrets: tuple[SecretUse, ...]


def read(root: Node, reader: Reader, text: str) -> Read | None:
    """The job that ``root`` (of the document ``text``) describes, or None when ``reader`` now has faults."""
    if _is_too_large(root, reader) or _is_mixed(root, reader):
        return None
    root, draft = modernised(root, reader)
    job = reader.members(root, (), tables.JOB)
    if job is None:
        return None
    _check_kind(job, reader)
    parameters, secrets = (values_of(_node(job, name), text) for name in ("parameters", "secrets"))
    known = secrets if _has_secrets(_node(job, "secrets"), reader) else None
    template = Template(reader, text, parameters, known, _node(job, "parameters"))
    reading = Reading(reader, template, secrets, draft, job.entries("taskRoles"))
    reading.check_version(job)
    prerequisites = read_prerequisites(job, reading)
    extras = read_extras(job, reading)
    roles = _roles(job, prerequisites, extras, reading)
    if reader.failed or not roles:
        return None
    _warn(job, roles, extras, reader)
    spec = JobSpec(
        name=job.text("name") or "",
        dialect=Dialect.OPENPAI_V2_DRAFT if draft else Dialect.OPENPAI_V2,
        image=_image_of_first(job, prerequisites),
        virtual_cluster=_default(job, "virtualCluster", reader) or "default",
        retry_count=job.integer("jobRetryCount") or 0,
        extras=extras.rest,
        scheduling=extras.scheduling,
        secret_names=tuple(secrets),
        storages=extras.storages,
        notify=extras.notify,
        submit_from=extras.submit_from,
        description=job.text("description") or "",
        task_roles=roles,
    )
    return Read(spec, secrets, template.users_secrets)


def _node(job: Members, name: str) -> Node | None:
    value = job.values[name]
    return value if isinstance(value, Node) else None


def _is_too_large(root: Node, reader: Reader) -> bool:
    """Whether there is more of something than is read; the one fault then, before anything is looked at."""
    for path, limit, hint in LIMITS:
        node: Node | None = root
        for step in path:
            node = node.value.get(step) if node is not None and isinstance(node.value, dict) else None
        if node is not None and isinstance(node.value, dict | list) and len(node.value) > limit:
            message = Text(
                "{path} has {count} members, more than {limit}", path=path[-1], count=len(node.value), limit=limit
            )
            reader.fault(path, node.at, message, hint)
            return True
    return False


def _is_mixed(root: Node, reader: Reader) -> bool:
    """Whether this is a v1 document that says it is v2: one fault then, for all others would follow from it."""
    members = root.value if isinstance(root.value, dict) else {}
    if "jobName" not in members or "name" in members or "protocolVersion" not in members:
        return False
    message = Text("protocolVersion says OpenPAI v2, but jobName is a field of v1")
    hint = Text("Remove protocolVersion, or write the job with name, prerequisites and taskRoles as v2 has them.")
    reader.fault(("protocolVersion",), members["protocolVersion"].key_at, message, hint)
    return True


def _check_kind(job: Members, reader: Reader) -> None:
    """The protocol's version and the word ``job``; parts that say what kind of document this is."""
    version = _node(job, "protocolVersion")
    if version is None:
        hint = Text("Write protocolVersion: 2.")
        reader.fault(("protocolVersion",), job.node.at, Text("protocolVersion is missing"), hint)
    elif version.value not in (2, "2") and not isinstance(version.value, Unreadable):
        hint = Text("Write protocolVersion: 2, or leave it out and write the job as OpenPAI v1 JSON.")
        reader.fault(("protocolVersion",), version.at, Text("only protocolVersion 2 is known"), hint)
    kind = job.text("type")
    if not job.given("type"):
        reader.fault(("type",), job.node.at, Text("type is missing"), Text("Write type: job."))
    elif kind is not None and kind != "job":
        reader.fault(
            ("type",), job.at("type"), Text("only documents of type job can be submitted"), Text("Write type: job.")
        )


def _has_secrets(node: Node | None, reader: Reader) -> bool:
    """Whether the secrets are an object, and not what masking left of one."""
    if node is None or node.value is None or isinstance(node.value, dict):
        return True
    if isinstance(node.value, Unreadable):
        return False
    hint = Text("Write name: value lines; the values of a document from elsewhere may have been masked.")
    reader.fault(("secrets",), node.at, Text("secrets must be an object, not {given}", given=kind_of(node)), hint)
    return False


def _roles(job: Members, prerequisites: Prerequisites, extras: Extras, reading: Reading) -> tuple[TaskRole, ...]:
    """All task roles; fewer when some are faulty."""
    given = job.entries("taskRoles")
    reader = reading.reader
    deployed = _deployed(job, given, reading)
    if not given:
        if isinstance(job.values["taskRoles"], Node):
            reader.fault(
                ("taskRoles",), job.at("taskRoles"), Text("taskRoles is empty"), Text("Add at least one task role.")
            )
        return ()
    made = plugins_of((one for kind in prerequisites.kinds.values() for one in kind.values()), reading)
    image, board = _image_of_first(job, prerequisites), _board((*made.values(), *extras.plugins), list(given))
    around = Surroundings(reading, prerequisites, deployed, extras, image, board, made)
    roles = []
    for name, node in given.items():
        role = read_role(name, node, around)
        if reading.exhausted:  # the fault is recorded; the other roles would only meet the same limit
            break
        if role is not None:
            roles.append(role)
    total = sum(role.instances for role in roles)
    if total > MAX_TASKS:
        message = Text("the job has {total} tasks, more than {most}", total=total, most=MAX_TASKS)
        reader.fault(("taskRoles",), job.at("taskRoles"), message, Text("Lower instances, or split the job."))
    return tuple(roles)


def _board(plugins: Sequence[Plugin], names: Sequence[str]) -> str | None:
    """The role that TensorBoard runs in: the first that a tensorboard plugin is for."""
    boards = [plugin for plugin in plugins if plugin.kind == "tensorboard"]
    return next((name for name in names if any(board.serves(name) for board in boards)), None)


def _image_of_first(job: Members, prerequisites: Prerequisites) -> str:
    """The image of the first role, which is the job's; the others name theirs when it is another."""
    for node in job.entries("taskRoles").values():
        name = node.value.get("dockerImage") if isinstance(node.value, dict) else None
        one = prerequisites.kinds[IMAGE].get(name.value) if name is not None and isinstance(name.value, str) else None
        return one.image if one is not None else ""
    return ""


def _default(job: Members, name: str, reader: Reader) -> str | None:
    """A text of ``defaults`` that was already checked."""
    node = job.entries("defaults").get(name)
    return node.value if node is not None and isinstance(node.value, str) else None


def _deployed(job: Members, roles: Mapping[str, Node], reading: Reading) -> dict[str, Deployed]:
    """What the active deployment adds to each role. All deployments are checked, the active one is used."""
    defaults = _node(job, "defaults")
    if defaults is not None and defaults.value is not None:
        reading.reader.members(defaults, ("defaults",), tables.DEFAULTS)
    active = _default(job, "deployment", reading.reader)
    found: dict[str, dict[str, Deployed]] = {}
    for number, node in enumerate(job.items("deployments")):
        deployment = reading.reader.members(node, ("deployments", number), tables.DEPLOYMENT)
        if deployment is None:
            continue
        reading.check_version(deployment)
        name = deployment.text("name")
        if name is not None and name in found:
            path = (*deployment.path, "name")
            message = Text("another deployment is already called {name}", name=shown(name))
            reading.reader.fault(path, deployment.at("name"), message, Text("Give each deployment its own name."))
        added = _deployment_roles(deployment, roles, reading)
        found.setdefault(name or "", added)
    if active and active not in found:
        at = job.entries("defaults")["deployment"].at
        reading.no_such(
            ("defaults", "deployment"),
            at,
            Text("{name} is not a deployment of this job", name=shown(active)),
            active,
            found,
        )
    return found.get(active or "", {}) if active else {}


def _deployment_roles(deployment: Members, roles: Mapping[str, Node], reading: Reading) -> dict[str, Deployed]:
    added = {}
    reading.not_empty(
        deployment, "taskRoles", Text("Name a task role of this job, with its preCommands or postCommands.")
    )
    for name, node in deployment.entries("taskRoles").items():
        path = (*deployment.path, "taskRoles", name)
        if name not in roles:
            reading.no_such(
                path, node.key_at, Text("{name} is not a task role of this job", name=shown(name)), name, roles
            )
        if node.value is None:
            continue
        members = reading.reader.members(node, path, tables.DEPLOYED)
        if members is not None:
            before, after = reading.commands(members, "preCommands"), reading.commands(members, "postCommands")
            added[name] = Deployed(before, after)
    return added


def _warn(job: Members, roles: Sequence[TaskRole], extras: Extras, reader: Reader) -> None:
    """What authors of v2 documents are surprised by."""
    given = job.entries("taskRoles")
    silent = [role.name for role in roles if not _says_when_done(given[role.name])] if len(roles) > 1 else []
    if silent:
        message = Text(
            "the first role to finish completely ends the job, and the others are stopped: "
            "{silent} has no minSucceededInstances",
            silent=shown(silent[0]),
        )
        hint = Text(
            "Write minSucceededInstances: -1 in the completion of roles that others must not wait for or end with."
        )
        reader.warn("first-role-ends-job", ("taskRoles", silent[0]), message, hint)
    if extras.scheduling.gang_allocation:
        retried = next((role.name for role in roles if role.task_retry_count), None)
        if retried is not None:
            path = ("taskRoles", retried, "taskRetryCount")
            hint = Text("Write jobRetryCount, or extras.gangAllocation: false for tasks that run alone.")
            reader.warn(
                "task-retry-unused", path, Text("taskRetryCount is followed only without gang allocation"), hint
            )
    elif (barred := next((role.name for role in roles if role.ssh.barrier), None)) is not None:
        hint = Text("Remove sshbarrier, or gangAllocation: false.")
        message = Text("tasks that start one by one do not wait for each other at the SSH barrier")
        reader.warn("barrier-without-gang", ("taskRoles", barred), message, hint)


def _says_when_done(node: Node) -> bool:
    """Whether a role says itself how many of its tasks let the job succeed."""
    completion = node.value.get("completion") if isinstance(node.value, dict) else None
    if completion is None or not isinstance(completion.value, dict):
        return False
    count = completion.value.get("minSucceededInstances")
    return "minSucceededTaskCount" in completion.value or (count is not None and count.value not in (None, 0))
