"""What is counted before a place is looked for: no set of victims is left out at whose cost there is one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from itertools import combinations

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from pai_backend.model.errors import PaiError
from pai_backend.scheduling import ClusterConfig, Group, Ledger
from pai_backend.scheduling.cells.tree import Held
from pai_backend.scheduling.core.place import Option, Planner
from pai_backend.scheduling.core.scope import parts_of
from pai_backend.scheduling.core.search import Budget
from pai_backend.scheduling.core.sieve import Sieve
from pai_backend.scheduling.core.trees import check_group
from tests.mutants import scheduling as mutants
from tests.property.scheduling.clusters import configs, groups
from tests.property.scheduling.test_oracle import busy_cluster

QUIET = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
PLENTY = 10**9
MOST_VICTIMS = 3


class LetsAllThrough(Sieve):
    """Every set is searched."""

    def admits(self, victims: Collection[Held], displaced: Collection[Held]) -> bool:
        return True


def misses_nothing(cluster: Ledger, group: Group) -> int:
    """Compare each set of victims with a search at their cost; answers how many were enough."""
    try:
        options = check_group(cluster, group)
    except PaiError:
        return 0
    if group.priority < 0 or group.name in cluster.groups:
        return 0
    cluster.settle(options)
    return sum(_of_option(cluster, group, option) for option in options)


def _of_option(cluster: Ledger, group: Group, option: Option) -> int:
    assert option.quotas is not None
    parts = parts_of(group, [member.pods for member in group.members])
    planner = Planner(cluster.holding, group, parts, budget=Budget(PLENTY))
    sizes = Counter(pod.leaves for part in parts for pod in part.pods)
    others = [held for held in cluster.groups.values() if held.priority < group.priority]
    kept = [held for held in others if held.priority >= 0 and held.group.vc == group.vc]
    loose = [held for held in others if held.priority < 0]
    enough = 0
    for gone in ([], loose):
        victims = kept if gone else [*kept, *loose]
        sieve = Sieve(option.quotas, sizes, victims, gone, None, Budget(PLENTY))
        free = LetsAllThrough(option.quotas, sizes, victims, gone, None, Budget(PLENTY))
        for count in range(min(MOST_VICTIMS, len(victims)) + 1):
            likely = set(sieve.sets(victims, count))
            for chosen in combinations(victims, count):
                if planner._ending(option, free, chosen) is not None:
                    enough += 1
                    note(f"{[held.group.name for held in chosen]} beside {[held.group.name for held in gone]}")
                    assert chosen in likely, "worth too little"
                    assert planner._ending(option, sieve, chosen) is not None, "counted too few slots"
    return enough


@QUIET
@given(config=configs(most_nodes=3), data=st.data())
def test_no_set_of_victims_is_left_out_that_would_do(config: ClusterConfig, data: st.DataObject) -> None:
    cluster = busy_cluster(config, data, lazy=True)
    group = data.draw(groups(config, "asked", lazy=False, elastic=False))
    note(f"{group} among {[(name, held.group.priority, held.spots) for name, held in cluster.groups.items()]}")
    misses_nothing(cluster, group)


@pytest.mark.parametrize("mutant", mutants.SIEVES, ids=lambda mutant: mutant[0])
def test_a_sieve_that_counts_too_little_is_found_out(
    mutant: tuple[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sieve, *mutant)

    @settings(QUIET, max_examples=800, derandomize=True, phases=[Phase.generate], report_multiple_bugs=False)
    @given(config=configs(most_nodes=3), data=st.data())
    def counts(config: ClusterConfig, data: st.DataObject) -> None:
        misses_nothing(
            busy_cluster(config, data, lazy=True), data.draw(groups(config, "asked", lazy=False, elastic=False))
        )

    with pytest.raises(AssertionError):
        counts()
