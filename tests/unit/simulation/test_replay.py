"""Replays small enough to be worked out by hand."""

from __future__ import annotations

import pytest

from pai_backend.model.errors import DocumentError
from pai_backend.model.order import Order
from pai_backend.model.waiting import Cause
from pai_backend.scheduling import read_config
from pai_backend.scheduling.queue import Policy
from pai_backend.simulation import Arrival, Report, Rules, Trace, replay
from pai_backend.simulation.fate import Fate
from tests.unit.scheduling.core.clusters import POOL

PAIR = """
physicalCluster:
  cellTypes:
    NODE: {childCellType: GPU, childCellNumber: 4, isNodeLevel: true}
  physicalCells: [{cellType: NODE, cellAddress: n0}, {cellType: NODE, cellAddress: n1}]
virtualClusters:
  a: {virtualCells: [{cellType: NODE, cellNumber: 1}]}
  b: {virtualCells: [{cellType: NODE, cellNumber: 1}]}
"""


def arrival(name: str, at: float, duration: float, **fields: object) -> Arrival:
    return Arrival.model_validate({"name": name, "at": at, "duration": duration, "vc": "a"} | fields)


def played(*arrivals: Arrival, config: str = PAIR, grace_s: float = 0.0) -> Report:
    return replay(read_config(config), Trace.of(arrivals), Rules(grace_s=grace_s))


def fate(report: Report, name: str) -> Fate:
    return next(fate for fate in report.fates if fate.name == name)


def test_a_group_that_finds_no_room_starts_when_the_one_before_it_ends() -> None:
    report = played(arrival("one", 0, 100, gpus=4), arrival("two", 10, 50, gpus=4))
    assert (fate(report, "one").started_s, fate(report, "one").ended_s) == (0, 100)
    assert (fate(report, "two").started_s, fate(report, "two").ended_s) == (100, 150)
    assert report.total.waits.mean_s == 45
    assert report.total.waits.max_s == 90


def test_who_starts_at_once_has_not_waited_however_odd_the_time() -> None:
    report = played(arrival("one", 1 / 3, 100), arrival("two", 2 / 3, 100))
    assert report.total.waits.max_s == report.total.waits.mean_s == 0


def test_what_ends_makes_room_for_what_arrives_at_the_same_instant() -> None:
    report = played(arrival("one", 0, 100, gpus=4), arrival("two", 100, 50, gpus=4))
    assert fate(report, "two").started_s == 100


def test_used_and_idle_time_are_shares_of_all_time_from_the_first_arrival_to_the_last_end() -> None:
    report = played(arrival("one", 1000, 100, gpus=4), arrival("two", 1010, 100, gpus=2))
    assert report.span_s == 200
    assert report.utilisation == pytest.approx((400 + 200) / (8 * 200))
    # `two` waits 90 s for two GPUs while `b` leaves its four idle.
    assert report.idle_while_wanted == pytest.approx(2 * 90 / (8 * 200))
    # While `two` runs, two GPUs beside it are idle; the other machine is wholly idle all the time.
    assert report.fragmentation == pytest.approx(2 * 100 / (8 * 200 - 600))


def test_an_owner_ends_an_opportunistic_group_which_begins_anew() -> None:
    report = played(
        arrival("borrowed", 0, 100, tasks=2, gpus=4, priority=-1),
        arrival("owner", 40, 10, vc="b", gpus=4),
    )
    borrowed = fate(report, "borrowed")
    assert fate(report, "owner").started_s == 40
    assert (borrowed.preempted, borrowed.lost_s, borrowed.ended_s) == (1, 40, 150)
    assert report.total.lost_gpu_hours == pytest.approx(40 * 8 / 3600)
    assert report.total.gpu_hours == pytest.approx((100 * 8 + 10 * 4) / 3600)


def test_evicted_groups_hold_their_place_for_the_grace() -> None:
    arrivals = arrival("weak", 0, 100, gpus=4), arrival("strong", 40, 10, gpus=4, priority=100)
    report = played(*arrivals, grace_s=30)
    assert fate(report, "strong").started_s == 70
    assert fate(report, "weak").lost_s == 70
    assert fate(report, "weak").ended_s == 180


def test_a_victim_that_ends_by_itself_during_its_grace_has_ended() -> None:
    report = played(arrival("weak", 0, 50, gpus=4), arrival("strong", 40, 10, gpus=4, priority=100), grace_s=30)
    assert (fate(report, "weak").ended_s, fate(report, "weak").preempted) == (50, 0)
    assert fate(report, "strong").started_s == 50


def test_a_lazy_group_runs_on_when_it_is_displaced() -> None:
    report = played(
        arrival("lazy", 0, 100, gpus=4, lazy=True, priority=0),
        arrival("strong", 40, 10, gpus=4, priority=100),
    )
    assert (fate(report, "lazy").displaced, fate(report, "lazy").ended_s) == (1, 100)
    assert fate(report, "strong").started_s == 40
    assert report.total.preempted == 0


def test_a_group_that_fits_no_empty_cluster_is_refused_with_the_reason_and_holds_nobody_up() -> None:
    report = played(arrival("huge", 0, 10, gpus=4, tasks=2), arrival("small", 0, 10))
    (refused,) = report.refused
    assert (refused.group, refused.cause, refused.needed, refused.owned) == ("huge", Cause.QUOTA, 8, 4)
    assert fate(report, "huge").started_s is None
    assert fate(report, "small").started_s == 0
    assert report.idle_while_wanted == 0


def test_a_big_gang_is_not_overtaken_for_ever() -> None:
    small = [arrival(f"s{number}", number * 30, 60, gpus=4) for number in range(200)]
    report = played(arrival("gang", 45, 60, tasks=3, gpus=4), *small, config=POOL)
    started = fate(report, "gang").started_s
    assert started is not None
    assert started < 900
    assert all(each.ended_s is not None for each in report.fates)


def test_figures_of_a_virtual_cluster_are_those_of_its_groups() -> None:
    report = played(arrival("one", 0, 3600, gpus=4), arrival("two", 0, 1800, vc="b", gpus=2))
    assert [(share.vc, share.groups, share.gpu_hours) for share in report.vcs] == [("a", 1, 4.0), ("b", 1, 1.0)]


def test_a_virtual_cluster_that_does_not_exist_is_an_error_that_names_the_group() -> None:
    with pytest.raises(DocumentError) as caught:
        played(arrival("lost", 0, 10, vc="nobody"), arrival("odd", 0, 10, type="TPU"))
    told = [(fault.path, fault.message.partition(":")[0]) for fault in caught.value.errors]
    assert told == [("$.vc", "group lost"), ("$.type", "group odd")]


def test_a_trace_beyond_the_calendar_is_an_error_not_a_crash() -> None:
    long = 10 * 365 * 86_400
    with pytest.raises(DocumentError, match="thousands of years"):
        played(*(arrival(f"g{number}", 0, long, gpus=4) for number in range(900)))


def test_an_order_by_run_times_learns_on_the_way_and_puts_short_groups_first() -> None:
    trace = Trace.of(
        [
            *(arrival(f"short-{number}", 100 * number, 60, gpus=4) for number in range(3)),
            *(arrival(f"long-{number}", 300 + 5000 * number, 4000, gpus=4) for number in range(3)),
            arrival("block-1", 20_000, 1000, gpus=4),
            arrival("long-9", 20_001, 4000, gpus=4),
            arrival("short-9", 20_002, 60, gpus=4),
        ]
    )
    orders = {order: replay(read_config(PAIR), trace, Rules(Policy(order=order))) for order in Order}
    first = {
        order: min(("long-9", "short-9"), key=lambda name: fate(one, name).started_s or 0)
        for order, one in orders.items()
    }
    assert first == {Order.SUBMITTED: "long-9", Order.FAIR: "short-9", Order.PREDICTED: "short-9"}
    waits = {order: report.total.waits.mean_s for order, report in orders.items()}
    assert waits[Order.PREDICTED] < waits[Order.SUBMITTED]
