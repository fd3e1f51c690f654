"""What may happen besides arrivals, in replays small enough to be worked out by hand."""

from __future__ import annotations

import pytest

from pai_backend.model.errors import DocumentError
from pai_backend.scheduling import read_config
from pai_backend.scheduling.queue import Cap, Policy
from pai_backend.simulation import Report, Rules, Trace, replay
from pai_backend.simulation.fate import RunOutcome
from pai_backend.simulation.trace import Cancellation, Event, Failure, NewConfig, Repair
from tests.unit.simulation.test_replay import PAIR, arrival, fate

MORE = PAIR.replace("cellAddress: n1}", "cellAddress: n1}, {cellType: NODE, cellAddress: n2}").replace(
    "a: {virtualCells: [{cellType: NODE, cellNumber: 1}", "a: {virtualCells: [{cellType: NODE, cellNumber: 2}"
)


def played(*events: Event, rules: Rules | None = None, config: str = PAIR) -> Report:
    return replay(read_config(config), Trace.of(events), rules)


def test_an_elastic_group_starts_with_what_fits_grows_and_takes_longer_for_it() -> None:
    report = played(arrival("first", 0, 100, gpus=3), arrival("elastic", 0, 100, tasks=4, min=1))
    grown = fate(report, "elastic")
    assert (grown.started_s, grown.first_tasks, grown.full_s, grown.grown) == (0, 1, 100, 1)
    # 100 GPU-seconds of 400 are done when it has all its tasks.
    assert grown.ended_s == 175
    assert [(spell.since_s, spell.until_s, spell.gpus) for spell in grown.spells] == [(0, 100, 1), (100, 175, 4)]


def test_room_goes_to_those_who_wait_before_elastic_groups_grow() -> None:
    report = played(
        arrival("first", 0, 100, gpus=3),
        arrival("elastic", 0, 100, tasks=4, min=1),
        arrival("waits", 10, 50, gpus=3),
    )
    assert fate(report, "waits").started_s == 100
    assert fate(report, "elastic").full_s == 150


def test_an_elastic_member_stays_in_the_cell_that_must_contain_it() -> None:
    machines = PAIR.partition("virtualClusters:")[0]
    both = f"{machines}virtualClusters:\n  a: {{virtualCells: [{{cellType: NODE, cellNumber: 2}}]}}\n"
    members = [{"tasks": 3, "min": 2, "within": "NODE"}, {"tasks": 1, "gpus": 4}]
    report = played(
        arrival("first", 0, 100, gpus=2), arrival("mixed", 0, 600, members=members), arrival("late", 1, 10), config=both
    )
    first, last = fate(report, "mixed").spells
    assert (first.tasks, last.tasks, last.since_s) == (3, 4, 100)
    assert len({place.node for place in last.places[:-1]}) == 1


def test_what_runs_on_a_node_that_breaks_begins_anew_when_there_is_room() -> None:
    report = played(
        arrival("hit", 0, 100, gpus=4),
        Failure(at=40, node="n0"),
        Failure(at=40, node="n1"),
        Repair(at=70, node="n0"),
        Repair(at=70, node="n1"),
    )
    hit = fate(report, "hit")
    assert [(spell.since_s, spell.until_s, spell.outcome) for spell in hit.spells] == [
        (0, 40, RunOutcome.FAILED),
        (70, 170, RunOutcome.DONE),
    ]
    assert hit.failed == 1
    assert report.total.failed_gpu_hours == pytest.approx(4 * 40 / 3600)
    assert report.broken == pytest.approx(8 * 30 / (8 * 170))


def test_one_broken_gpu_ends_only_those_who_use_it() -> None:
    report = played(arrival("one", 0, 100), arrival("two", 0, 100), Failure(at=40, node="n0", devices=(0,)))
    failed = sorted((each.failed, each.ended_s) for each in report.fates)
    assert failed == [(0, 100), (1, 140)]


def test_a_node_that_stays_broken_leaves_its_groups_waiting() -> None:
    report = played(arrival("hit", 0, 100, gpus=4), Failure(at=40, node="n0"), Failure(at=40, node="n1"))
    assert report.left == ("hit",)
    assert report.span_s == 40


def test_cancelling_frees_what_runs_and_takes_who_waits_out_of_the_queue() -> None:
    report = played(
        arrival("one", 0, 100, gpus=4),
        arrival("two", 5, 100, gpus=4),
        arrival("three", 6, 100, gpus=4),
        Cancellation(at=20, name="two"),
        Cancellation(at=30, name="one"),
        Cancellation(at=900, name="three"),
    )
    assert (fate(report, "one").cancelled_s, fate(report, "one").ended_s) == (30, None)
    assert fate(report, "two").started_s is None
    assert (fate(report, "three").started_s, fate(report, "three").cancelled_s) == (30, None)
    assert report.total.cancelled_gpu_hours == pytest.approx(4 * 30 / 3600)
    assert report.left == ()


def test_a_larger_configuration_lets_who_waits_start() -> None:
    rules = Rules(later={"more.yaml": read_config(MORE)})
    report = played(
        arrival("one", 0, 100, gpus=4), arrival("two", 5, 100, gpus=4), NewConfig(at=30, file="more.yaml"), rules=rules
    )
    assert fate(report, "two").started_s == 30
    assert report.gpus == 12
    assert report.utilisation == pytest.approx(800 / (30 * 8 + 100 * 12))


def test_a_configuration_without_a_quota_displaces_who_runs_and_ends_nobody() -> None:
    less = PAIR.replace("a: {virtualCells: [{cellType: NODE, cellNumber: 1}]}", "a: {virtualCells: []}")
    rules = Rules(later={"less.yaml": read_config(less)})
    report = played(arrival("one", 0, 100, gpus=4), NewConfig(at=30, file="less.yaml"), rules=rules)
    one = fate(report, "one")
    assert (one.ended_s, one.displaced) == (100, 1)
    assert [spell.opportunistic for spell in one.spells] == [False, True]
    assert report.total.opportunistic_gpu_hours == pytest.approx(4 * 70 / 3600)


def test_a_user_at_a_cap_waits_and_is_told_apart_from_others() -> None:
    rules = Rules(Policy(user=Cap(gpus=2)))
    report = played(
        arrival("one", 0, 100, gpus=2, user="ann"),
        arrival("two", 10, 100, gpus=2, user="ann"),
        arrival("other", 10, 50, gpus=2, user="bob"),
        rules=rules,
    )
    assert (fate(report, "two").started_s, fate(report, "two").capped_s) == (100, 90)
    told = [(share.user, share.capped, share.capped_hours) for share in report.users]
    assert told == [("ann", 1, 0.025), ("bob", 0, 0)]
    assert fate(report, "two").overtaken == 1


def test_estimates_rest_on_what_is_declared_not_on_what_is_true() -> None:
    report = played(
        arrival("one", 0, 100, gpus=4, expected=300),
        arrival("two", 10, 100, gpus=4),
        rules=Rules(estimates=True),
    )
    assert fate(report, "two").estimated_s == 300
    assert fate(report, "two").started_s == 100


def test_who_is_overtaken_is_counted() -> None:
    report = played(
        arrival("runs", 0, 100, gpus=2),
        arrival("large", 10, 10, gpus=4),
        arrival("small", 20, 10, gpus=2),
        arrival("elsewhere", 20, 10, vc="b"),
    )
    assert {each.name: each.overtaken for each in report.fates} == {"runs": 0, "large": 1, "small": 0, "elsewhere": 0}


@pytest.mark.parametrize(
    ("event", "path"),
    [
        (Failure(at=1, node="n9"), "$.node"),
        (Repair(at=1, node="n9"), "$.node"),
        (Failure(at=1, node="n0", devices=(4,)), "$.devices"),
    ],
)
def test_what_is_not_there_cannot_break(event: Event, path: str) -> None:
    with pytest.raises(DocumentError) as caught:
        played(arrival("one", 0, 1), event)
    assert [fault.path for fault in caught.value.errors] == [path]
