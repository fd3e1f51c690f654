"""The idle rule of a virtual cluster: who is warned and stopped, whatever GPUs do and whoever looks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from pai_backend.lifecycle.underuse import GpuSample, IdleRule, UnderuseTurn, judged
from pai_backend.model.rule_clock import UnderuseClock
from pai_backend.testing.builders import T0

MINUTE = timedelta(minutes=1)
RULE = IdleRule(below=5, window=20 * MINUTE, stops=True)
Story = Sequence[float | None]
"""What GPUs did in each minute since the attempt began; None: not read."""

WORK = st.one_of(st.none(), st.just(0.0), st.floats(0, 100), st.sampled_from([4.9, 5.0, 5.1]))
STORIES = st.lists(st.tuples(WORK, st.integers(1, 40)), max_size=12).map(
    lambda parts: [percent for percent, minutes in parts for _ in range(minutes)]
)


def told(story: Story, rule: IdleRule = RULE) -> list[tuple[int, UnderuseTurn]]:
    """What was done, by minute, until it was stopped."""
    clock = UnderuseClock(attempt=0, counted_from=T0)
    found: list[tuple[int, UnderuseTurn]] = []
    samples: list[GpuSample] = [GpuSample(T0, None)]
    for minute, percent in enumerate(story, 1):
        samples.append(GpuSample(T0 + minute * MINUTE, percent))
        clock, turn = judged(clock, samples, rule, T0, MINUTE)
        if turn is not UnderuseTurn.NONE:
            found.append((minute, turn))
        if turn is UnderuseTurn.STOP:
            break
    return found


def test_idle_gpus_are_warned_after_the_startup_and_a_window_and_stopped_a_grace_later() -> None:
    assert told([0.0] * 60) == [(40, UnderuseTurn.WARN), (50, UnderuseTurn.STOP)]
    assert told([0.0] * 60, IdleRule(5, 80 * MINUTE, stops=True)) == []
    assert told([0.0] * 300, IdleRule(5, 80 * MINUTE, stops=True)) == [
        (160, UnderuseTurn.WARN),
        (180, UnderuseTurn.STOP),
    ]
    assert told([0.0] * 300, IdleRule(5, 20 * MINUTE, stops=False)) == [(40, UnderuseTurn.WARN)]


def test_the_limit_itself_is_enough_and_work_after_the_warning_saves() -> None:
    assert told([5.0] * 300) == []
    assert told([0.0] * 42 + [100.0] * 60)[:2] == [(40, UnderuseTurn.WARN), (43, UnderuseTurn.OVER)]
    lately = told([0.0] * 42 + [7.0] * 60)
    assert lately == [(40, UnderuseTurn.WARN), (50, UnderuseTurn.OVER)], "7 % since, though less over the window"


def test_time_that_was_not_read_holds_the_clock() -> None:
    held = [0.0] * 42 + [None] * 100
    assert told(held) == [(40, UnderuseTurn.WARN)]
    assert told([*held, *[0.0] * 30]) == [(40, UnderuseTurn.WARN), (150, UnderuseTurn.STOP)]
    assert told([0.0] * 25 + [None] * 30 + [0.0] * 30) == [(70, UnderuseTurn.WARN), (80, UnderuseTurn.STOP)]


@given(STORIES)
def test_nothing_is_stopped_that_was_not_warned_a_measured_grace_before(story: Story) -> None:
    found = told(story)
    for (before, turn), (minute, then) in zip([(0, UnderuseTurn.OVER), *found], found, strict=False):
        if then is UnderuseTurn.STOP:
            assert turn is UnderuseTurn.WARN
            since = [percent for percent in story[before:minute] if percent is not None]
            assert len(since) >= 10
            assert sum(since) / len(since) < 5.0001
        else:
            assert (turn, then) in ((UnderuseTurn.OVER, UnderuseTurn.WARN), (UnderuseTurn.WARN, UnderuseTurn.OVER))


@given(STORIES)
def test_a_warning_follows_a_window_of_too_little_work(story: Story) -> None:
    for minute, turn in told(story):
        if turn is UnderuseTurn.WARN:
            read = [percent for percent in story[20:minute] if percent is not None][-20:]
            assert minute >= 40
            assert len(read) == 20
            assert sum(read) / 20 < 5.0001


@given(STORIES, st.integers(0, 300))
def test_gpus_that_were_not_read_at_last_never_lead_to_anything(story: Story, cut: int) -> None:
    assert all(story[minute - 1] is not None for minute, _ in told(story[:cut]))


def test_a_rule_that_is_gone_takes_its_warning_back() -> None:
    warned = UnderuseClock(attempt=0, counted_from=T0, warned_at=T0, stop_at=T0, text="…")
    clock, turn = judged(warned, [], None, T0, MINUTE)
    assert (turn, clock.warned_at, clock.stop_at, clock.text) == (UnderuseTurn.OVER, None, None, "")


def test_a_gap_between_samples_is_not_read() -> None:
    samples = [GpuSample(T0 + minute * MINUTE, 0.0) for minute in (*range(21), 200, 201)]
    assert judged(UnderuseClock(attempt=0, counted_from=T0), samples, RULE, T0, MINUTE)[1] is UnderuseTurn.NONE
