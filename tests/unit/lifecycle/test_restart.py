"""A job that has ended runs again: its next attempt, with all retries before it, once nothing is left of the last."""

from __future__ import annotations

from datetime import timedelta

import pytest

from pai_backend.lifecycle.events import Waiting
from pai_backend.lifecycle.history import events_between
from pai_backend.lifecycle.restart import restarted
from pai_backend.lifecycle.step import stepped, to_place
from pai_backend.model.attempts import ran
from pai_backend.model.job import Job, Phase, Retries, State
from pai_backend.testing.builders import T0, make_job, make_role, make_spec
from tests.support.lives import asked_to_stop, ended, forgotten, looked_at, running

LATER = T0 + timedelta(hours=5)


def over(code: int = 3, retry_count: int = 0) -> Job:
    """A job of two tasks after its end, its tasks not forgotten yet."""
    spec = make_spec(roles=[make_role(instances=2)], retry_count=retry_count)
    job = ended(ended(running(make_job(spec=spec)), 1, code), 0, code)
    while not job.state.final:
        job = ended(ended(running(forgotten(job)), 1, code), 0, code)
    return job


def test_an_ended_job_waits_and_runs_as_its_next_attempt() -> None:
    before = forgotten(over())
    asked = restarted(before, LATER)
    assert (asked.state, asked.phase, asked.why) == (State.WAITING, Phase.QUEUED, "")
    assert (asked.exit, asked.completed_at, asked.launched_at) == (None, None, None)
    assert to_place(asked, LATER) == ()

    again = looked_at(asked, LATER)

    assert (again.uid, again.alias, again.name) == (before.uid, before.alias, before.name)
    assert (again.attempt, again.state, again.verdict, again.restarting) == (1, State.WAITING, None, False)
    assert [task.attempt for task in again.tasks] == [1, 1]
    assert to_place(again, LATER) == again.tasks
    done = ended(ended(running(again, now=LATER), 0, after_s=20_000), 1, after_s=20_000)
    assert done.state is State.SUCCEEDED
    assert done.launched_at == LATER + timedelta(seconds=1)


def test_it_queues_behind_those_that_wait() -> None:
    assert looked_at(restarted(forgotten(over()), LATER), LATER).turn_at == LATER


def test_nothing_runs_before_the_last_run_is_forgotten() -> None:
    asked = restarted(over(), LATER)
    assert asked.why == "what is left of its last run is being removed"
    assert looked_at(asked, LATER) == asked
    assert forgotten(asked).attempt == 1


def test_all_retries_are_before_it_again() -> None:
    before = forgotten(over(retry_count=1))
    assert before.retries.user == 1
    again = looked_at(restarted(before, LATER), LATER)
    assert (again.retries, again.attempt) == (Retries(), 2)


def test_a_stop_takes_the_wish_back() -> None:
    before = over()
    stopped = forgotten(asked_to_stop(restarted(before, LATER)))
    assert (stopped.state, stopped.exit, stopped.attempt) == (State.FAILED, before.exit, 0)
    assert not stopped.restarting


@pytest.mark.parametrize("code", [0, 3])
def test_what_succeeded_is_not_counted_again(code: int) -> None:
    before = forgotten(over(code))
    asked = restarted(before, LATER)
    assert ran(asked, looked_at(asked, LATER)) is None
    assert ran(asked, looked_at(asked_to_stop(asked), LATER)) is None


def test_its_history_has_a_new_attempt_that_is_charged_to_none() -> None:
    before = forgotten(over(retry_count=1))
    asked = restarted(before, LATER)
    (waits,) = events_between(before, asked)
    assert (waits.type, waits.payload["state"]) == ("job.state", "WAITING")
    (retry, *_) = events_between(asked, looked_at(asked, LATER))
    assert retry.type == "job.retry"
    assert {**retry.payload, "backoff_until": None} == {
        "attempt": 2,
        "reason": "restarted on request",
        "charged": "",
        "free": False,
        "backoff_until": None,
    }


def test_a_job_that_goes_on_is_left_alone() -> None:
    job = running(make_job())
    assert restarted(job, LATER) is job


def test_its_turn_is_put_off_anew() -> None:
    waiting = make_job().model_copy(update={"why": ""})
    put_off = stepped(waiting, Waiting("", put_off_s=60), LATER)
    assert (put_off.put_off_s, put_off.turn_at) == (60, waiting.submitted_at + timedelta(seconds=60))
    assert stepped(put_off, Waiting("", put_off_s=900), LATER).turn_at == put_off.turn_at, "once"
    asked = restarted(forgotten(over().model_copy(update={"put_off_s": 60})), LATER)
    assert asked.put_off_s is None
