"""A configuration in which the virtual cluster ``default`` owns all, divided among virtual clusters by percent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pai_backend.scheduling.config.derive import DEFAULT_VC
from pai_backend.scheduling.config.model import ClusterConfig, Quota, VirtualCluster

WHOLE = 100


def divide(config: ClusterConfig, percents: Mapping[str, int]) -> ClusterConfig:
    """Every shape of node divided in these percents, in whole nodes; the rest stays with ``default``.

    Rounded by largest remainder, so that a share is off by less than a node of each shape; of equal remainders the
    virtual cluster that was named first has the node. Raises ValueError for more than all.
    """
    given = sum(number for name, number in percents.items() if name != DEFAULT_VC)
    wanted = {name: number for name, number in percents.items() if name != DEFAULT_VC}
    rest = WHOLE - given
    if rest < 0 or percents.get(DEFAULT_VC, rest) != rest:
        raise ValueError(f"the shares are {sum(percents.values())} percent; {DEFAULT_VC} has what is left of {WHOLE}")
    wanted[DEFAULT_VC] = rest
    owned: dict[str, list[Quota]] = {name: [] for name in (DEFAULT_VC, *wanted)}
    for quota in config.virtual_clusters[DEFAULT_VC].quotas:
        for name, number in _rounded(quota.number, wanted).items():
            if number:
                owned[name].append(replace(quota, number=number))
    return replace(config, virtual_clusters={name: VirtualCluster(name, tuple(own)) for name, own in owned.items()})


def _rounded(total: int, percents: Mapping[str, int]) -> dict[str, int]:
    found = {name: total * percent // WHOLE for name, percent in percents.items()}
    by_remainder = sorted(percents, key=lambda name: -(total * percents[name] % WHOLE))  # stable: as they were named
    for name in by_remainder[: total - sum(found.values())]:
        found[name] += 1
    return found
