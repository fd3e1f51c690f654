"""What is expected of a job after its user's earlier ones."""

from __future__ import annotations

import zlib
from datetime import timedelta

import pytest

from pai_backend.model.attempts import Ran, Times, kind_of
from pai_backend.model.job import Job
from pai_backend.model.waiting import Basis
from pai_backend.scheduling.jobs import history
from pai_backend.scheduling.jobs.history import LEAST, MANY, History, basis_of, usual
from pai_backend.testing.builders import make_job, make_spec, make_uid

HOUR = 3600


def job(name: str = "train-9", user: str = "alice") -> Job:
    """A job of that name; jobs of different names or users have different uids."""
    uid = make_uid(zlib.crc32(f"{user}~{name}".encode()))
    return make_job(name, uid=uid, user=user, spec=make_spec(name))


def ran(*seconds: int, name: str = "train-1", user: str = "alice") -> list[Ran]:
    return [Ran(user, kind_of(make_spec(name)), each) for each in seconds]


def after(*ended: Ran) -> History:
    known = History()
    for each in ended:
        known.note(each)
    return known


def test_nothing_is_expected_before_there_are_enough_attempts_of_the_kind() -> None:
    known = after(*ran(*[HOUR] * (LEAST - 1)), *ran(HOUR, name="other-1"), *ran(HOUR, user="bob"))
    assert known.run_time(job()) is None
    known.note(ran(HOUR)[0])
    assert known.run_time(job()) == timedelta(hours=1)
    assert known.run_time(job(user="bob")) is None
    assert known.run_time(job("other-2")) is None


def test_what_a_document_declares_goes_before_what_others_did() -> None:
    declared = make_job("train-9", spec=make_spec("train-9").model_copy(update={"expected_run_s": 90}))
    assert History().run_time(declared) == timedelta(seconds=90)
    assert after(*ran(HOUR, HOUR, HOUR)).run_time(declared) == timedelta(seconds=90)
    assert (basis_of(declared), basis_of(job())) == (Basis.DECLARED, Basis.HISTORY)


def test_kinds_of_jobs_are_told_anew_once_too_many_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST_JOBS", 2)
    known = after(*ran(60, 60, 60))
    for number in range(5):
        one = make_job(f"train-{number}", uid=make_uid(number), spec=make_spec(f"train-{number}"))
        assert known.run_time(one) == known.run_time(one) == timedelta(minutes=1)
        assert len(known._kinds) <= 2


def test_one_hung_attempt_does_not_move_what_is_expected() -> None:
    assert after(*ran(600, 620, 640, 90_000)).run_time(job()) == timedelta(seconds=640)
    assert after(*ran(1, 600, 620, 640)).run_time(job()) == timedelta(seconds=620)


@pytest.mark.parametrize(("count", "rank"), [(3, 3), (4, 3), (5, 4), (8, 6), (16, 12)])
def test_three_of_four_attempts_ended_within_the_usual_time(count: int, rank: int) -> None:
    assert usual(list(range(count, 0, -1))) == rank


def test_what_is_stored_is_where_it_goes_on() -> None:
    known = History([Times("alice", kind_of(make_spec("train-1")), (60, 60))])
    assert known.run_time(job()) is None
    known.note(ran(120)[0])
    assert known.run_time(job()) == timedelta(seconds=120)


def test_old_attempts_give_way_to_new_ones() -> None:
    assert after(*ran(*[60] * 30, *[HOUR] * 16)).run_time(job()) == timedelta(hours=1)


def test_of_too_many_kinds_those_with_the_oldest_ends_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST_KINDS", 2)
    known = after(*ran(60, 60, 60, name="a-1"), *ran(60, 60, 60, name="b-1"), *ran(60, name="a-1"))
    known.note(ran(60, name="c-1")[0])
    assert known.run_time(job("a-2")) == timedelta(minutes=1)
    assert known.run_time(job("b-2")) is None


def test_for_the_order_of_the_queue_the_kind_counts_then_what_is_declared_then_the_user_then_all() -> None:
    declared = job().model_copy(update={"spec": make_spec("train-9").model_copy(update={"expected_run_s": 90})})
    known = History()
    assert known.likely(job()) is None
    assert known.likely(declared) == timedelta(seconds=90)
    for each in ran(*[7 * HOUR] * LEAST, name="other-1", user="bob"):
        known.note(each)
    assert known.likely(job()) == timedelta(hours=7), "what everybody ran"
    for each in ran(*[2 * HOUR] * MANY, name="eval-1"):
        known.note(each)
    assert known.likely(job()) == timedelta(hours=2), "what the user ran"
    assert known.likely(declared) == timedelta(seconds=90)
    for each in ran(HOUR, HOUR, 9 * HOUR):
        known.note(each)
    assert known.likely(job()) == known.likely(declared) == timedelta(hours=1), "a declared time is no way to the front"


def test_who_is_remembered_without_a_kind_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST_USERS", 2)
    known = after(*(each for user in ("a", "b", "c") for each in ran(*[HOUR] * 100, user=user)))
    assert [*known._of_user] == ["b", "c"]
    assert {len(times) for times in known._of_user.values()} == {len(known._latest)} == {history.RECENT}


def test_what_was_stored_counts_for_its_user_too() -> None:
    known = History([Times("alice", "k", (HOUR,) * MANY)])
    assert known.likely(job()) == timedelta(hours=1)
