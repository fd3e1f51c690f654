"""What is expected of a job after its user's earlier ones."""

from __future__ import annotations

from datetime import timedelta

import pytest

from pai_backend.model.attempts import Ran, Times, kind_of
from pai_backend.model.job import Job
from pai_backend.scheduling.jobs import history
from pai_backend.scheduling.jobs.history import LEAST, History, usual
from pai_backend.testing.builders import make_job, make_spec

HOUR = 3600


def job(name: str = "train-9", user: str = "alice") -> Job:
    return make_job(name, user=user, spec=make_spec(name))


def ran(*seconds: int, name: str = "train-1", user: str = "alice") -> list[Ran]:
    return [Ran(user, kind_of(make_spec(name)), each) for each in seconds]


def after(*ended: Ran) -> History:
    known = History()
    for each in ended:
        known.note(each)
    return known


def test_nothing_is_expected_before_there_are_enough_attempts_of_the_kind() -> None:
    known = after(*ran(*[HOUR] * (LEAST - 1)), *ran(HOUR, name="other-1"), *ran(HOUR, user="bob"))
    assert known.expected(job()) is None
    known.note(ran(HOUR)[0])
    assert known.expected(job()) == timedelta(hours=1)
    assert known.expected(job(user="bob")) is None
    assert known.expected(job("other-2")) is None


def test_one_hung_attempt_does_not_move_what_is_expected() -> None:
    assert after(*ran(600, 620, 640, 90_000)).expected(job()) == timedelta(seconds=640)
    assert after(*ran(1, 600, 620, 640)).expected(job()) == timedelta(seconds=620)


@pytest.mark.parametrize(("count", "rank"), [(3, 3), (4, 3), (5, 4), (8, 6), (16, 12)])
def test_three_of_four_attempts_ended_within_the_usual_time(count: int, rank: int) -> None:
    assert usual(list(range(count, 0, -1))) == rank


def test_what_is_stored_is_where_it_goes_on() -> None:
    known = History([Times("alice", kind_of(make_spec("train-1")), (60, 60))])
    assert known.expected(job()) is None
    known.note(ran(120)[0])
    assert known.expected(job()) == timedelta(seconds=120)


def test_old_attempts_give_way_to_new_ones() -> None:
    assert after(*ran(*[60] * 30, *[HOUR] * 16)).expected(job()) == timedelta(hours=1)


def test_of_too_many_kinds_those_with_the_oldest_ends_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST_KINDS", 2)
    known = after(*ran(60, 60, 60, name="a-1"), *ran(60, 60, 60, name="b-1"), *ran(60, name="a-1"))
    known.note(ran(60, name="c-1")[0])
    assert known.expected(job("a-2")) == timedelta(minutes=1)
    assert known.expected(job("b-2")) is None
