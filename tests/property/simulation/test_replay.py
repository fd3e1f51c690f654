"""Laws of every simulation, on random clusters with random traces."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pai_backend.model.errors import DocumentError
from pai_backend.scheduling import ClusterConfig
from pai_backend.simulation import Arrival, Report, Rules, Trace, replay
from tests.property.scheduling.clusters import VCS, configs

UNHURRIED = settings(deadline=None)
"""A replay is some hundred decisions: on a busy machine one may take longer than a deadline for one call."""


@st.composite
def arrivals(draw: st.DrawFn) -> list[Arrival]:
    count = draw(st.integers(1, 25))
    times = st.integers(0, 3000)
    return sorted(
        (
            Arrival(
                name=f"g{number}",
                at=draw(times),
                duration=draw(st.integers(1, 2000)),
                vc=draw(st.sampled_from(VCS)),
                tasks=draw(st.integers(1, 3)),
                gpus=draw(st.integers(1, 4)),
                priority=draw(st.sampled_from([-1, 0, 10, 100])),
                lazy=draw(st.booleans()),
            )
            for number in range(count)
        ),
        key=lambda each: each.at,
    )


def played(config: ClusterConfig, trace: list[Arrival], grace_s: float) -> Report:
    """Asserts what holds for each report."""
    report = replay(config, Trace.of(trace), Rules(grace_s=grace_s))
    refused = {waiting.group for waiting in report.refused}
    for arrival, fate in zip(trace, report.fates, strict=True):
        assert fate.name == arrival.name
        if arrival.name in refused:
            assert fate.started_s is None
            continue
        assert fate.started_s is not None, "whatever fits an empty cluster starts in the end"
        assert fate.ended_s is not None
        assert fate.started_s >= arrival.at
        ran = arrival.duration + fate.lost_s
        assert fate.ended_s >= fate.started_s + ran - 1e-6, "it ran for as long as it takes, after all runs in vain"
    return report


@UNHURRIED
@given(configs(), arrivals(), st.sampled_from([0.0, 30.0]))
def test_all_that_fit_run_to_their_end_and_all_gpu_time_is_accounted_for(
    config: ClusterConfig, trace: list[Arrival], grace_s: float
) -> None:
    report = played(config, trace, grace_s)
    used = 3600 * (report.total.gpu_hours + report.total.lost_gpu_hours)
    assert report.utilisation * report.gpus * report.span_s == pytest.approx(used, abs=1e-3)
    assert sum(share.gpu_hours for share in report.vcs) == pytest.approx(report.total.gpu_hours)
    assert report.idle_while_wanted <= 1 - report.utilisation + 1e-9
    assert all(0 <= value <= report.gpus for point in report.course for value in point.used)


@UNHURRIED
@given(configs(), arrivals())
def test_the_same_trace_gives_the_same_report(config: ClusterConfig, trace: list[Arrival]) -> None:
    assert replay(config, Trace.of(trace)) == replay(config, Trace.of(trace))


@UNHURRIED
@given(configs())
def test_an_empty_replay_has_no_time(config: ClusterConfig) -> None:
    report = replay(config, Trace.of([]))
    assert (report.span_s, report.total.groups, report.utilisation) == (0, 0, 0)


@UNHURRIED
@given(configs(), arrivals())
def test_a_trace_with_an_unknown_virtual_cluster_is_refused_whole(config: ClusterConfig, trace: list[Arrival]) -> None:
    stranger = Arrival(name="stranger", at=0, duration=1, vc="nobody")
    with pytest.raises(DocumentError, match="nobody"):
        replay(config, Trace.of([*trace, stranger]))
