"""Against trying everything: a place is found whenever there is one, and at the lowest price to others."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from pai_backend.model.errors import PaiError
from pai_backend.scheduling import Bound, ClusterConfig, Group, Ledger, Preempt, Wait
from pai_backend.scheduling.core import scope
from pai_backend.scheduling.core.place import price
from tests.mutants import scheduling as mutants
from tests.property.scheduling.clusters import configs, groups
from tests.property.scheduling.oracle import cheapest

QUIET = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


def busy_cluster(config: ClusterConfig, data: st.DataObject, *, lazy: bool = False) -> Ledger:
    """A cluster after some operations: groups run, preemptors wait, leaves are bad."""
    cluster = Ledger(config)
    names = sorted(cluster.nodes)
    for number in range(data.draw(st.integers(2, 8))):
        group = data.draw(groups(config, f"g{number}", lazy=lazy, elastic=False))
        try:
            cluster.apply(cluster.decide(group))
        except PaiError:
            continue
    for _ in range(data.draw(st.integers(0, 1))):
        cluster.set_node_health(
            data.draw(st.sampled_from(names)), healthy=True, bad_devices=[data.draw(st.integers(0, 3))]
        )
    for name in data.draw(st.lists(st.sampled_from(sorted(cluster.groups)), max_size=2)) if cluster.groups else []:
        cluster.release(name)
    return cluster


def agree(cluster: Ledger, group: Group) -> None:
    """Our answer is as good as any."""
    try:
        answer = cluster.decide(group)
    except PaiError:
        return
    best = cheapest(cluster, group)
    note(f"{[(name, held.group.priority, held.state) for name, held in cluster.groups.items()]}")
    note(f"{group} -> {answer}, possible at {best}")
    if isinstance(answer, Wait):
        assert best is None, "it waits although there is a place"
        return
    assert isinstance(answer, Bound | Preempt)
    assert answer.plan is not None
    assert best is not None, "it found a place where there is none"
    assert price(answer.plan) == best, "others pay more than they have to"


@QUIET
@given(config=configs(most_nodes=3), data=st.data())
def test_a_place_is_found_whenever_there_is_one_and_at_the_lowest_price(
    config: ClusterConfig, data: st.DataObject
) -> None:
    cluster = busy_cluster(config, data)
    agree(cluster, data.draw(groups(config, "asked", lazy=False, elastic=False)))


@pytest.mark.parametrize("mutant", mutants.FINDERS, ids=lambda mutant: mutant.__name__)
def test_a_search_that_misses_places_is_found_out(mutant: scope.Finder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pai_backend.scheduling.core.scope.find", mutant)

    @settings(QUIET, max_examples=800, derandomize=True, phases=[Phase.generate], report_multiple_bugs=False)
    @given(config=configs(most_nodes=3), data=st.data())
    def places(config: ClusterConfig, data: st.DataObject) -> None:
        cluster = busy_cluster(config, data)
        agree(cluster, data.draw(groups(config, "asked", lazy=False, elastic=False)))

    with pytest.raises(AssertionError):
        places()
