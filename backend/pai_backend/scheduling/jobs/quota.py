"""What can be told wrong about a job at submit, by the cluster configuration alone.

Source: OpenPAI's rest-server (``v2/hived.js``): kinds of cells that do not exist or are not the virtual cluster's, and
gangs that are larger than all that it owns, are refused at once. An incremental or opportunistic job is not: it runs
on the cells that are free, but for what an incremental one starts together. A gang that no cell of the type it names
(``within``) could contain is refused as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pai_backend.model.node import Node
from pai_backend.model.spec import JobSpec, PriorityClass, TaskRole
from pai_backend.scheduling.config.derive import derive
from pai_backend.scheduling.config.model import ClusterConfig, Sku
from pai_backend.scheduling.jobs.demand import Sizing, mebibytes

CPU = "CPU"
"""What the share of a CPU is called where no configuration has a name for it. Tasks without GPUs may name it."""


def named_kinds(config: ClusterConfig | None, nodes: Iterable[Node], vc: str = "") -> dict[str, Sku]:
    """Kind to what a unit of it has: those of a virtual cluster, or all, with ``vc`` empty.

    As a written configuration says, or else as the nodes have it: a unit of the smallest. Every kind told here is one
    that a document may name, so GPUs of unknown type are left out. Raises KeyError for an unknown ``vc``.
    """
    if config is None:
        nodes = list(nodes)
        found = {kind: sku for kind, sku in derive(nodes).skus.items() if kind}
        plain = [node for node in nodes if not node.gpus and node.cpus]
        if plain:
            found.setdefault(CPU, Sku(0, 1, f"{min(node.memory_mb // node.cpus for node in plain)}Mi"))
        return found
    chains = list(config.chains())
    if vc:
        owned = {quota.chain for quota in config.virtual_clusters[vc].quotas if quota.number}
        chains = [chain for chain in chains if chain in owned]  # pinned cells are named by themselves, not by a kind
    return {kind: config.skus.get(kind, Sku()) for kind in (config.levels(chain)[0] for chain in chains)}


@dataclass(frozen=True)
class Misfit:
    """Something that can never be right, with its place in a v2 document and the remedy."""

    path: tuple[str, ...]
    message: str
    hint: str


_SCHEDULER = ("extras", "hivedScheduler")


def within_misfits(spec: JobSpec, config: ClusterConfig, sizing: Sizing) -> Iterator[Misfit]:
    """All that is wrong with what a gang asks for; its virtual cluster exists, and so do its kinds of cells."""
    for role in spec.task_roles:
        if role.within_one_cell is not None:
            path = (*_SCHEDULER, "taskRoles", role.name, "withinOneCell")
            yield from _wrong(role.within_one_cell, [role], path, spec, config, sizing)
    if spec.scheduling.within_one_cell is not None:
        for roles in _groups(spec, sizing):
            found = list(
                _wrong(spec.scheduling.within_one_cell, roles, (*_SCHEDULER, "withinOneCell"), spec, config, sizing)
            )
            yield from found
            if found:  # what holds for one group is seldom news for the next
                return


def _wrong(
    kind: str, roles: Sequence[TaskRole], path: tuple[str, ...], spec: JobSpec, config: ClusterConfig, sizing: Sizing
) -> Iterator[Misfit]:
    """What is wrong with one cell of type ``kind`` for all tasks of these roles, which lie in one chain."""
    leaves = sum(role.instances * sizing.leaves(spec, role) for role in roles)
    levels = dict.fromkeys(
        level for chain in _chains(spec, roles[0], config, sizing) for level in reversed(config.levels(chain))
    )
    if not leaves:
        hint = "Remove it, or give the tasks GPUs or a skuType."
        yield Misfit(path, "the tasks hold no cells, so none can contain them", hint)
    elif kind not in levels:
        hint = f"Name one of: {', '.join(levels) or 'none'}."
        yield Misfit(path, f"there are no cells of type {kind} where the tasks may run", hint)
    elif leaves > config.leaves(kind):
        message = f"the tasks ask for {leaves} SKUs together, and one cell of type {kind} has {config.leaves(kind)}"
        yield Misfit(path, message, "Name a larger type of cell, or ask for fewer or smaller tasks.")


def _groups(spec: JobSpec, sizing: Sizing) -> Iterable[list[TaskRole]]:
    """The roles that hold cells, by what is placed together: see ``demand.group_name``."""
    named = any(role.affinity_group is not None for role in spec.task_roles)
    groups: dict[object, list[TaskRole]] = {}
    for role in spec.task_roles:
        if not sizing.leaves(spec, role):
            continue
        if named and role.affinity_group is None:
            groups[role.name, ""] = [role.model_copy(update={"instances": 1})]
        else:
            kind = role.pinned_cell_id or sizing.leaf_type(spec, role)
            groups.setdefault(role.affinity_group or ("", kind), []).append(role)
    return groups.values()


def _chains(spec: JobSpec, role: TaskRole, config: ClusterConfig, sizing: Sizing) -> list[str]:
    """The chains in which the role's tasks may lie."""
    kind = sizing.pinned.get(role.pinned_cell_id, "") if role.pinned_cell_id else sizing.leaf_type(spec, role)
    chains = [chain for chain in config.chains() if kind in ("", config.levels(chain)[0])]
    if role.pinned_cell_id or spec.scheduling.priority_class is PriorityClass.OPPO:
        return chains
    owned = {quota.chain for quota in config.virtual_clusters[spec.virtual_cluster].quotas if quota.number}
    return [chain for chain in chains if chain in owned]


def misfits(spec: JobSpec, config: ClusterConfig, sizing: Sizing) -> list[Misfit]:
    """All that is wrong with a job whose virtual cluster exists."""
    found = [wrong for role in spec.task_roles for wrong in _of_role(spec, role, config, sizing)]
    found = found or list(within_misfits(spec, config, sizing))
    if not found and not _is_opportunistic(spec):
        found += _quota(spec, config, sizing)
    return found


def owned_leaves(config: ClusterConfig, vc: str, leaf_type: str = "", pinned_id: str = "") -> int:
    """Leaf cells that a virtual cluster owns: those of one pinned cell, or all others, of a type if one is given."""
    owner = config.virtual_clusters[vc]
    if pinned_id:
        return config.leaves(config.pins[pinned_id]) if pinned_id in owner.pinned else 0
    total = 0
    for quota in owner.quotas:
        if leaf_type in ("", config.levels(quota.chain)[0]):
            total += quota.number * config.leaves(quota.type)
    return total


def owned_resources(config: ClusterConfig, vc: str) -> tuple[int, int, int]:
    """GPUs, CPUs and MiB that a virtual cluster owns, pinned cells included, by the SKUs of its cells."""
    by_type: dict[str, int] = {}
    owner = config.virtual_clusters[vc]
    owned = [(quota.type, quota.number) for quota in owner.quotas] + [(config.pins[name], 1) for name in owner.pinned]
    for kind, number in owned:
        leaf = config.levels(kind)[0]
        by_type[leaf] = by_type.get(leaf, 0) + number * config.leaves(kind)
    skus = [(config.skus.get(leaf, Sku()), count) for leaf, count in by_type.items()]
    return (
        sum(sku.gpu * count for sku, count in skus),
        sum(sku.cpu * count for sku, count in skus),
        sum(mebibytes(sku.memory) * count for sku, count in skus),
    )


def _of_role(spec: JobSpec, role: TaskRole, config: ClusterConfig, sizing: Sizing) -> Iterator[Misfit]:
    place = ("extras", "hivedScheduler", "taskRoles", role.name)
    owner = config.virtual_clusters[spec.virtual_cluster]
    if role.pinned_cell_id:
        if role.pinned_cell_id not in owner.pinned:
            message = f"the virtual cluster {owner.name} has no pinned cell {role.pinned_cell_id}"
            yield Misfit((*place, "pinnedCellId"), message, f"It has: {', '.join(owner.pinned) or 'none'}.")
        elif _is_opportunistic(spec):
            yield Misfit(
                (*place, "pinnedCellId"),
                "an opportunistic job cannot use a pinned cell",
                "Leave it out, or choose another jobPriorityClass.",
            )
        return
    kind = sizing.leaf_type(spec, role)
    where = (*place, "skuType") if role.sku_type else ("gpuType",)
    kinds = tuple(dict.fromkeys(config.levels(chain)[0] for chain in config.chains()))
    if not kind or not sizing.leaves(spec, role):
        return
    if kind not in kinds:
        yield Misfit(where, f"there are no cells of type {kind}", f"There are: {', '.join(kinds) or 'none'}.")
    elif not _is_opportunistic(spec) and not owned_leaves(config, owner.name, kind):
        have = ", ".join(sizing.owned.get(owner.name, ())) or "nothing"
        message = f"the virtual cluster {owner.name} has no cells of type {kind}"
        yield Misfit(where, message, f"It has: {have}; an opportunistic job may use any type.")


def _quota(spec: JobSpec, config: ClusterConfig, sizing: Sizing) -> Iterator[Misfit]:
    vc, wanted = spec.virtual_cluster, dict[tuple[str, str], int]()
    for role in spec.task_roles:
        key = (sizing.leaf_type(spec, role), role.pinned_cell_id or "")
        together = role.instances if spec.scheduling.gang_allocation else role.min_instances or 0
        wanted[key] = wanted.get(key, 0) + together * sizing.leaves(spec, role)
    for (kind, pin), leaves in wanted.items():
        owned = owned_leaves(config, vc, kind, pin)
        if leaves > owned:
            of = f" of type {kind}" if kind else f" in pinned cell {pin}" if pin else ""
            yield Misfit(
                ("taskRoles",),
                f"the job requests {leaves} SKUs{of}, which exceeds the maximum of {owned} SKUs in VC {vc}",
                "Ask for fewer or smaller tasks, set extras.gangAllocation to false, or use another virtual cluster.",
            )


def _is_opportunistic(spec: JobSpec) -> bool:
    return spec.scheduling.priority_class is PriorityClass.OPPO
