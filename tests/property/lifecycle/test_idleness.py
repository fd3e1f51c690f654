"""Laws of the idle clock, on any sequence of looks; and that each of them can be broken."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from pai_backend.lifecycle.idleness import (
    Sight,
    Turn,
    gpus_at_a_look,
    idle_sentence,
    looked,
    looks_believed,
    looks_between,
    notice,
    pause,
    stop_at,
)
from pai_backend.model.idle import IdleClock, UseSource
from tests.mutants import idleness as mutants

Clock = Callable[[IdleClock | None, Sight, timedelta], tuple[IdleClock, Turn]]
BEGIN = datetime(2026, 11, 1, tzinfo=UTC)
TIMEOUTS = st.integers(10, 10_000).map(lambda seconds: timedelta(seconds=seconds))
REPORTED = (UseSource.SSH, UseSource.SERVICE, UseSource.GPU)


@dataclass(frozen=True)
class Story:
    """A timeout and the looks at one job, with how much of the time before each was watched."""

    timeout: timedelta
    sights: tuple[Sight, ...]
    watched: tuple[timedelta, ...]


@st.composite
def stories(draw: st.DrawFn) -> Story:
    timeout = draw(TIMEOUTS)
    at, watching = BEGIN, BEGIN
    uses: dict[UseSource, datetime] = {}
    sights, watched = [], []
    for _ in range(draw(st.integers(2, 30))):
        kind = draw(st.sampled_from(["look"] * 6 + ["restart", "sleep", "put back"]))
        passed = draw(st.integers(1, 4)) * pause(timeout)
        if kind in ("restart", "sleep"):
            passed = draw(st.sampled_from([timeout / 2, 3 * timeout, timedelta(days=400)])) + timedelta(minutes=30)
        at = at - timedelta(hours=1) if kind == "put back" else at + passed
        watching = at if kind in ("restart", "put back") else watching
        if draw(st.integers(0, 7)) == 7:
            uses[draw(st.sampled_from(REPORTED))] = max([at, *uses.values()]) + timedelta(seconds=1)
        unread = {UseSource.GPU: "no meter"} if draw(st.booleans()) else {}
        sights.append(Sight(at, watching, BEGIN - timedelta(days=900), dict(uses), unread=unread))
        watched.append(passed if kind == "look" and not unread else timedelta())
    return Story(timeout, tuple(sights), tuple(watched))


def run(clock: Clock, story: Story) -> list[tuple[IdleClock, Turn]]:
    """The clock after each look, to the end or to the stop."""
    found: list[tuple[IdleClock, Turn]] = []
    now: IdleClock | None = None
    for sight in story.sights:
        now, turn = clock(now, sight, story.timeout)
        found.append((now, turn))
        if turn is Turn.STOP:
            break
    return found


def stops_only_after_a_warning_and_the_whole_time_watched(clock: Clock, story: Story) -> None:
    idle, since_warning, warned, newest = timedelta(), timedelta(), False, BEGIN - timedelta(days=9)
    for number, (_, turn) in enumerate(run(clock, story)):
        sight = story.sights[number]
        last = max(sight.written.values(), default=newest)
        idle += story.watched[number]
        since_warning += story.watched[number]
        if turn is Turn.STOP:
            assert warned, "nothing is stopped that was not warned"
            assert since_warning >= notice(story.timeout), "the warning comes early enough"
            assert idle >= story.timeout, "only time that was watched counts as idle"
        if number == 0 or last > newest:
            idle = timedelta()
        newest = last
        if turn is Turn.WARN:
            warned, since_warning = True, timedelta()
        elif turn is Turn.OVER:
            warned = False


def use_never_brings_the_stop_nearer(clock: Clock, story: Story) -> None:
    kept: IdleClock | None = None
    for number, sight in enumerate(story.sights):
        without, _ = clock(kept, replace(sight, written={}), story.timeout)
        for use in (
            replace(sight, working=frozenset({UseSource.GPU})),
            replace(sight, kernels={"jupyter": f"at {number}"}),
            *(
                replace(sight, written={UseSource.SSH: at})
                for at in (sight.at, sight.at - timedelta(days=9, seconds=number))
            ),
        ):
            used, turn = clock(kept, use, story.timeout)
            assert stop_at(used, story.timeout) >= stop_at(without, story.timeout)
            assert turn is not Turn.STOP, "what is used is not stopped, whatever the clock of who saw it"
        kept, turn = clock(kept, sight, story.timeout)
        if turn is Turn.STOP:
            return


def what_is_unread_but_gpus_changes_nothing_and_is_told(clock: Clock, story: Story) -> None:
    silent = {UseSource.KERNELS: "no answer"}
    deaf = replace(story, sights=tuple(replace(each, unread={**each.unread, **silent}) for each in story.sights))
    told = run(clock, deaf)
    assert [turn for _, turn in told] == [turn for _, turn in run(clock, story)]
    assert all(clock.unread[UseSource.KERNELS] == "no answer" for clock, _ in told)


def gpus_that_cannot_be_read_hold_the_clock(clock: Clock, story: Story) -> None:
    for (kept, turn), sight in zip(run(clock, story), story.sights, strict=False):
        blind = UseSource.GPU in sight.unread
        assert not (blind and turn in (Turn.WARN, Turn.STOP)), "what may work is neither warned nor stopped"
        assert (kept.held_since is not None) == blind, "why the clock stands is told"
    blind_for_ever = tuple(replace(each, unread={UseSource.GPU: "no meter"}) for each in story.sights)
    turns = {turn for _, turn in run(clock, replace(story, sights=blind_for_ever))}
    assert not turns & {Turn.WARN, Turn.STOP}


def what_nothing_uses_is_stopped_in_time(clock: Clock, story: Story) -> None:
    step, started = 4 * pause(story.timeout), story.sights[0]
    kept, turn, at = None, Turn.NONE, started.at
    while turn is not Turn.STOP:
        kept, turn = clock(
            kept, replace(started, at=at, watching_since=started.at, written={}, unread={}), story.timeout
        )
        assert at <= started.at + story.timeout + 2 * step, "nothing idles for ever"
        at += step


def a_failed_look_costs_its_own_time_and_no_more(clock: Clock, story: Story) -> None:
    step, started = 4 * pause(story.timeout), story.sights[0]
    kept, turn, at, blind = None, Turn.NONE, started.at, False
    while turn is not Turn.STOP:
        unread = {UseSource.GPU: "no answer"} if blind else {}
        sight = replace(started, at=at, watching_since=started.at, written={}, unread=unread)
        kept, turn = clock(kept, sight, story.timeout)
        assert at <= started.at + 2 * story.timeout + 4 * step, "every other look is enough"
        at, blind = at + step, not blind


LAWS = {
    stops_only_after_a_warning_and_the_whole_time_watched: (
        mutants.counts_what_nobody_watched,
        mutants.stops_without_a_warning,
        mutants.counts_what_it_could_not_see,
    ),
    use_never_brings_the_stop_nearer: (mutants.believes_the_clocks_of_others,),
    what_is_unread_but_gpus_changes_nothing_and_is_told: (mutants.takes_what_is_unread_for_use,),
    gpus_that_cannot_be_read_hold_the_clock: (mutants.takes_unread_gpus_for_rest,),
    a_failed_look_costs_its_own_time_and_no_more: (mutants.begins_anew_after_a_failed_look,),
    what_nothing_uses_is_stopped_in_time: (mutants.never_stops,),
}


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_the_idle_clock_keeps_its_laws(law: Callable[[Clock, Story], None]) -> None:
    @settings(max_examples=60, deadline=None)
    @given(stories())
    def holds(story: Story) -> None:
        law(looked, story)

    holds()


@pytest.mark.parametrize(
    ("law", "mutant"), [(law, each) for law, all_ in LAWS.items() for each in all_], ids=lambda each: each.__name__
)
def test_each_law_can_be_broken(law: Callable[[Clock, Story], None], mutant: Clock) -> None:
    @settings(max_examples=400, deadline=None, database=None, derandomize=True, phases=(Phase.generate,))
    @given(stories())
    def holds(story: Story) -> None:
        law(mutant, story)

    with pytest.raises(AssertionError):
        holds()


def test_a_clock_starts_at_the_first_look_and_stands_while_nothing_runs() -> None:
    timeout = timedelta(hours=1)
    clock, _ = looked(None, Sight(BEGIN, BEGIN, BEGIN - timedelta(days=9)), timeout)
    assert stop_at(clock, timeout) == BEGIN + timeout
    waiting = Sight(BEGIN + timedelta(minutes=50), BEGIN, None)
    warned = clock.model_copy(update={"warned_at": BEGIN})
    again, turn = looked(warned, waiting, timeout)
    assert (again.since, again.warned_at, turn) == (waiting.at, None, Turn.OVER)


def test_kernels_are_used_when_their_mark_changes_whatever_their_clock_says() -> None:
    timeout = timedelta(hours=1)
    sight = Sight(BEGIN, BEGIN, BEGIN, kernels={"jupyter": "2020-01-01T00:00:00Z"})
    clock, _ = looked(None, sight, timeout)
    later = replace(sight, at=BEGIN + timedelta(seconds=30))
    clock, _ = looked(clock, later, timeout)
    assert clock.used_by is None
    clock, _ = looked(
        clock, replace(later, at=later.at + timedelta(seconds=30), kernels={"jupyter": "2020-01-01T00:00:01Z"}), timeout
    )
    assert (clock.used_by, clock.since) == (UseSource.KERNELS, BEGIN + timedelta(minutes=1))


def test_a_use_while_nobody_watched_begins_the_time_anew() -> None:
    timeout = timedelta(hours=4)
    clock, _ = looked(None, Sight(BEGIN, BEGIN, BEGIN), timeout)
    clock = clock.model_copy(update={"looked_at": BEGIN + timedelta(hours=3)})
    back = BEGIN + timedelta(hours=10)
    sight = Sight(back, back, BEGIN, {UseSource.SSH: BEGIN + timedelta(hours=5)})
    after, _ = looked(clock, sight, timeout)
    assert (after.since, after.used_by) == (back, UseSource.SSH)
    unused, _ = looked(clock, replace(sight, written={}), timeout)
    assert back - unused.since == timedelta(hours=3)


def test_whoever_cannot_be_read_for_the_whole_timeout_is_told_so_once_and_again_after_a_use() -> None:
    timeout, silent = timedelta(hours=1), {UseSource.GPU: "no nvidia-smi"}
    kept, turns = None, list[tuple[int, Turn]]()
    for minute in range(0, 200, 1):
        at = BEGIN + timedelta(minutes=minute)
        uses = {UseSource.SSH: BEGIN + timedelta(minutes=90)} if minute >= 90 else {}
        kept, turn = looked(kept, Sight(at, BEGIN, BEGIN, uses, unread=silent), timeout)
        turns += [(minute, turn)] if turn is not Turn.NONE else []
    assert turns == [(60, Turn.HELD), (150, Turn.HELD)]
    assert kept is not None
    assert "since 2026-11-01 01:30:00 UTC: no nvidia-smi. They may work" in idle_sentence(kept, timeout)


def test_an_outage_is_no_time_in_which_gpus_could_not_be_read() -> None:
    timeout, silent = timedelta(hours=1), {UseSource.GPU: "no answer"}
    kept, _ = looked(None, Sight(BEGIN, BEGIN, BEGIN, unread=silent), timeout)
    back = BEGIN + timedelta(days=2)
    kept, turn = looked(kept, Sight(back, back, BEGIN, unread=silent), timeout)
    assert (turn, kept.held_since) == (Turn.NONE, back)


def test_gpus_that_worked_and_cannot_be_read_now_are_not_idle_however_near_the_stop_was() -> None:
    timeout, at = timedelta(hours=1), BEGIN
    kept, turn = looked(None, Sight(at, BEGIN, BEGIN), timeout)
    while turn is not Turn.WARN:
        at += timedelta(seconds=30)
        kept, turn = looked(kept, Sight(at, BEGIN, BEGIN), timeout)
    left = stop_at(kept, timeout) - at
    for _ in range(100):
        at += timedelta(seconds=30)
        kept, turn = looked(kept, Sight(at, BEGIN, BEGIN, unread={UseSource.GPU: "no answer"}), timeout)
        assert turn is Turn.NONE
    assert stop_at(kept, timeout) - at == left
    _, turn = looked(kept, Sight(at + timedelta(seconds=30), BEGIN, BEGIN, working=frozenset({UseSource.GPU})), timeout)
    assert turn is Turn.OVER


@pytest.mark.parametrize(("tasks", "seconds", "count"), [(1, 10, 16), (2000, 600, 400), (2000, 8 * 3600, 16)])
def test_all_gpus_are_read_in_a_quarter_of_the_timeout_a_few_at_a_look(tasks: int, seconds: int, count: int) -> None:
    timeout = timedelta(seconds=seconds)
    assert gpus_at_a_look(tasks, timeout) == count
    assert math.ceil(tasks / count) * pause(timeout) <= timeout / 4
    assert looks_believed(timeout) * pause(timeout) == timeout / 2


@pytest.mark.parametrize(("seconds", "looks"), [(10, 10), (60, 2), (99, 2), (100, 1), (8 * 3600, 1)])
def test_gpus_are_not_read_more_often_than_every_five_seconds(seconds: int, looks: int) -> None:
    timeout = timedelta(seconds=seconds)
    assert looks_between(timeout) == looks <= looks_believed(timeout)
    assert looks * pause(timeout) >= timedelta(seconds=5)
