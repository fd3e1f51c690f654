"""Each reason for waiting is named as what it is, with the numbers and the names behind it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from pai_backend.model.waiting import CapReached, Cause, Holder, Lack, LackOf, Waiting
from pai_backend.scheduling import read_config
from pai_backend.scheduling.explain import explain
from pai_backend.scheduling.queue import Cap, Patience, Policy, VcCaps
from tests.support.cell_laws import audit
from tests.unit.scheduling.queue.line import NODES, START, Line

VCS = ("a", "b")


def why(line: Line, name: str, **more: object) -> Waiting:
    return explain(line.queue, name, line.now, vcs=VCS, **more)  # type: ignore[arg-type]


def test_quota_tells_what_it_needs_and_what_there_is() -> None:
    line = Line()
    line.submit("huge", (4, 4))
    found = why(line, "huge")
    assert (found.cause, found.needed, found.owned) == (Cause.QUOTA, 16, 12)


def test_shape_tells_the_largest_task() -> None:
    line = Line()
    line.submit("wide", (1, 8))
    found = why(line, "wide")
    assert (found.cause, found.owned, found.largest_task) == (Cause.SHAPE, 12, 8)


def test_priority_names_the_holders_and_when_they_end() -> None:
    line = Line()
    line.submit("full", (3, 4), user="ann", priority=50)
    line.ends["full"] = START + timedelta(hours=1)
    line.submit("g", (1, 4))
    found = why(line, "g")
    assert (found.cause, found.free, found.position, found.waiting) == (Cause.PRIORITY, 0, 1, 1)
    end = START + timedelta(hours=1)
    assert found.holders == (Holder(group="full", user="ann", vc="a", priority=50, gpus=12, until=end),)
    assert found.starts_at == end


def test_fragmentation_tells_what_is_free_and_what_would_fit() -> None:
    line = Line()
    for number in range(3):
        line.submit(f"g{number}", (1, 3))
    line.submit("pair", (1, 2))
    found = why(line, "pair")
    assert (found.cause, found.free, found.largest_free, found.needed) == (Cause.FRAGMENTED, 3, 1, 2)
    assert [holder.group for holder in found.holders] == ["g0", "g1", "g2"]


def test_bad_nodes_are_named() -> None:
    line = Line()
    for name in ("n1", "n2"):
        line.queue.set_node_health(name, healthy=False)
    line.submit("g", (3, 4))
    found = why(line, "g")
    assert found.cause is Cause.BAD_NODES
    assert set(found.nodes) == {"n1", "n2"}


@pytest.mark.parametrize(("what", "cause"), [(LackOf.MEMORY, Cause.LINEAR), (LackOf.PORT, Cause.PORT)])
def test_what_nodes_lack_is_told(what: LackOf, cause: Cause) -> None:
    line = Line()
    line.busy = {"n0", "n1", "n2", "n3"}
    line.submit("g", (1, 1), needs="much")
    lacks = tuple(Lack(node=name, what=what, needed=8, available=2) for name in sorted(line.busy))
    found = why(line, "g", lacks=lambda entry: lacks)
    assert (found.cause, found.lacks) == (cause, lacks)
    assert set(found.nodes) == line.busy


def test_a_cap_tells_the_limit_and_what_runs() -> None:
    line = Line(Policy(vc=VcCaps(user=Cap(gpus=4))))
    line.submit("one", (1, 3))
    line.submit("two", (1, 2))
    found = why(line, "two")
    assert found.cause is Cause.CAP
    assert found.cap == CapReached(vc="a", user="u", gpus=4, running_tasks=1, running_gpus=3, running_jobs=1)


def test_a_group_beyond_its_cap_all_by_itself_is_told_so() -> None:
    line = Line(Policy(vc=VcCaps(total=Cap(tasks=2))))
    line.submit("many", (3, 1))
    found = why(line, "many")
    assert found.cap is not None
    assert found.cap.never


def test_behind_others_at_the_same_cap_it_waits_for_its_turn() -> None:
    line = Line(Policy(vc=VcCaps(user=Cap(gpus=4))))
    line.submit("one", (1, 3))
    line.submit("two", (1, 2))
    line.submit("three", (1, 1))
    found = why(line, "three")
    assert (found.cause, found.position, found.waiting) == (Cause.AHEAD, 2, 2)
    assert [change.kind for change in found.changes] == ["virtual-cluster", "opportunistic"]


def test_a_preemptor_waits_for_its_victims_and_needs_no_advice() -> None:
    line = Line()
    line.submit("full", (3, 4))
    line.submit("urgent", (1, 4), priority=100)
    found = why(line, "urgent")
    assert (found.cause, found.changes) == (Cause.PREEMPTING, ())
    assert [holder.group for holder in found.holders] == ["full"]


def kept() -> Line:
    line = Line(Policy(patience=Patience(0)))
    for number in range(3):
        line.submit(f"full{number}", (1, 3))
        line.ends[f"full{number}"] = START + timedelta(hours=number + 1)
    line.submit("gang", (2, 4))
    return line


def test_with_cells_kept_it_waits_for_those_on_them() -> None:
    found = why(kept(), "gang")
    assert found.cause is Cause.KEPT
    assert [holder.group for holder in found.holders] == ["full0", "full1"]
    assert found.starts_at == START + timedelta(hours=2)


def test_behind_kept_cells_it_is_told_for_whom() -> None:
    line = kept()
    line.submit("small", (1, 1))
    line.submit("late", (1, 1))
    found = why(line, "late")
    assert found.cause is Cause.RESERVED
    assert [holder.group for holder in found.holders] == ["gang"]


def test_a_type_that_the_virtual_cluster_lost_is_told() -> None:
    line = Line()
    line.submit("b0", (1, 4), vc="b", kind="OLD")
    line.submit("b1", (1, 4), vc="b", kind="OLD")
    line.queue.ledger.reconfigure(read_config(NODES.replace(", {cellType: OTHER, cellNumber: 1}", "")))
    line.started()
    assert why(line, "b1").cause is Cause.TYPE


def test_who_does_not_wait_has_no_reason() -> None:
    line = Line()
    line.submit("runs", (1, 1))
    with pytest.raises(KeyError):
        why(line, "runs")


def test_asking_changes_nothing() -> None:
    line = kept()
    version, groups = line.queue.ledger.version, dict(line.queue.ledger.groups)
    why(line, "gang")
    assert (line.queue.ledger.version, line.queue.ledger.groups) == (version, groups)
    audit(line.queue.ledger)
