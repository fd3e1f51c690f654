"""One task role of a v2 document: what it needs, what it chooses, when it decides its job, and its command.

Source of the completion rules: upstream's server, which takes 0, null and a missing count for the default and
lets -1 switch a rule off.

Of the command, plugins' lines come first and, after the role's own, in reverse; between them the deployment's
preCommands, the commands and the deployment's postCommands. Each is trimmed, and all run in one shell with errexit,
nounset and pipefail, so that what comes after the commands runs only when they succeeded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from pai_backend.model.spec import Completion, PortSpec, Resources, SshOptions, TaskRole
from pai_backend.model.text import Text
from pai_backend.protocol import v2_tables as tables
from pai_backend.protocol.field_table import Table, kind_of
from pai_backend.protocol.fields import Members, Path
from pai_backend.protocol.own_fields import MAX_NAME
from pai_backend.protocol.plugin_shell import TENSORBOARD_LABEL, ssh_barrier, tolerant
from pai_backend.protocol.plugins import Plugin, shell_after, shell_before
from pai_backend.protocol.template import Chosen
from pai_backend.protocol.tree import Node, Unreadable, shown
from pai_backend.protocol.v1 import MAX_ARGUMENT
from pai_backend.protocol.v1_ports import IMPLICIT_PORTS
from pai_backend.protocol.v2_extras import Extras, HivedRole
from pai_backend.protocol.v2_prerequisites import CHOSEN, IMAGE, LocatedText, Prerequisite, Prerequisites, Reading

_NO_SSH = SshOptions()


@dataclass(frozen=True)
class Deployed:
    """What the active deployment adds to one role."""

    before: tuple[LocatedText, ...] = ()
    after: tuple[LocatedText, ...] = ()


def used_plugins(
    role: Members,
    chosen: Iterable[Prerequisite],
    prerequisites: Prerequisites,
    made: Mapping[Prerequisite, Plugin],
    extras: Extras,
    name: str,
    reading: Reading,
) -> list[Plugin]:
    """The plugins of a role in order: those of its prerequisites, what they require first, then those of extras.

    ``made`` has the plugins that prerequisites are.
    """
    wanted = list(chosen)
    for text in reading.texts(role, "prerequisites"):
        word = str(text.node.value)
        named = prerequisites.named(word)
        wanted += named
        if not named and word not in prerequisites.faulty:
            message = Text("{name} is not a prerequisite of this job", name=shown(word))
            reading.no_such(text.path, text.node.at, message, word, prerequisites.names())
    needed = prerequisites.with_required(dict.fromkeys(wanted))
    found = [made[one] for one in needed if one in made]
    found += [plugin for plugin in extras.plugins if plugin.serves(name)]
    lines = len(needed) + sum(plugin.lines for plugin in found)
    return found if not lines or reading.use(lines, role.path, role.node.at) else []


def ssh_of(plugins: Sequence[Plugin]) -> SshOptions:
    """What the ssh plugins of a role ask for together."""
    asked = [plugin.ssh for plugin in plugins if plugin.ssh is not None]
    if not asked:
        return _NO_SSH
    return SshOptions(
        job_ssh=any(one.job_ssh for one in asked),
        authorized_keys=tuple(dict.fromkeys(key for one in asked for key in one.authorized_keys)),
        barrier=any(one.barrier for one in asked),
        barrier_roles=_barrier_roles(asked),
        barrier_timeout_s=max(one.barrier_timeout_s for one in asked),
    )


def _barrier_roles(asked: Sequence[SshOptions]) -> tuple[str, ...]:
    """The roles that are waited for; none means all, and who waits for all need not name any."""
    barriers = [one.barrier_roles for one in asked if one.barrier]
    return tuple(dict.fromkeys(name for names in barriers for name in names)) if all(barriers) else ()


def _barrier(plugins: Sequence[Plugin], reading: Reading) -> str:
    """The lines that wait for other tasks' SSH; empty when no plugin asks for it."""
    asking = [plugin for plugin in plugins if plugin.ssh is not None and plugin.ssh.barrier]
    if not asking or not reading.gang:
        return ""
    ssh = ssh_of(asking)
    lines = ssh_barrier(ssh.barrier_roles or tuple(reading.roles), ssh.barrier_timeout_s)
    return tolerant(lines, "ssh") if all(plugin.tolerant for plugin in asking) else lines


def command(
    role: Members,
    plugins: Sequence[Plugin],
    deployed: Deployed,
    scopes: Chosen,
    board: bool,
    reading: Reading,
) -> str | None:
    """The shell text of a role, or None when it has none (recorded). ``board``: TensorBoard runs here."""
    own = reading.commands(role, "commands")
    path = (*role.path, "commands")
    pieces = [shell_before(plugin, reading, scopes) for plugin in plugins if board or plugin.kind != "tensorboard"]
    pieces.append(_barrier(plugins, reading))
    for text in (*deployed.before, *own, *deployed.after):
        pieces.append(reading.template.fill(text.node, text.path, scopes).strip())
    pieces += [shell_after(plugin, reading, scopes) for plugin in reversed(plugins)]
    node = role.values["commands"]
    if not isinstance(node, Node) or not reading.template.spend(sum(map(len, pieces)), node, path):
        return None
    whole = "\n".join(piece for piece in pieces if piece)
    if not whole:
        if own:
            reading.reader.fault(path, node.at, Text("there is nothing to run"), Text("Write a command."))
        return None
    if len(whole) > MAX_ARGUMENT // 4 and len(whole.encode()) > MAX_ARGUMENT:
        message = Text("the command is longer than {most} bytes; Linux cannot start it", most=MAX_ARGUMENT)
        hint = Text("Put the script into the image or the data and call it from the command.")
        reading.reader.warn("long-command", path, message, hint)
    return whole


MAX_LABELS: Final = 100
"""Kinds of ports of one role."""
_DIGITS = re.compile(r"[1-9][0-9]{0,3}")
_DEFAULT_SHM_MB: Final = 512
_OFF: Final = -1


@dataclass(frozen=True)
class Surroundings:
    """What the roles of a job share. ``image`` is the first role's, which is the job's; ``board`` the role, if any,
    that TensorBoard runs in; ``made`` has the plugins that prerequisites are.
    """

    reading: Reading
    prerequisites: Prerequisites
    deployed: Mapping[str, Deployed]
    extras: Extras
    image: str
    board: str | None
    made: Mapping[Prerequisite, Plugin]


def read_role(name: str, node: Node, around: Surroundings) -> TaskRole | None:
    """The task role of that name, or None when a field of it is faulty (recorded)."""
    reading = around.reading
    path: Path = ("taskRoles", name)
    _check_name(name, path, node.key_at, Text("a task role"), reading)
    role = reading.reader.members(node, path, tables.ROLE)
    if role is None:
        return None
    chosen = _chosen(role, around)
    plugins = used_plugins(role, chosen.values(), around.prerequisites, around.made, around.extras, name, reading)
    scopes = {
        kind: around.prerequisites.values(chosen[kind], reading) if kind in chosen else None
        for kind in CHOSEN
        if role.given(kind)
    }
    text = command(role, plugins, around.deployed.get(name, Deployed()), scopes, around.board == name, reading)
    needs = _object(role, "resourcePerInstance", tables.RESOURCES, reading)
    options = _object(role, "extraContainerOptions", tables.CONTAINER, reading)
    image = chosen.get(IMAGE)
    instances = 1 if reading.is_null(role, "instances") else role.integer("instances")
    completion = _completion(role, instances, reading)
    ports = _ports(needs, around.board == name, reading)
    resources = _resources(needs, options, reading)
    if resources is None or instances is None or image is None or text is None:
        return None
    hived = around.extras.roles.get(name, _NO_HIVED)
    return TaskRole(
        name=name,
        instances=instances,
        resources=resources,
        ports=ports,
        command=text,
        strict=True,
        completion=completion,
        task_retry_count=role.integer("taskRetryCount") or 0,
        image=None if image.image == around.image else image.image,
        image_auth=image.auth,
        infiniband=options is not None and reading.flag(options, "infiniband", False),
        ssh=ssh_of(plugins),
        sku_type=hived.sku_type,
        pinned_cell_id=hived.pinned_cell_id,
        affinity_group=hived.affinity_group,
        within_one_cell=hived.within_one_cell,
    )


_NO_HIVED = HivedRole()


def _check_name(name: str, path: Path, at: int, what: Text, reading: Reading) -> None:
    """The name of a role or a port becomes part of names of environment variables and files."""
    if not tables.IDENTIFIER.fullmatch(name):
        message = Text(
            "the name of {what} holds other characters than letters, digits and '_', or begins with a digit", what=what
        )
        reading.reader.fault(path, at, message, Text("Choose a name like worker_1."))
    elif len(name) > MAX_NAME:
        reading.reader.fault(
            path,
            at,
            Text("the name of {what} has {count} characters", what=what, count=len(name)),
            Text("Use at most {most}.", most=MAX_NAME),
        )


def _object(role: Members, name: str, table: Table, reading: Reading) -> Members | None:
    """The members of an object field; None when it is missing, null or faulty."""
    node = role.values[name]
    if not isinstance(node, Node) or not isinstance(node.value, dict):
        return None
    return reading.reader.members(node, (*role.path, name), table)


def _chosen(role: Members, around: Surroundings) -> dict[str, Prerequisite]:
    """The prerequisites that a role chose, by type."""
    found = {}
    for kind, name in ((IMAGE, "dockerImage"), *((kind, kind) for kind in CHOSEN)):
        word = role.text(name)
        if not word:
            continue
        one = around.prerequisites.kinds[kind].get(word)
        if one is not None:
            found[kind] = one
            continue
        if word in around.prerequisites.faulty:
            continue
        message = Text(
            "{field} names {name}, which is not a prerequisite of type {kind}", field=name, name=shown(word), kind=kind
        )
        known = around.prerequisites.kinds[kind]
        around.reading.no_such((*role.path, name), role.at(name), message, word, known)
    return found


def _completion(role: Members, instances: int | None, reading: Reading) -> Completion:
    """When the role decides its job."""
    members = _object(role, "completion", tables.COMPLETION, reading)
    if members is None:
        return _rule(1, instances)
    failed = _count(members, "minFailedInstances", "minFailedTaskCount", 1, reading)
    succeeded = _count(members, "minSucceededInstances", "minSucceededTaskCount", instances, reading)
    if instances is not None:
        for name, count in (("minFailedInstances", failed), ("minSucceededInstances", succeeded)):
            if count is not None and count > instances:
                message = Text(
                    "{name} ({count}) is more than the role's {instances} instances: the rule never applies",
                    name=name,
                    count=count,
                    instances=instances,
                )
                hint = Text("Lower it, or write -1 to say so.")
                reading.reader.warn("unreachable-count", (*members.path, name), message, hint)
        if succeeded == 1 and instances > 1:
            message = Text(
                "the first of {instances} instances to succeed ends the job; the others are stopped",
                instances=instances,
            )
            hint = Text("Write {instances}, or -1 to wait for all tasks, if that is not meant.", instances=instances)
            reading.reader.warn("first-task-ends-job", (*members.path, "minSucceededInstances"), message, hint)
    return _rule(failed, succeeded)


def _count(members: Members, name: str, v1_name: str, default: int | None, reading: Reading) -> int | None:
    """One counter. Upstream's early servers took any key here, and official examples use the names of v1."""
    if members.given(v1_name):
        hint = Text("Write {name}; v2 turns a rule off by -1.", name=name)
        if members.given(name):
            message = Text("{name} is a name of v1; it is ignored", name=v1_name)
        else:
            message = Text("{name} is a name of v1; it is followed", name=v1_name)
        reading.reader.warn("v1-name", (*members.path, v1_name), message, hint)
        if not members.given(name):
            return members.integer(v1_name)
    count = members.integer(name)
    if count is None and members.given(name) and reading.draft:
        hint = Text("Write -1 to switch a rule off; in v2 null means the default.")
        reading.reader.warn(
            "draft-null", (*members.path, name), Text("{name}: null switches the rule off", name=name), hint
        )
        return None
    if count == _OFF:
        return None
    return count or default


def _ports(needs: Members | None, board: bool, reading: Reading) -> tuple[PortSpec, ...]:
    """The declared ports, TensorBoard's, and the implicit ones."""
    given = {} if needs is None else needs.entries("ports")
    path: Path
    if needs is not None and len(given) > MAX_LABELS:
        path = (*needs.path, "ports")
        reading.reader.fault(
            path,
            needs.at("ports"),
            Text("more than {most} labels", most=MAX_LABELS),
            Text("Ask for more ports of one."),
        )
        return ()
    ports = []
    for label, node in given.items():
        path = (*needs.path, "ports", label) if needs is not None else ()
        _check_name(label, path, node.key_at, Text("a port"), reading)
        ports.append(_port(label, _port_count(node, path, reading)))
    if board and TENSORBOARD_LABEL not in given:
        ports.append(_port(TENSORBOARD_LABEL, 1))
    return (*ports, *(port for port in IMPLICIT_PORTS if port.label not in given))


def _port_count(node: Node, path: Path, reading: Reading) -> int:
    if type(node.value) is int and 1 <= node.value <= 65_535:
        return node.value
    if node.value == 0 and reading.draft:
        hint = Text("Write how many ports you need.")
        reading.reader.warn("draft-port", path, Text("0 ports: read as one port chosen at random"), hint)
        return 1
    if isinstance(node.value, str) and _DIGITS.fullmatch(node.value):
        reading.reader.warn("number-as-text", path, Text("a number written as text"), Text("Write it without quotes."))
        return int(node.value)
    if not isinstance(node.value, Unreadable) and reading.reader.room_for_fault():
        what = f"{node.value}" if type(node.value) is int and abs(node.value) < 10**9 else kind_of(node)
        message = Text("how many ports must be a number from 1 to 65535, not {given}", given=what)
        reading.reader.fault(path, node.at, message, Text("Write how many ports each task needs."))
    return 1


# Equal parts of roles are one value: most roles of a job are alike, and making a value is dear.
@lru_cache(maxsize=256)
def _rule(failed: int | None, succeeded: int | None) -> Completion:
    return Completion(min_failed=failed, min_succeeded=succeeded)


@lru_cache(maxsize=256)
def _needs(cpus: int, memory_mb: int, gpus: int, shm_mb: int) -> Resources:
    return Resources(cpus=cpus, memory_mb=memory_mb, gpus=gpus, shm_mb=shm_mb)


@lru_cache(maxsize=256)
def _port(label: str, count: int) -> PortSpec:
    return PortSpec(label=label, count=count)


def _resources(needs: Members | None, options: Members | None, reading: Reading) -> Resources | None:
    """What one task needs. Source of 512 MiB: upstream's default for /dev/shm."""
    if needs is None:
        return None
    cpus, memory_mb, gpus = needs.integer("cpu"), needs.integer("memoryMB"), needs.integer("gpu")
    if cpus is None or memory_mb is None or gpus is None:
        return None
    shm_mb = options.integer("shmMB") if options is not None else None
    if options is not None and shm_mb is not None and shm_mb > memory_mb and options.given("shmMB"):
        message = Text("shmMB ({shm}) is more than memoryMB ({memory})", shm=shm_mb, memory=memory_mb)
        hint = Text("Shared memory is part of the memory: lower shmMB or raise memoryMB.")
        reading.reader.warn("shm-over-memory", (*options.path, "shmMB"), message, hint)
    return _needs(cpus, memory_mb, gpus, _DEFAULT_SHM_MB if shm_mb is None else shm_mb)
