"""Who uses and who waits for what: of each virtual cluster its cells and jobs, of each node its GPUs.

Cells are counted in leaves. *Guaranteed* is what groups use of their virtual cluster's own quota, *opportunistic* what
they use without a claim, of anyone's; *reserved* is kept for preemptors while others end there; *bad* is owned and
has no healthy cell.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pai_backend.model.job import Job
from pai_backend.model.node import Node
from pai_backend.scheduling.cells.tree import Held, Quotas, State
from pai_backend.scheduling.config.derive import DEFAULT_VC
from pai_backend.scheduling.core.ledger import Ledger
from pai_backend.scheduling.jobs.demand import Sizing
from pai_backend.scheduling.jobs.reorder import Standing, in_order, standing_of


@dataclass(frozen=True)
class CellsUse:
    """Cells of one type in one virtual cluster, or of one pinned cell. ``shapes``: cell type -> how many are owned."""

    leaf_type: str
    pinned_id: str
    shapes: Mapping[str, int]
    owned: int
    guaranteed: int
    opportunistic: int
    reserved: int
    bad: int
    free: int
    """What its groups could still claim; without configured cells, what no virtual cluster uses."""


@dataclass(frozen=True)
class Running:
    """A job that has a place, or tasks that have one."""

    job: Job
    tasks: int
    gpus: int
    opportunistic: bool
    """Whether some of it runs without a claim, and ends when the owner comes."""


@dataclass(frozen=True)
class InLine:
    """A job that waits as a whole, with its place among all who wait for the same cells."""

    job: Job
    standing: Standing
    position: int
    waiting: int


@dataclass(frozen=True)
class ClusterUse:
    """One virtual cluster: its cells, who runs there, who waits in which order."""

    name: str
    cells: tuple[CellsUse, ...]
    running: tuple[Running, ...]
    waiting: tuple[InLine, ...]


@dataclass(frozen=True)
class NodeUse:
    """What of a node is in use, and how many of its GPUs cannot be used."""

    node: Node
    gpus: int
    bad: int
    cpus: int
    memory_mb: int


@dataclass
class _Leaves:
    """Leaves of one kind in use by one virtual cluster."""

    guaranteed: int = 0
    opportunistic: int = 0
    reserved: int = 0

    @property
    def claimed(self) -> int:
        """Those that are no longer free to claim."""
        return self.guaranteed + self.reserved


Kind = tuple[str, str]
"""Leaf type, and the pinned cell or ""."""


def use_of_clusters(ledger: Ledger, sizing: Sizing, names: Sequence[str], jobs: Iterable[Job]) -> list[ClusterUse]:
    """The virtual clusters of these names. ``jobs`` are all that have not ended."""
    known = {job.id: job for job in jobs}
    used = _leaves(ledger, {name: job.spec.virtual_cluster for name, job in known.items()})
    owned = _owned(ledger)
    without_claim = {job_of_group(held.group.name) for held in ledger.groups.values() if held.priority < 0}
    shared = sizing.shared
    running, waiting = _running(known.values(), without_claim), _in_line(known.values(), shared=shared)
    return [
        ClusterUse(
            name,
            tuple(_cells(name, kind, owned, used, shared=shared) for kind in _kinds(name, owned, used, shared=shared)),
            tuple(running.get(name, ())),
            tuple(waiting.get(name, ())),
        )
        for name in names
    ]


def job_of_group(group: str) -> str:
    """The id of the job that an affinity group belongs to."""
    return group.rpartition("/")[0]


def _leaves(ledger: Ledger, vc_of: Mapping[str, str]) -> dict[tuple[str, Kind], _Leaves]:
    found: dict[tuple[str, Kind], _Leaves] = {}
    for held in ledger.groups.values():
        vc = vc_of.get(job_of_group(held.group.name), held.group.vc)
        for spot in held.spots:
            pinned = held.group.pinned_id if spot.unit is not None else ""
            leaves = found.setdefault((vc, (spot.node.chain.leaf_type, pinned)), _Leaves())
            _count(leaves, held, spot.mask.bit_count(), claimed=spot.unit is not None)
    return found


def _count(leaves: _Leaves, held: Held, number: int, *, claimed: bool) -> None:
    if held.state is State.PREEMPTING:
        leaves.reserved += number
    elif claimed:
        leaves.guaranteed += number
    else:
        leaves.opportunistic += number


def _owned(ledger: Ledger) -> dict[tuple[str, Kind], list[Quotas]]:
    found: dict[tuple[str, Kind], list[Quotas]] = {}
    for quotas in (*ledger.quotas.values(), *ledger.pinned.values()):
        if quotas.leaves:
            found.setdefault((quotas.vc, (quotas.chain.leaf_type, quotas.pinned_id)), []).append(quotas)
    return found


def _kinds(
    name: str, owned: Collection[tuple[str, Kind]], used: Collection[tuple[str, Kind]], *, shared: bool
) -> list[Kind]:
    """What the virtual cluster owns, in the order of the configuration; then what it only uses."""
    owner = DEFAULT_VC if shared else name
    kinds = [kind for vc, kind in owned if vc == owner] + [kind for vc, kind in used if vc == name]
    return list(dict.fromkeys(kinds))


def _cells(
    name: str,
    kind: Kind,
    owned: Mapping[tuple[str, Kind], list[Quotas]],
    used: Mapping[tuple[str, Kind], _Leaves],
    *,
    shared: bool,
) -> CellsUse:
    quotas = owned.get((DEFAULT_VC if shared else name, kind), [])
    own = used.get((name, kind), _Leaves())
    shapes: dict[str, int] = {}
    for each in quotas:
        for root in each.roots:
            type_ = each.chain.types[root.level]
            shapes[type_] = shapes.get(type_, 0) + 1
    total = sum(each.leaves for each in quotas)
    bad = sum(each.chain.sizes[root.level] for each in quotas for root in each.doomed)
    if shared:
        taken = sum(leaves.claimed + leaves.opportunistic for (_, other), leaves in used.items() if other == kind)
    else:
        taken = own.claimed
    return CellsUse(
        leaf_type=kind[0],
        pinned_id=kind[1],
        shapes=shapes,
        owned=total,
        guaranteed=own.guaranteed,
        opportunistic=own.opportunistic,
        reserved=own.reserved,
        bad=bad,
        free=max(0, total - taken - bad),
    )


def _running(jobs: Iterable[Job], without_claim: Collection[str]) -> dict[str, list[Running]]:
    found: dict[str, list[Running]] = {}
    for job in jobs:
        placed = [task for task in job.tasks if task.holds_place]
        if placed:
            gpus = sum(job.spec.role(task.role).resources.gpus for task in placed)
            runs = Running(job, len(placed), gpus, job.id in without_claim)
            found.setdefault(job.spec.virtual_cluster, []).append(runs)
    return found


def _in_line(jobs: Iterable[Job], *, shared: bool) -> dict[str, list[InLine]]:
    """Waiting jobs of each virtual cluster, in the order in which they are served."""
    lines: dict[str, list[tuple[Standing, Job]]] = {}
    for job in jobs:
        standing = standing_of(job, shared=shared)
        if standing is not None:
            lines.setdefault(standing.queue.vc, []).append((standing, job))
    found: dict[str, list[InLine]] = {}
    for line in lines.values():
        job_of = {standing.uid: job for standing, job in line}
        for position, standing in enumerate(in_order(standing for standing, _ in line), 1):
            job = job_of[standing.uid]
            found.setdefault(job.spec.virtual_cluster, []).append(InLine(job, standing, position, len(line)))
    for waiting in found.values():
        waiting.sort(key=lambda each: (-each.standing.queue.priority, each.position))
    return found


def use_of_nodes(ledger: Ledger, sizing: Sizing, nodes: Iterable[Node], jobs: Iterable[Job]) -> list[NodeUse]:
    """All nodes by name. GPUs of a node that is not ready, and configured ones that it does not have, are bad."""
    used: dict[str, list[int]] = {}
    for job in jobs:
        for task in job.tasks:
            if task.placement is not None and task.holds_place:
                need = job.spec.role(task.role).resources
                node = used.setdefault(task.placement.node, [0, 0, 0])
                node[:] = (
                    node[0] + len(task.placement.gpus),
                    node[1] + need.cpus,
                    node[2] + need.memory_mb,
                )
    return [
        NodeUse(node, gpus, _bad(ledger, sizing, node), cpus, memory)
        for node in sorted(nodes, key=lambda each: each.name)
        for gpus, cpus, memory in [used.get(node.name, (0, 0, 0))]
    ]


def _bad(ledger: Ledger, sizing: Sizing, node: Node) -> int:
    if not node.ready:
        return len(node.gpus)
    broken = 0
    for cells in ledger.nodes.get(node.name, ()):
        sku = sizing.skus.get(cells.chain.leaf_type)
        broken += cells.broken.bit_count() * (1 if sku is None else sku.gpu)
    return broken
