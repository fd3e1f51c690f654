"""What a job asks for: groups of cells, and of each task CPU, memory, fixed ports and which nodes it may use.

Source: OpenPAI's mapping of documents to HiveD (its rest-server, ``v2/hived.js``): the names of priority classes, the
cells a task needs, which roles are one affinity group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pai_backend.model.booking import Booking
from pai_backend.model.ids import TaskUid
from pai_backend.model.job import Job, Task
from pai_backend.model.spec import JobSpec, PriorityClass, TaskRole
from pai_backend.scheduling.config.derive import DEFAULT_VC
from pai_backend.scheduling.config.model import ClusterConfig, Sku
from pai_backend.scheduling.queue.booked import Booked
from pai_backend.scheduling.request import Group, Member, Need
from pai_backend.scheduling.terms import NodeRules, Terms, TermsOf

PRIORITIES: Mapping[PriorityClass | None, int] = {
    PriorityClass.CRIT: 120,
    PriorityClass.PROD: 100,
    PriorityClass.TEST: 10,
    PriorityClass.OPPO: -1,
    None: 10,
}
"""Source: OpenPAI; a job that names no class is a test."""

DEFAULT_GROUP = "default"
"""What the group of all roles of a gang is called. Source: OpenPAI."""

_UNITS = {"Ki": 1 / 1024, "Mi": 1, "Gi": 1024, "Ti": 1024 * 1024, "K": 1e3 / 2**20, "M": 1e6 / 2**20, "G": 1e9 / 2**20}


def mebibytes(text: str) -> int:
    """MiB of a memory size as Kubernetes writes it; 0, which is not counted, when it is empty or invalid."""
    unit = next((unit for unit in _UNITS if text.endswith(unit)), "")
    number = text.removesuffix(unit)
    if not number.isdecimal():
        return 0
    return int(int(number) * (_UNITS[unit] if unit else 1 / 2**20))


@dataclass(frozen=True)
class Party:
    """An affinity group of a job: ``needs`` of its pods, by their number in the group."""

    group: Group
    needs: tuple[Need, ...]

    @property
    def name(self) -> str:
        """The group's name, unique in the cluster."""
        return self.group.name

    @property
    def uids(self) -> tuple[TaskUid, ...]:
        """The tasks, by their number in the group."""
        return tuple(need.uid for need in self.needs)


@dataclass(frozen=True)
class Wish:
    """What is to be placed together: groups of cells, and tasks that need none."""

    job: str
    parties: tuple[Party, ...] = ()
    loose: tuple[Need, ...] = ()

    @property
    def shape(self) -> object:
        """Equal for wishes of any user that can be served by the same cells."""
        asked = [each.group for each in self.parties]
        groups = tuple(
            (each.vc, each.priority, each.leaf_type, each.pinned_id, each.within, each.members) for each in asked
        )
        needs = (*(need for each in self.parties for need in each.needs), *self.loose)
        return groups, tuple(need.kind for need in needs)


@dataclass(frozen=True)
class Sizing:
    """What a cluster configuration says about the size of tasks.

    ``shared``: the configuration was derived from the nodes, so that every virtual cluster may use all of them, a cell
    is a GPU, and CPU and memory are counted by themselves.
    """

    skus: Mapping[str, Sku] = field(default_factory=dict)
    owned: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Virtual cluster -> leaf types it owns."""
    pinned: Mapping[str, str] = field(default_factory=dict)
    """Pinned cell -> its leaf type."""
    shared: bool = False
    cells_for_all: bool = False
    """Tasks without GPU hold cells too, by their CPU and memory."""
    terms: TermsOf = field(default_factory=lambda: TermsOf(NodeRules(), {}), compare=False, repr=False)
    """Makes what tasks ask of nodes besides room."""

    def vc(self, spec: JobSpec) -> str:
        """The virtual cluster whose cells a job uses."""
        return DEFAULT_VC if self.shared else spec.virtual_cluster

    def booked(self, booking: Booking) -> Booked:
        """A reservation in cells: as many as have its GPUs. Without a type it counts by the smallest units."""
        types = [booking.gpu_type] if booking.gpu_type else self.owned.get(booking.vc, ())
        each = _least(self.skus[name].gpu for name in types if name in self.skus) or 1
        return Booked(booking, DEFAULT_VC if self.shared else booking.vc, -(-booking.gpus // each))

    def leaf_type(self, spec: JobSpec, role: TaskRole) -> str:
        """The leaf type that a role asks for; empty for any."""
        return "" if role.pinned_cell_id else role.sku_type or spec.gpu_type or ""

    def leaves(self, spec: JobSpec, role: TaskRole) -> int:
        """Leaf cells that each task of the role holds; 0 when it needs none.

        As many as the scarcest of GPU, CPU and memory asks for: a cell is one unit of hardware with its share of the
        machine. Without a type it counts by the smallest units among those it may get.
        """
        need = role.resources
        named = bool(role.sku_type or role.pinned_cell_id)
        if not need.gpus and (self.shared or not (named or self.cells_for_all)):
            return 0
        units = self._units(spec, role)
        gpu = _least(unit.gpu for unit in units) or 1
        cpu, memory = _least(unit.cpu for unit in units), _least(mebibytes(unit.memory) for unit in units)
        wanted = [-(-need.gpus // gpu)]
        wanted += [-(-need.cpus // cpu)] if cpu else []
        wanted += [-(-need.memory_mb // memory)] if memory else []
        return max(1, *wanted)

    def _units(self, spec: JobSpec, role: TaskRole) -> list[Sku]:
        if self.shared:
            return []
        if role.pinned_cell_id:
            types: Iterable[str] = [self.pinned.get(role.pinned_cell_id, "")]
        elif kind := self.leaf_type(spec, role):
            types = [kind]
        elif spec.scheduling.priority_class is PriorityClass.OPPO:
            types = self.skus
        else:
            types = self.owned.get(spec.virtual_cluster, ())
        return [self.skus[name] for name in types if name in self.skus]


def sizing_of(config: ClusterConfig | None, *, cells_for_all: bool = False, rules: NodeRules | None = None) -> Sizing:
    """The sizing of a written configuration, or of nodes without any."""
    if config is None:
        return Sizing(shared=True, terms=TermsOf(rules or NodeRules(), {}))
    pins = {pin: config.levels(kind)[0] for pin, kind in config.pins.items()}
    owned = {
        vc.name: tuple(
            dict.fromkeys(
                [config.levels(quota.chain)[0] for quota in vc.quotas if quota.number]
                + [pins[pin] for pin in vc.pinned]
            )
        )
        for vc in config.virtual_clusters.values()
    }
    terms = TermsOf(rules or NodeRules(), _types_of_nodes(config))
    return Sizing(config.skus, owned, pins, cells_for_all=cells_for_all, terms=terms)


def _types_of_nodes(config: ClusterConfig) -> dict[str, tuple[str, ...]]:
    """Node -> the leaf types of its cells."""
    found: dict[str, dict[str, None]] = {}
    for cell in reversed([*config.machines()]):
        found.setdefault(cell.address, {})[config.levels(cell.type)[0]] = None
    return {name: tuple(types) for name, types in found.items()}


def wish_of(job: Job, tasks: Iterable[Task], sizing: Sizing) -> Wish:
    """What these tasks of a job ask for together: all of a gang, or some of an incremental job."""
    wanted = list(tasks)
    names = {task.uid: group_name(job, task, sizing) for task in wanted}
    grouped: dict[str, list[Task]] = {}
    for task in wanted:
        grouped.setdefault(names[task.uid], []).append(task)
    plain = sizing.terms.without_cells(job.spec.node_selector)
    loose = tuple(_need(job, task, plain) for task in grouped.pop("", []))
    parties = tuple(_party(job, name, members, sizing) for name, members in grouped.items())
    return Wish(job.id, parties, loose)


def group_name(job: Job, task: Task, sizing: Sizing) -> str:
    """The affinity group that the task belongs to; empty when it holds no cells.

    Tasks of an incremental job are groups by themselves, and so are those of unnamed roles once another role names a
    group. One group lies in one kind of cells, so roles that ask for another kind are a group of their own.
    """
    spec, role = job.spec, job.spec.role(task.role)
    if not sizing.leaves(spec, role):
        return ""
    if not spec.scheduling.gang_allocation:
        return f"{job.id}/{task.role}-{task.index}"
    if role.affinity_group is not None:
        return f"{job.id}/{role.affinity_group}"
    if any(other.affinity_group is not None for other in spec.task_roles):
        return f"{job.id}/{task.role}-{task.index}"
    kind = role.pinned_cell_id or sizing.leaf_type(spec, role)
    kinds = [
        each.pinned_cell_id or sizing.leaf_type(spec, each) for each in spec.task_roles if sizing.leaves(spec, each)
    ]
    return f"{job.id}/{DEFAULT_GROUP}" + (f"-{kind}" if kind != kinds[0] else "")


def _party(job: Job, name: str, tasks: list[Task], sizing: Sizing) -> Party:
    spec = job.spec
    members = []
    for role in spec.task_roles:
        count = sum(task.role == role.name for task in tasks)
        if count:
            members.append(Member(count, sizing.leaves(spec, role), within=role.within_one_cell or "", role=role.name))
    order = {role.name: number for number, role in enumerate(spec.task_roles)}
    ordered = sorted(tasks, key=lambda task: (order[task.role], task.index))
    first = spec.role(ordered[0].role)
    group = Group(
        name=name,
        vc=sizing.vc(spec),
        members=tuple(members),
        priority=PRIORITIES[spec.scheduling.priority_class],
        leaf_type=sizing.leaf_type(spec, first),
        pinned_id=first.pinned_cell_id or "",
        lazy_preemption=spec.scheduling.lazy_preemption,
        within=spec.scheduling.within_one_cell or "",
        spread=_may_spread(spec, members, first, sizing),
    )
    kind = sizing.pinned.get(group.pinned_id, group.leaf_type)
    terms = sizing.terms.on_cells(spec.node_selector, kind)
    return Party(group, tuple(_need(job, task, terms, kind) for task in ordered))


def _may_spread(spec: JobSpec, members: Sequence[Member], first: TaskRole, sizing: Sizing) -> bool:
    """Whether a gang may lie on nodes of several shapes: it names nothing, and the shapes are all that chains mean."""
    named = sizing.leaf_type(spec, first) or first.pinned_cell_id or spec.scheduling.within_one_cell
    together = sum(member.pods for member in members) > 1 and not any(member.within for member in members)
    return sizing.shared and together and not named


def _need(job: Job, task: Task, terms: Terms, kind: str = "") -> Need:
    role = job.spec.role(task.role)
    need = role.resources
    fixed = tuple(
        (port.begin_at + step, port.label) for port in role.ports if port.begin_at for step in range(port.count)
    )
    return Need(task.uid, need.cpus, need.memory_mb, need.gpus, fixed, terms, kind)


def _least(numbers: Iterable[int]) -> int:
    """The smallest number that counts; 0 when none does."""
    return min((number for number in numbers if number > 0), default=0)
