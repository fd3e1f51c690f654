"""Within one cell, and groups that grow.

The cases of HiveD's second schema: racks of nodes of 2 sockets of 2 switches of 2 GPUs.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pai_backend.model.errors import InvalidParameters
from pai_backend.scheduling import Bound, Group, Ledger, Member, Preempt, Wait, WaitCode
from pai_backend.scheduling.cells.tree import QuotaUnit
from pai_backend.scheduling.core.place import Option, Planner
from pai_backend.scheduling.core.search import Plan, Spare
from tests.support.cell_laws import audit
from tests.unit.scheduling.core.clusters import RACKS, cluster, group, place, why


@pytest.fixture
def racks() -> Ledger:
    """Three racks of two nodes; ``a`` owns four nodes, ``b`` two."""
    return cluster(RACKS)


def test_within_a_node_skips_a_node_that_is_too_full(racks: Ledger) -> None:
    place(racks, group("five", "a", (1, 5)))
    first = racks.groups["five"].spots[0].node.name
    found = place(racks, group("four", "a", (4, 1), within="NODE"))
    assert {node for node, _ in found} != {first}
    assert sorted(index for _, (index,) in found) == [0, 1, 2, 3]


def test_within_a_socket_takes_the_whole_other_one(racks: Ledger) -> None:
    place(racks, group("one", "a", (1, 1)))
    assert [devices for _, devices in place(racks, group("four", "a", (4, 1), within="SOCKET"))] == [
        (4,),
        (5,),
        (6,),
        (7,),
    ]


def test_within_a_rack_skips_a_touched_one(racks: Ledger) -> None:
    place(racks, group("one", "a", (1, 1)))
    assert {node for node, _ in place(racks, group("pair", "a", (2, 8), within="RACK"))} in ({"n2", "n3"}, {"n4", "n5"})


def test_within_a_rack_evicts_only_where_every_rack_is_touched(racks: Ledger) -> None:
    for name in ("n0", "n2", "n4"):
        racks.set_node_health(name, healthy=True, bad_devices=[])
        asked = Group(f"on-{name}", "a" if name != "n4" else "b", (Member(1, 5),), 1)
        place(racks, asked, [name])
    assert isinstance(racks.decide(group("equal", "a", (2, 8), priority=1, within="RACK")), Wait)
    reason = why(racks, group("equal", "a", (2, 8), priority=1, within="RACK"))
    assert (reason.code, reason.within) == (WaitCode.FRAGMENTED, "RACK")
    assert isinstance(racks.decide(group("free", "a", (2, 8), priority=1)), Bound)
    answer = racks.decide(group("higher", "a", (2, 8), priority=2, within="RACK"))
    assert isinstance(answer, Preempt)
    assert len(answer.victims) == 1
    assert len({pod.node for pod in answer.placement.pods.values()} & {"n0", "n2"}) == 1


def test_members_may_have_cells_of_their_own(racks: Ledger) -> None:
    """Three pods in one node, three in another, two in a third, of switches' size, all in one rack: no; else yes."""
    members = [Member(3, 2, within="NODE"), Member(3, 2, within="NODE"), Member(2, 2, within="NODE")]
    place(racks, group("apart", "a", *members))
    nodes = [spot.node.name for spot in racks.groups["apart"].spots]
    assert [len(set(nodes[:3])), len(set(nodes[3:6])), len(set(nodes[6:]))] == [1, 1, 1]
    more = [Member(3, 2, within="NODE"), Member(3, 2, within="NODE"), Member(3, 2, within="NODE")]
    fresh = cluster(RACKS)
    assert why(fresh, group("rack", "a", *more, within="RACK")).code is WaitCode.FRAGMENTED
    assert isinstance(fresh.decide(group("any", "a", *more)), Bound)


def test_an_opportunistic_group_keeps_within_too(racks: Ledger) -> None:
    place(racks, group("one", "a", (1, 1), priority=-1))
    found = place(racks, group("pair", "b", (2, 8), priority=-1, within="RACK"))
    assert {node for node, _ in found} in ({"n2", "n3"}, {"n4", "n5"})


def test_an_elastic_group_of_a_thousand_pods_is_not_looked_for_a_thousand_times(
    racks: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be by counting is not searched, when it starts and when it grows."""
    looks = []
    look = Planner.look

    def counted(
        self: Planner, option: Option, spare: Spare | None, places: Sequence[QuotaUnit] | None = None
    ) -> Plan | None:
        looks.append(option)
        return look(self, option, spare, places)

    monkeypatch.setattr(Planner, "look", counted)
    assert len(place(racks, group("elastic", "b", Member(1000, 4, min_pods=1)))) == 4
    assert len(looks) == 2, "all pods, then those that fit"
    assert isinstance(racks.decide_growth("elastic"), Wait)
    assert len(looks) == 2


def test_an_elastic_group_starts_with_what_fits_and_grows(racks: Ledger) -> None:
    place(racks, group("other", "b", (1, 8)))
    elastic = group("elastic", "b", Member(4, 4, min_pods=1))
    assert len(place(racks, elastic)) == 2
    assert isinstance(racks.decide_growth("elastic"), Wait)
    racks.release("other")
    answer = racks.decide_growth("elastic")
    assert isinstance(answer, Bound)
    assert [*answer.placement.pods] == [0, 1, 2, 3]
    racks.apply(answer)
    audit(racks)
    with pytest.raises(InvalidParameters, match="cannot grow"):
        racks.decide_growth("elastic")
    racks.release("elastic")
    audit(racks)


def test_growing_keeps_within_the_cell_the_group_is_in(racks: Ledger) -> None:
    place(racks, group("other", "a", (1, 4)))
    at = racks.groups["other"].spots[0].node.name
    elastic = Group("elastic", "a", (Member(2, 4, min_pods=1),), 10, within="NODE")
    place(racks, elastic, [at])
    assert len(racks.groups["elastic"].spots) == 1
    assert isinstance(racks.decide_growth("elastic"), Wait)
    racks.release("other")
    answer = racks.decide_growth("elastic")
    assert isinstance(answer, Bound)
    assert {pod.node for pod in answer.placement.pods.values()} == {at}


def test_an_elastic_group_evicts_for_its_least_size_only(racks: Ledger) -> None:
    for number in range(4):
        place(racks, group(f"low{number}", "a", (1, 8), priority=0))
    answer = racks.decide(group("high", "a", Member(3, 8, min_pods=1)))
    assert isinstance(answer, Preempt)
    assert len(answer.victims) == len(answer.placement.pods) == 1


def test_growing_an_unknown_group_is_refused(racks: Ledger) -> None:
    with pytest.raises(InvalidParameters):
        racks.decide_growth("nobody")
