"""Waiting jobs change places: who may move what, and which turns that changes."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pai_backend.model.errors import Forbidden, NotWaiting, OtherQueue
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Desired, Phase, State
from pai_backend.model.spec import PriorityClass
from pai_backend.scheduling.jobs.reorder import (
    STEP,
    Move,
    Moved,
    Queue,
    Side,
    Standing,
    in_order,
    queue_of,
    standing_of,
    turns_after,
)
from pai_backend.testing.builders import T0, make_job, make_spec

VISION = Queue("vision", 10)
NOW = T0 + timedelta(hours=1)


def standing(name: str, minute: float, queue: Queue = VISION) -> Standing:
    """A job of the user whose initial it has."""
    user = {"a": "ann", "b": "bob"}[name[0]]
    return Standing(JobUid(name), f"{user}~{name}", user, queue, T0 + timedelta(minutes=minute))


FOUR = [standing("a1", 0), standing("b1", 1), standing("a2", 2), standing("b2", 3)]


def order(waiting: list[Standing], moves: tuple[Moved, ...] = ()) -> list[str]:
    turns = {each.uid: each.turn for each in moves}
    return [each.uid for each in in_order(each._replace(turn=turns.get(each.uid, each.turn)) for each in waiting)]


def moved(waiting: list[Standing], name: str, side: Side, other: str | None, user: str | None) -> tuple[Moved, ...]:
    return turns_after(waiting, Move(JobUid(name), side, JobUid(other) if other else None, user), NOW)


def test_a_user_exchanges_places_among_own_jobs() -> None:
    moves = moved(FOUR, "a2", Side.BEFORE, "a1", "ann")
    assert [(each.uid, each.place, each.was) for each in moves] == [("a2", 1, 3), ("a1", 3, 1)]
    assert order(FOUR, moves) == ["a2", "b1", "a1", "b2"]


def test_an_administrator_puts_a_job_anywhere_and_changes_its_turn_alone() -> None:
    moves = moved(FOUR, "b2", Side.BEFORE, "b1", None)
    assert [(each.uid, each.place, each.was) for each in moves] == [("b2", 2, 4)]
    assert order(FOUR, moves) == ["a1", "b2", "b1", "a2"]


@pytest.mark.parametrize(
    ("side", "user", "expected"),
    [
        (Side.BEFORE, "bob", ["a1", "b2", "a2", "b1"]),
        (Side.BEFORE, None, ["b2", "a1", "b1", "a2"]),
        (Side.AFTER, "bob", ["a1", "b1", "a2", "b2"]),
    ],
)
def test_the_ends_are_those_of_the_jobs_one_may_pass(side: Side, user: str | None, expected: list[str]) -> None:
    assert order(FOUR, moved(FOUR, "b2", side, None, user)) == expected


def test_the_last_place_is_before_whoever_comes_later() -> None:
    (move,) = moved(FOUR, "a1", Side.AFTER, None, None)
    assert FOUR[-1].turn < move.turn < NOW


@pytest.mark.parametrize("other", ["a1", "a2"])
def test_nothing_changes_when_everybody_stands_as_asked(other: str) -> None:
    assert moved(FOUR, "a2", Side.AFTER, other, "ann") == ()


def test_jobs_of_others_are_not_a_users_to_move_or_to_pass() -> None:
    for name, other in (("b1", "a1"), ("a1", "b1"), ("b1", None)):
        with pytest.raises(Forbidden, match="your own jobs"):
            moved(FOUR, name, Side.BEFORE, other, "ann")


def test_who_does_not_wait_cannot_be_moved_or_passed() -> None:
    for name, other in (("x", "a1"), ("a1", "x")):
        with pytest.raises(NotWaiting, match="x does not wait"):
            moved(FOUR, name, Side.BEFORE, other, None)


@pytest.mark.parametrize("queue", [Queue("vision", 100), Queue("speech", 10), Queue("", -1)])
def test_queues_do_not_mix(queue: Queue) -> None:
    with pytest.raises(OtherQueue, match="ann~a1 and ann~a9 do not wait in the same queue"):
        moved([*FOUR, standing("a9", 9, queue)], "a1", Side.AFTER, "a9", None)


def test_a_queue_is_that_of_the_cells() -> None:
    test, free = PriorityClass.TEST, PriorityClass.OPPO
    assert queue_of("vision", None, shared=False) == queue_of("vision", test, shared=False) == VISION
    assert queue_of("vision", free, shared=False) == queue_of("speech", free, shared=False)
    assert queue_of("vision", test, shared=True) == queue_of("speech", None, shared=True)
    assert queue_of("vision", test, shared=False) != queue_of("speech", test, shared=False)


def test_only_jobs_that_are_queued_as_a_whole_stand_in_line() -> None:
    job = make_job(spec=make_spec(virtual_cluster="vision"))
    found = standing_of(job, shared=False)
    assert found is not None
    assert (found.queue, found.turn) == (VISION, job.submitted_at)
    turned = standing_of(job.model_copy(update={"turn_at": NOW}), shared=False)
    assert turned is not None
    assert turned.turn == NOW
    for change in (
        {"state": State.RUNNING, "phase": Phase.RUNNING},
        {"phase": Phase.STARTING},
        {"desired": Desired.STOP},
    ):
        assert standing_of(job.model_copy(update=change), shared=False) is None


def test_jobs_of_one_instant_get_turns_of_their_own() -> None:
    together = [standing("a1", 0), standing("a2", 0), standing("b1", 0), standing("b2", 1)]
    moves = moved(together, "a2", Side.BEFORE, "a1", "ann")
    assert order(together, moves) == ["a2", "a1", "b1", "b2"]
    assert {each.turn for each in moves} == {T0 + STEP, T0 + 2 * STEP}


@settings(max_examples=300, derandomize=True, deadline=None)
@given(st.data())
def test_moves_keep_the_law(data: st.DataObject) -> None:
    """What is moved stands where it was asked to; of those who may not be touched nobody's place changes."""
    steps = data.draw(st.lists(st.integers(0, 3), min_size=2, max_size=9))
    waiting = [
        standing(f"{data.draw(st.sampled_from('ab'))}{number}", 0)._replace(turn=T0 + sum(steps[:number]) * STEP)
        for number in range(len(steps))
    ]
    user = data.draw(st.sampled_from([None, "ann"]))
    pool = [each.uid for each in waiting if user in (None, each.user)]
    if not pool:
        return
    name, other = data.draw(st.sampled_from(pool)), data.draw(st.sampled_from([None, *pool]))
    side = data.draw(st.sampled_from(Side))
    before = order(waiting)
    moves = moved(waiting, name, side, other, user)
    after = order(waiting, moves)
    own = [each for each in after if each in pool]
    if other is None:
        assert own[0 if side is Side.BEFORE else -1] == name
    elif other != name:
        assert own.index(name) - own.index(other) == (-1 if side is Side.BEFORE else 1)
    if user is not None:
        assert [each if each not in pool else "" for each in before] == [
            each if each not in pool else "" for each in after
        ]
    rest = [each for each in before if each != name]
    assert [each for each in after if each in pool and each != name] == [each for each in rest if each in pool]
    assert all((after.index(each.uid) + 1, before.index(each.uid) + 1) == (each.place, each.was) for each in moves)
