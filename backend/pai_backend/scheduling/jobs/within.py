"""``withinOneCell``: cell types that a job names and no cell of which could ever contain its tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pai_backend.model.spec import JobSpec, PriorityClass, TaskRole
from pai_backend.scheduling.config.model import ClusterConfig
from pai_backend.scheduling.jobs.demand import Sizing


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
