"""Nodes divided among virtual clusters by percent."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pai_backend.commands.cluster_draft import divide
from pai_backend.model.node import Gpu, Node
from pai_backend.scheduling.config.derive import derive
from pai_backend.scheduling.config.model import ClusterConfig


def cluster(**counts: int) -> ClusterConfig:
    return derive(
        Node(
            name=f"{kind}-{i}",
            address="a",
            machine="m",
            cpus=1,
            memory_mb=1,
            gpus=(Gpu(index=0, type=kind),),
        )
        for kind, count in counts.items()
        for i in range(count)
    )


def owned(config: ClusterConfig) -> dict[str, dict[str, int]]:
    return {
        name: {quota.type.removesuffix("-NODE-1"): quota.number for quota in each.quotas}
        for name, each in config.virtual_clusters.items()
    }


def test_without_shares_default_owns_all() -> None:
    config = cluster(V100=3)
    assert divide(config, {}) == config


def test_each_shape_is_divided_and_default_has_the_rest() -> None:
    config = divide(cluster(V100=10, A100=2), {"vision": 60, "tools": 10})
    assert owned(config) == {"default": {"V100": 3, "A100": 1}, "vision": {"V100": 6, "A100": 1}, "tools": {"V100": 1}}


def test_a_half_node_goes_to_whoever_was_named_first() -> None:
    assert owned(divide(cluster(V100=1), {"a": 50}))["a"] == {"V100": 1}
    assert owned(divide(cluster(V100=1), {"b": 30, "a": 30, "c": 40}))["c"] == {"V100": 1}


@pytest.mark.parametrize("shares", [{"a": 60, "b": 41}, {"a": 60, "default": 50}, {"default": 99}])
def test_shares_that_are_not_all_are_refused(shares: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="percent; default has what is left of 100"):
        divide(cluster(V100=1), shares)


def test_the_rest_may_be_named() -> None:
    assert owned(divide(cluster(V100=4), {"a": 75, "default": 25})) == {"default": {"V100": 1}, "a": {"V100": 3}}


@settings(deadline=None)
@given(st.integers(1, 500), st.lists(st.integers(0, 100), max_size=5))
def test_no_node_is_lost_and_no_share_is_off_by_a_node(count: int, percents: list[int]) -> None:
    shares = {f"vc{i}": percent for i, percent in enumerate(percents)}
    if sum(percents) > 100:
        return
    found = owned(divide(cluster(V100=count), shares))
    assert sum(each.get("V100", 0) for each in found.values()) == count
    for name, percent in shares.items():
        assert abs(found[name].get("V100", 0) - count * percent / 100) < 1
