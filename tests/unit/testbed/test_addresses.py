"""Two clusters on one machine share no address and no name."""

from __future__ import annotations

from itertools import combinations

from tests.kubernetes.cluster.addresses import MOST_NODES, SLOTS, Addresses

ALL = [Addresses(slot) for slot in range(SLOTS)]


def test_networks_of_slots_do_not_overlap() -> None:
    assert not any(one.network.overlaps(other.network) for one, other in combinations(ALL, 2))


def test_everything_of_a_cluster_lies_in_its_network_and_apart() -> None:
    for cluster in ALL:
        hosts = {cluster.host, *(cluster.node(number) for number in range(1, MOST_NODES + 1))}
        assert len(hosts) == MOST_NODES + 1
        parts = [cluster.services, *(cluster.pods_of(number) for number in range(1, MOST_NODES + 1))]
        assert all(part.subnet_of(cluster.network) for part in parts)
        assert not any(one.overlaps(other) for one, other in combinations(parts, 2))
        assert all(cluster.pods_of(number).subnet_of(cluster.pods) for number in range(1, MOST_NODES + 1))


def test_names_of_interfaces_fit_the_kernel() -> None:
    names = [cluster.link(number) for cluster in ALL for number in range(1, MOST_NODES + 1)]
    names += [cluster.bridge for cluster in ALL]
    assert len(set(names)) == len(names)
    assert max(map(len, names)) <= 15
