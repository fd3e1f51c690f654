"""Is a request one that could ever be right? If so, in which chains."""

from __future__ import annotations

from typing import NoReturn

from pai_backend.model.errors import Fault, InvalidParameters, NoVirtualCluster
from pai_backend.scheduling.core.place import Option
from pai_backend.scheduling.core.trees import Trees
from pai_backend.scheduling.request import HIGHEST, OPPORTUNISTIC, Group


def check_group(trees: Trees, group: Group) -> list[Option]:
    """The chains the group may use, in the order in which they are tried.

    Raises NoVirtualCluster, or InvalidParameters whose fault names the field. Source: HiveD's request validation.
    """
    if group.vc not in trees.config.virtual_clusters:
        have = ", ".join(trees.config.virtual_clusters) or "none"
        raise NoVirtualCluster(f"there is no virtual cluster {group.vc}", hint=f"There is: {have}.")
    if not OPPORTUNISTIC <= group.priority <= HIGHEST:
        _refuse("priority", f"priority {group.priority} is out of range", "Give -1 (opportunistic) to 1000.")
    if not group.members or not group.name:
        _refuse("members", "a group needs a name and at least one pod", "Give both.")
    for index, member in enumerate(group.members):
        if member.pods < 1 or member.leaves < 1:
            _refuse(f"members[{index}]", "numbers of pods and cells must be positive", "Give at least 1.")
        if member.min_pods is not None and not 0 <= member.min_pods <= member.pods:
            _refuse(f"members[{index}].minPods", "fewest pods are more than all pods", "Give 0 to the number of pods.")
    if sum(member.pods if member.min_pods is None else member.min_pods for member in group.members) < 1:
        _refuse("members", "a group must start with at least one pod", "Raise minPods.")
    options = _pinned(trees, group) if group.pinned_id else _typed(trees, group)
    for kind in [group.within, *(member.within for member in group.members)]:
        if kind and not any(kind in option.chain.level_of for option in options):
            levels = dict.fromkeys(level for option in options for level in reversed(option.chain.level_of))
            hint = f"Name one of: {', '.join(levels) or 'none'}."
            _refuse("withinOneCell", f"there is no cell type {kind} where this group may run", hint)
    return options


def _pinned(trees: Trees, group: Group) -> list[Option]:
    if group.priority == OPPORTUNISTIC:
        _refuse("pinnedCellId", "an opportunistic group cannot use a pinned cell", "Leave one of the two out.")
    quotas = trees.pinned.get((group.vc, group.pinned_id))
    if quotas is None:
        own = trees.config.virtual_clusters[group.vc].pinned
        hint = f"It owns: {', '.join(own) or 'none'}."
        _refuse("pinnedCellId", f"virtual cluster {group.vc} does not own pinned cell {group.pinned_id}", hint)
    return [Option(quotas.chain, quotas)]


def _typed(trees: Trees, group: Group) -> list[Option]:
    chains = list(trees.chains.values())
    types = list(dict.fromkeys(chain.leaf_type for chain in chains))
    if group.leaf_type:
        if group.leaf_type not in types:
            hint = f"There is: {', '.join(types) or 'none'}."
            _refuse("leafCellType", f"the cluster has no cells of type {group.leaf_type}", hint)
        types = [group.leaf_type]
    ordered = [chain for kind in types for chain in chains if chain.leaf_type == kind]
    if group.priority == OPPORTUNISTIC:
        return [Option(chain, None) for chain in ordered]
    options = [
        Option(chain, quotas)
        for chain in ordered
        if (quotas := trees.quotas.get((group.vc, chain.name))) is not None and quotas.roots
    ]
    if not options and group.leaf_type:
        owned = sorted(
            {chain.leaf_type for (vc, _), quotas in trees.quotas.items() if vc == group.vc for chain in [quotas.chain]}
        )
        hint = f"It owns: {', '.join(owned) or 'nothing'}; an opportunistic group may use any type."
        _refuse("leafCellType", f"virtual cluster {group.vc} owns no cells of type {group.leaf_type}", hint)
    return options


def _refuse(field: str, message: str, hint: str) -> NoReturn:
    raise InvalidParameters(message, errors=[Fault(path=f"$.{field}", message=message, hint=hint)], hint=hint)
