"""The extras of a v2 document: scheduling, plugins, storages and notifications; others are kept as they are.

Source: the protocol's own page and what upstream's server reads of extras. The page spells
``hivedscheduler`` with ``gpuType`` and ``reservationId``, the server ``hivedScheduler`` with ``skuType`` and
``pinnedCellId`` and silently ignores the others; both are read here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pai_backend.model.spec import PriorityClass, Scheduling, StorageMount
from pai_backend.model.text import Text
from pai_backend.protocol import plugins
from pai_backend.protocol import v2_tables as tables
from pai_backend.protocol.field_table import Field, FieldKind, Table, kind_of
from pai_backend.protocol.fields import Members, Path
from pai_backend.protocol.mounts import Mount, distinct, mount
from pai_backend.protocol.plugins import Plugin
from pai_backend.protocol.tree import Node, Unreadable, shown
from pai_backend.protocol.v2_prerequisites import Reading

NOTIFICATIONS: Final = ("running", "succeeded", "stopped", "failed", "retried")
_NOTIFICATION = Table(
    Text("jobStatusChangeNotification"), dict.fromkeys(NOTIFICATIONS, Field(FieldKind.ANY)), open=True
)
_HIVED, _OLD_HIVED = "hivedScheduler", "hivedscheduler"
READ: Final = frozenset(
    (_HIVED, _OLD_HIVED, plugins.KEY, "gangAllocation", "storages", "jobStatusChangeNotification", "submitFrom")
)
"""The extras that mean something."""


@dataclass(frozen=True)
class HivedRole:
    """What the scheduler gets of one task role."""

    sku_type: str | None = None
    pinned_cell_id: str | None = None
    affinity_group: str | None = None
    within_one_cell: str | None = None


@dataclass(frozen=True)
class Extras:
    """The extras of one job. ``rest`` are those that nothing here reads."""

    scheduling: Scheduling = field(default_factory=Scheduling)
    roles: Mapping[str, HivedRole] = field(default_factory=dict)
    plugins: tuple[Plugin, ...] = ()
    storages: tuple[StorageMount, ...] = ()
    notify: tuple[str, ...] = ()
    submit_from: str = ""
    rest: Mapping[str, Any] = field(default_factory=dict)


def read_extras(job: Members, reading: Reading) -> Extras:
    """The extras of ``job``; its task roles' names are those that hivedScheduler and plugins may name."""
    given = job.entries("extras")
    roles = job.entries("taskRoles").keys()
    members = Members(Node(given, job.at("extras")), ("extras",), given)
    scheduling, hived = _hived(given, roles, reading)
    gang = reading.gang = reading.flag(members, "gangAllocation", True)
    _check_within(scheduling, hived, gang, given, reading)
    found = plugins.read_plugins(given[plugins.KEY], reading) if plugins.KEY in given else ()
    mounts = (*_storages(given.get("storages"), reading), *(one for plugin in found for one in plugin.mounts))
    return Extras(
        scheduling=scheduling.model_copy(update={"gang_allocation": gang}),
        roles=hived,
        plugins=found,
        storages=distinct(mounts, reading),
        notify=_notify(given.get("jobStatusChangeNotification"), reading),
        submit_from=_submit_from(given.get("submitFrom"), reading),
        rest={name: node.plain() for name, node in given.items() if name not in READ},
    )


def _hived(
    given: Mapping[str, Node], roles: Collection[str], reading: Reading
) -> tuple[Scheduling, dict[str, HivedRole]]:
    """The scheduler's part, in either spelling."""
    name = _HIVED if _HIVED in given else _OLD_HIVED
    node = given.get(name)
    if node is None or node.value is None:
        return Scheduling(), {}
    path: Path = ("extras", name)
    if name == _OLD_HIVED:
        hint = Text("OpenPAI itself follows hivedScheduler only, and ignores this spelling.")
        reading.reader.warn("lower-case-hivedscheduler", path, Text("hivedscheduler is read as hivedScheduler"), hint)
    elif _OLD_HIVED in given:
        at = given[_OLD_HIVED].key_at
        hint = Text("Keep one of the two.")
        reading.reader.fault(("extras", _OLD_HIVED), at, Text("hivedscheduler and hivedScheduler are both given"), hint)
    members = reading.reader.members(node, path, tables.HIVED)
    if members is None:
        return Scheduling(), {}
    reading.not_empty(members, "taskRoles", Text("Name a task role of this job, or remove the field."))
    scheduling = Scheduling(
        priority_class=_priority(members, reading),
        lazy_preemption=reading.flag(members, "lazyPreemptionEnable", False),
        ignore_suggested_nodes=reading.flag(members, "ignoreK8sSuggestedNodes", True),
        gang_release=reading.flag(members, "gangReleaseEnable", False),
        within_one_cell=members.text("withinOneCell") or None,
    )
    if scheduling.gang_release:
        hint = Text("Remove it: the places of a gang are free again as its tasks end, one by one.")
        reading.reader.warn("gang-release-unused", (*path, "gangReleaseEnable"), Text("it has no effect here"), hint)
    return scheduling, _hived_roles(members, roles, reading)


def _priority(members: Members, reading: Reading) -> PriorityClass | None:
    word = members.text("jobPriorityClass")
    if not word:
        return None
    if word in tuple(PriorityClass):
        return PriorityClass(word)
    path = (*members.path, "jobPriorityClass")
    hint = Text("Write one of {classes}.", classes=", ".join(PriorityClass))
    reading.reader.fault(path, members.at("jobPriorityClass"), Text("no such priority class"), hint)
    return None


def _hived_roles(hived: Members, roles: Collection[str], reading: Reading) -> dict[str, HivedRole]:
    """What hivedScheduler says of each role; roles of one affinity group must not ask for different cells."""
    found: dict[str, HivedRole] = {}
    groups: dict[str, HivedRole] = {}
    for name, node in hived.entries("taskRoles").items():
        path = (*hived.path, "taskRoles", name)
        if name not in roles:
            reading.no_such(
                path, node.key_at, Text("{name} is not a task role of this job", name=shown(name)), name, roles
            )
        if node.value is None:
            continue
        members = reading.reader.members(node, path, tables.HIVED_ROLE, keep_unknown=True)
        if members is None:
            continue
        one = HivedRole(
            sku_type=_either(members, "skuType", "gpuType", reading),
            pinned_cell_id=_either(members, "pinnedCellId", "reservationId", reading),
            affinity_group=members.text("affinityGroupName") or None,
            within_one_cell=members.text("withinOneCell") or None,
        )
        if one.sku_type and one.pinned_cell_id:
            message = Text("a SKU type and a pinned cell are both given; only one is allowed")
            reading.reader.fault(path, node.key_at, message, Text("Remove one of the two."))
        if one.affinity_group is not None:
            first = groups.setdefault(one.affinity_group, one)
            if (one.sku_type, one.pinned_cell_id) != (first.sku_type, first.pinned_cell_id):
                message = Text(
                    "the roles of affinity group {group} ask for different cells", group=shown(one.affinity_group)
                )
                reading.reader.fault(path, node.key_at, message, Text("Give them the same skuType or pinnedCellId."))
        found[name] = one
    return found


def _check_within(
    scheduling: Scheduling, roles: Mapping[str, HivedRole], gang: bool, given: Mapping[str, Node], reading: Reading
) -> None:
    """``withinOneCell`` holds for what is placed together; elsewhere it would be a promise that is not kept."""
    path: Path = ("extras", _HIVED if _HIVED in given else _OLD_HIVED)
    named = {name: role for name, role in roles.items() if role.within_one_cell is not None}
    if not gang and (scheduling.within_one_cell is not None or named):
        place = (*path, "taskRoles", next(iter(named)), "withinOneCell") if named else (*path, "withinOneCell")
        message = Text("tasks that start one by one are not placed together, so no cell can be chosen for all of them")
        reading.reader.fault(place, _at(given, place), message, Text("Remove it, or gangAllocation: false."))
    elif any(role.affinity_group is not None for role in roles.values()):
        for name, role in named.items():
            if role.affinity_group is None:
                place = (*path, "taskRoles", name, "withinOneCell")
                message = Text("other roles name affinity groups, so each task of this one is placed by itself")
                hint = Text("Give the role an affinityGroupName too, or remove withinOneCell.")
                reading.reader.fault(place, _at(given, place), message, hint)


def _at(extras: Mapping[str, Node], path: Path) -> int:
    """Where the value at a path of the document stands that begins with ``extras``."""
    node = extras[str(path[1])]
    for step in path[2:]:
        assert isinstance(node.value, dict)
        node = node.value[str(step)]
    return node.at


def _either(members: Members, name: str, old: str, reading: Reading) -> str | None:
    """A field of two spellings, of which one may be used."""
    if members.text(name) and members.text(old):
        path = (*members.path, old)
        reading.reader.fault(
            path,
            members.at(old),
            Text("{old} and {name} are both given", old=old, name=name),
            Text("Keep {name} alone.", name=name),
        )
    return members.text(name) or members.text(old) or None


def _storages(node: Node | None, reading: Reading) -> tuple[Mount, ...]:
    """The storages that ``extras.storages`` names."""
    path: Path = ("extras", "storages")
    if node is None or node.value is None or isinstance(node.value, Unreadable):
        return ()
    if not isinstance(node.value, list):
        reading.reader.fault(
            path,
            node.at,
            Text("storages must be a list, not {given}", given=kind_of(node)),
            Text("Write - name: lines."),
        )
        return ()
    if not node.value:
        hint = Text("Name the storages that the job needs.")
        reading.reader.warn(
            "no-default-storage", path, Text("an empty list asks for default storages, but this site has none"), hint
        )
    found = []
    for number, item in enumerate(node.value):
        members = reading.reader.members(item, (*path, number), tables.STORAGE)
        if members is not None and (name := members.text("name")) is not None:
            place = "mountPath" if members.given("mountPath") else "name"
            at = members.at(place)
            found.append(mount(name, members.text("mountPath"), (*members.path, place), at, reading))
    return tuple(one for one in found if one is not None)


def _notify(node: Node | None, reading: Reading) -> tuple[str, ...]:
    """The changes of a job's state that its owner wants to hear of."""
    if node is None or node.value is None:
        return ()
    members = reading.reader.members(node, ("extras", "jobStatusChangeNotification"), _NOTIFICATION)
    if members is None:
        return ()
    return tuple(name for name in NOTIFICATIONS if reading.flag(members, name, False))


def _submit_from(node: Node | None, reading: Reading) -> str:
    if node is None or node.value is None or isinstance(node.value, Unreadable):
        return ""
    if isinstance(node.value, str):
        return node.value
    path = ("extras", "submitFrom")
    reading.reader.fault(
        path, node.at, Text("submitFrom must be text, not {given}", given=kind_of(node)), Text("Put it in quotes.")
    )
    return ""
