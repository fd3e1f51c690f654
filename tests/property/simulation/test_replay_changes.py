"""Laws of simulations in which nodes break, groups are given up and grow, and quotas have caps.

The figures are recomputed from the raw course second by second, in the simplest way there is.
"""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pai_backend.scheduling import ClusterConfig, Ledger
from pai_backend.scheduling.queue import Cap, Policy
from pai_backend.simulation import Arrival, Report, Rules, Trace, replay
from pai_backend.simulation.trace import Cancellation, Event, Failure, NewConfig, Repair
from tests.property.scheduling.clusters import VCS, configs

UNHURRIED = settings(deadline=None)
"""A replay is some hundred decisions: on a busy machine one may take longer than a deadline for one call."""
CAPPED = Policy(user=Cap(gpus=6))
LATEST = 60
"""Seconds; all times are whole, so that every second is one sample."""


def arrival(draw: st.DrawFn, number: int) -> Arrival:
    tasks = draw(st.integers(1, 3))
    return Arrival(
        name=f"g{number}",
        at=draw(st.integers(0, LATEST)),
        duration=draw(st.integers(1, 40)),
        expected=draw(st.sampled_from([None, 5.0, 50.0])),
        vc=draw(st.sampled_from(VCS)),
        user=draw(st.sampled_from(["ann", "bob"])),
        tasks=tasks,
        gpus=draw(st.integers(1, 3)),
        min=draw(st.sampled_from([None, 1])),
        priority=draw(st.sampled_from([-1, 10, 100])),
        lazy=draw(st.booleans()),
    )


@st.composite
def scenes(draw: st.DrawFn) -> tuple[ClusterConfig, Trace]:
    config = draw(configs())
    nodes = {name: sorted({i for each in cells for i in each.indexes}) for name, cells in Ledger(config).nodes.items()}
    events: list[Event] = [arrival(draw, number) for number in range(draw(st.integers(1, 12)))]
    for _ in range(draw(st.integers(0, 6))):
        node = draw(st.sampled_from(sorted(nodes)))
        devices = tuple(draw(st.lists(st.sampled_from(nodes[node]), max_size=2, unique=True)))
        kind = draw(st.sampled_from([Failure, Repair]))
        events.append(kind(at=draw(st.integers(0, 2 * LATEST)), node=node, devices=devices))
    for number in draw(st.lists(st.integers(0, 11), max_size=3, unique=True)):
        events.append(Cancellation(at=draw(st.integers(LATEST, 2 * LATEST)), name=f"g{number}"))
    return config, Trace.of(events)


RULES = st.sampled_from([Rules(), Rules(CAPPED, grace_s=3.0)])


@UNHURRIED
@given(scenes(), RULES)
def test_nobody_runs_on_broken_gpus_and_no_gpu_is_used_twice(scene: tuple[ClusterConfig, Trace], rules: Rules) -> None:
    config, trace = scene
    broken = _broken(config, trace)
    used: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for fate in replay(config, trace, rules).fates:
        for spell in fate.spells:
            for place in spell.places:
                for device in place.devices:
                    used.setdefault((place.node, device), []).append((spell.since_s, spell.until_s))
    for gpu, times in used.items():
        times.extend(broken.get(gpu, ()))
        times.sort()
        for (_, until), (since, _) in pairwise(times):
            assert since >= until


@UNHURRIED
@given(scenes(), RULES)
def test_the_figures_are_those_of_the_raw_course(scene: tuple[ClusterConfig, Trace], rules: Rules) -> None:
    config, trace = scene
    report = replay(config, trace, rules)
    spells = [spell for fate in report.fates for spell in fate.spells]
    used = sum((spell.until_s - spell.since_s) * spell.gpus for spell in spells)
    free = sum((spell.until_s - spell.since_s) * spell.gpus for spell in spells if spell.opportunistic)
    whole = report.gpus * report.span_s
    assert report.utilisation * whole == pytest.approx(used, abs=1e-3)
    assert report.opportunistic * whole == pytest.approx(free, abs=1e-3)
    first = min(fate.arrived_s for fate in report.fates)
    last = first + report.span_s
    gone = sum(
        max(min(until, last) - max(since, first), 0)
        for each in _broken(config, trace).values()
        for since, until in each
    )
    assert report.broken * whole == pytest.approx(gone, abs=1e-3)
    total = report.total
    parts = (total.gpu_hours, total.lost_gpu_hours, total.failed_gpu_hours, total.cancelled_gpu_hours)
    assert 3600 * sum(parts) == pytest.approx(used, abs=1e-3)
    for shares in (report.vcs, report.users):
        assert sum(share.gpu_hours for share in shares) == pytest.approx(total.gpu_hours)
        assert sum(share.overtaken for share in shares) == total.overtaken
        assert sum(share.groups for share in shares) == total.groups


@UNHURRIED
@given(scenes(), RULES)
def test_each_group_does_its_work_once_ends_otherwise_or_is_left(
    scene: tuple[ClusterConfig, Trace], rules: Rules
) -> None:
    report = replay(*scene, rules)
    refused = {waiting.group for waiting in report.refused}
    for fate in report.fates:
        done = sum(spell.gpu_s for spell in fate.spells if spell.outcome == "done")
        if fate.ended_s is not None:
            assert done == pytest.approx(fate.duration_s * fate.gpus, abs=1e-3)
        else:
            assert done == 0
            assert [fate.cancelled_s is not None, fate.name in report.left, fate.name in refused].count(True) == 1
        assert fate.first_tasks <= fate.tasks


@UNHURRIED
@given(scenes(), RULES)
def test_overtaking_is_counted_as_by_looking_at_every_pair(scene: tuple[ClusterConfig, Trace], rules: Rules) -> None:
    _, trace = scene
    report = replay(*scene, rules)
    refused = {waiting.group for waiting in report.refused}
    order = {arrival.name: (-arrival.priority, number) for number, arrival in enumerate(trace.arrivals)}
    line = {arrival.name: "" if arrival.priority < 0 else arrival.vc for arrival in trace.arrivals}
    fates = [fate for fate in report.fates if fate.name not in refused]
    for fate in fates:
        until = next(at for at in (fate.started_s, fate.cancelled_s, float("inf")) if at is not None)
        before = [
            other.name
            for other in fates
            if line[other.name] == line[fate.name]
            and order[other.name] > order[fate.name]
            and other.started_s is not None
            and fate.arrived_s <= other.started_s < until
        ]
        assert fate.overtaken == len(before)


@UNHURRIED
@given(scenes(), configs(), RULES)
def test_the_same_scene_gives_the_same_report_also_with_another_configuration_on_the_way(
    scene: tuple[ClusterConfig, Trace], later: ClusterConfig, rules: Rules
) -> None:
    config, trace = scene
    moved = Trace.of([*(line.event for line in trace.lines), NewConfig(at=LATEST + 1, file="later")])
    change = Rules(rules.policy, rules.grace_s, later={"later": later})

    def played() -> Report:
        return replay(config, moved, change)

    report = played()
    assert report == played()
    assert report.utilisation <= 1
    assert all(0 <= sum(point.used) + point.broken <= point.gpus + 1e-6 for point in report.course)


def _broken(config: ClusterConfig, trace: Trace) -> dict[tuple[str, int], list[tuple[float, float]]]:
    """From when to when each GPU is broken."""
    since: dict[tuple[str, int], float] = {}
    found: dict[tuple[str, int], list[tuple[float, float]]] = {}
    nodes = Ledger(config).nodes
    for line in trace.lines:
        event = line.event
        if isinstance(event, Failure | Repair):
            for index in event.devices or {i for each in nodes[event.node] for i in each.indexes}:
                if isinstance(event, Failure):
                    since.setdefault((event.node, index), event.at)
                elif (event.node, index) in since:
                    found.setdefault((event.node, index), []).append((since.pop((event.node, index)), event.at))
    for gpu, start in since.items():
        found.setdefault(gpu, []).append((start, float("inf")))
    return found
