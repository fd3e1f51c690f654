"""Who is served first, who may pass whom, and who has to make way."""

from __future__ import annotations

import pytest

from pai_backend.model.errors import InvalidParameters, NoVirtualCluster
from pai_backend.scheduling import read_config
from pai_backend.scheduling.core.decision import Preempt
from pai_backend.scheduling.queue import Cap, Policy, VcCaps
from tests.unit.scheduling.core.clusters import group
from tests.unit.scheduling.queue.line import NODES, Line


def full(line: Line) -> None:
    """Twelve GPUs of ``a`` in three groups."""
    for number in range(3):
        assert line.submit(f"full{number}", (1, 4)) == [f"full{number}"]


def test_a_higher_priority_goes_first_then_the_earlier_submission() -> None:
    line = Line()
    for number in range(3):
        line.submit(f"full{number}", (1, 4), priority=100)
    for name, priority in (("first", 10), ("second", 10), ("urgent", 50), ("last", 0)):
        assert line.submit(name, (1, 4), priority=priority) == []
    assert [line.end(f"full{number}") for number in range(3)] == [["urgent"], ["first"], ["second"]]
    assert line.end("urgent") == ["last"]


def test_who_fits_passes_a_gang_that_does_not() -> None:
    line = Line()
    full(line)
    assert line.submit("gang", (2, 4)) == []
    assert line.submit("small", (1, 1)) == []
    assert line.end("full0") == ["small"], "the gang needs two nodes, so the small one may go on"
    assert line.end("full1") == []
    assert line.end("small") == ["gang"]


def test_a_higher_priority_ends_a_lower_one_and_starts_when_it_has_ended() -> None:
    line = Line()
    full(line)
    line.count += 1
    line.submit("urgent", (1, 4), priority=100)
    claim = line.queue.claims["urgent"]
    assert len(claim.victims) == 1
    assert line.end(*claim.victims) == ["urgent"]


def test_what_has_to_end_is_told_once() -> None:
    line = Line()
    full(line)
    line.queue.add(line.queue.running["full0"].__class__(group("urgent", "a", (1, 4), priority=100), "u", 9))
    [decision] = line.advance().decided
    assert isinstance(decision, Preempt)
    assert decision.victims == ("full0",) or len(decision.victims) == 1
    assert line.advance().decided == []


def test_a_preemptor_that_loses_its_place_waits_where_it_stood() -> None:
    line = Line()
    full(line)
    line.submit("urgent", (3, 4), priority=100)
    assert "urgent" in line.queue.claims
    line.submit("most", (3, 4), priority=1000)
    assert set(line.queue.claims) == {"most"}
    assert line.queue.waiting["urgent"].entry.order == 4


def test_a_group_that_waits_for_ever_holds_nobody_up() -> None:
    line = Line()
    assert line.submit("huge", (1, 8)) == []
    for number in range(12):
        assert line.submit(f"g{number}", (1, 1)) == [f"g{number}"]
    assert line.advance().look_again is None


def test_a_group_that_can_never_be_right_is_refused_and_nothing_changes() -> None:
    line = Line()
    with pytest.raises(NoVirtualCluster):
        line.submit("lost", (1, 1), vc="nowhere")
    with pytest.raises(InvalidParameters):
        line.submit("typed", (1, 1), kind="OLD")
    assert not line.queue.waiting
    line.submit("mine", (1, 1))
    with pytest.raises(InvalidParameters, match="there is a group mine already"):
        line.submit("mine", (1, 1))


def test_a_start_that_could_not_be_carried_out_is_made_again() -> None:
    line = Line()
    line.submit("g", (1, 4))
    line.queue.put_back("g")
    assert list(line.queue.waiting) == ["g"]
    assert line.started() == ["g"]


def test_a_start_that_is_set_aside_waits_until_something_changes() -> None:
    line = Line()
    line.submit("g", (1, 4))
    line.queue.defer("g")
    assert line.started() == []
    line.queue.nodes_changed()
    assert line.started() == ["g"]


def test_nodes_without_cpu_are_left_out_until_they_have_some() -> None:
    line = Line()
    line.busy = {"n0", "n1", "n2", "n3"}
    assert line.submit("hungry", (1, 1), needs="much") == []
    assert line.submit("frugal", (1, 1)) == ["frugal"], "equal to the cells, but it asks nodes for nothing"
    line.busy = {"n0", "n1", "n2"}
    assert line.started() == [], "nobody said that anything changed"
    line.queue.nodes_changed()
    assert line.started() == ["hungry"]
    assert {spot.node.name for spot in line.queue.ledger.groups["hungry"].spots} == {"n3"}


def test_opportunistic_groups_of_all_virtual_clusters_stand_in_one_queue() -> None:
    line = Line()
    for number in range(3):
        line.submit(f"a{number}", (1, 4))
    line.submit("b0", (1, 4), vc="b")
    assert line.submit("first", (1, 2), priority=-1, vc="b") == []
    assert line.submit("second", (1, 2), priority=-1) == []
    assert line.end("a0") == ["first", "second"]


def test_a_lazily_preempted_group_gets_its_quota_back_first() -> None:
    line = Line()
    for number in range(3):
        line.submit(f"lazy{number}", (1, 4), lazy=True)
    line.submit("urgent", (1, 4), priority=100)
    displaced = list(line.queue.displaced)
    assert len(displaced) == 1
    line.queue.release("urgent")
    assert line.advance().upgraded == tuple(displaced)
    assert not line.queue.displaced


def test_after_a_changed_configuration_everybody_is_asked_again() -> None:
    line = Line()
    full(line)
    assert line.submit("g", (1, 4)) == []
    line.queue.ledger.reconfigure(
        read_config(
            NODES.replace("NODE, cellNumber: 3", "NODE, cellNumber: 4", 1).replace(
                "{cellType: NODE, cellNumber: 1}, ", ""
            )
        )
    )
    assert line.started() == ["g"]


def test_a_group_whose_virtual_cluster_is_gone_stays_and_is_not_asked() -> None:
    line = Line(Policy(vc=VcCaps(user=Cap(gpus=4))))
    assert line.submit("b0", (1, 4), vc="b") == ["b0"]
    assert line.submit("b1", (1, 4), vc="b") == []
    line.queue.ledger.reconfigure(read_config(NODES[: NODES.index("  b:")]))
    assert line.started() == []
    assert "b1" in line.queue.waiting
    line.queue.release("b1")
    assert "b1" not in line.queue.waiting
