"""Groups that run into the longest run of their virtual cluster."""

from __future__ import annotations

from datetime import timedelta

import pytest

from pai_backend.model.vc_rules import LongestRun
from pai_backend.scheduling import read_config
from pai_backend.scheduling.queue import Policy, VcCaps
from pai_backend.simulation import Rules, Trace, replay
from pai_backend.simulation.fate import RunOutcome
from pai_backend.simulation.policy import read_policy
from tests.unit.simulation.test_replay import PAIR, arrival, fate


def test_a_group_is_stopped_there_for_good_and_the_next_one_starts() -> None:
    policy = Policy(vcs={"a": VcCaps(longest_run=LongestRun(timedelta(seconds=60)))})
    arrivals = arrival("long", 0, 100, gpus=4), arrival("next", 10, 60, gpus=4), arrival("other", 0, 100, vc="b")
    report = replay(read_config(PAIR), Trace.of(arrivals), Rules(policy))
    stopped = fate(report, "long")
    assert (stopped.ended_s, stopped.stopped_s) == (None, 60)
    assert [spell.outcome for spell in stopped.spells] == [RunOutcome.OVERRUN]
    assert (fate(report, "next").started_s, fate(report, "next").ended_s) == (60, 120), "as long as it may"
    assert fate(report, "other").ended_s == 100
    assert report.left == ()
    assert report.total.overrun == 1
    assert report.total.overrun_gpu_hours == pytest.approx(4 * 60 / 3600)


def test_it_is_a_setting_of_the_queue() -> None:
    policy = read_policy(None, ["vc.longest_run_s=30"])
    report = replay(read_config(PAIR), Trace.of([arrival("long", 0, 100)]), Rules(policy))
    assert fate(report, "long").stopped_s == 30
