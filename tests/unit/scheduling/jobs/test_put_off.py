"""Orders that look at how long jobs run: short ones go first, and long ones wait for a bounded time only."""

from __future__ import annotations

from datetime import timedelta

import pytest

from pai_backend.model.job import Job
from pai_backend.model.order import LONGEST_RUN, UNKNOWN_RUN, Order
from pai_backend.scheduling.jobs.placer import Placer
from pai_backend.scheduling.jobs.why import why
from pai_backend.scheduling.queue import Policy
from pai_backend.testing.builders import T0, make_job, make_role, make_spec, make_uid
from tests.support.job_queue import placed, served
from tests.support.scripted_engine import lab_node

HOUR = timedelta(hours=1)
RUNS = {"short": HOUR / 4, "long": 10 * HOUR}


def placer(order: Order = Order.PREDICTED, **orders: Order) -> Placer:
    """One GPU, which a job holds already."""
    made = Placer(policy=Policy(order=order, orders=orders))
    made.likely = lambda job: RUNS.get(job.spec.name.partition("-")[0])
    made.set_node(lab_node("carol"))
    made.catch_up()
    assert placed(made, job("first", 0))
    return made


def job(name: str, at_s: int, vc: str = "default") -> Job:
    spec = make_spec(name, roles=[make_role(gpus=1)], virtual_cluster=vc)
    return make_job(name, uid=make_uid(sum(name.encode())), spec=spec, submitted_at=T0 + timedelta(seconds=at_s))


def next_after_the_first(made: Placer, *waiting: Job) -> str:
    """Who starts when the GPU is free."""
    for each in waiting:
        served(made, each)
    made.keep_only(job("first", 0).uid, ())
    (unit,) = made.advance(T0).started
    return made.units.jobs[unit.job].name


def test_of_two_the_shorter_goes_first_though_it_came_later() -> None:
    assert next_after_the_first(placer(), job("long", 1), job("short", 3600)) == "short"
    assert next_after_the_first(placer(Order.FAIR), job("long", 1), job("short", 3600)) == "short"
    assert next_after_the_first(placer(Order.SUBMITTED), job("long", 1), job("short", 3600)) == "long"


def test_a_long_one_waits_for_those_of_a_bounded_time_after_it() -> None:
    later = Order.PREDICTED.put_off(10 * HOUR) - Order.PREDICTED.put_off(HOUR / 4) + timedelta(seconds=1)
    assert next_after_the_first(placer(), job("long", 0), job("short", int(later.total_seconds()))) == "long"


def test_of_what_is_not_known_an_hour_is_expected_and_of_nothing_more_than_a_month() -> None:
    assert Order.FAIR.put_off(None) == Order.FAIR.put_off(UNKNOWN_RUN) == HOUR
    assert Order.FAIR.put_off(timedelta.max) == LONGEST_RUN
    assert Order.SUBMITTED.put_off(timedelta.max) == timedelta()
    assert next_after_the_first(placer(), job("long", 1), job("new", 2)) == "new"
    assert next_after_the_first(placer(), job("new", 1), job("short", 2)) == "short"


def test_a_virtual_cluster_may_have_an_order_of_its_own() -> None:
    made = placer(Order.SUBMITTED, quick=Order.PREDICTED)
    assert next_after_the_first(made, job("long", 1), job("short", 2)) == "long"
    made = placer(Order.SUBMITTED, quick=Order.PREDICTED)
    assert next_after_the_first(made, job("long", 1, "quick"), job("short", 2, "quick")) == "short"


def test_a_turn_stands_once_it_is_given_whatever_is_learnt_later() -> None:
    made = placer()
    waiting = job("long", 1)
    served(made, waiting)
    made.likely = lambda _: HOUR / 60
    served(made, waiting)
    assert made.turns.put_off_s(waiting.uid) == Order.PREDICTED.put_off(10 * HOUR).total_seconds()
    stored = waiting.model_copy(update={"put_off_s": 60, "turn_at": T0 + timedelta(seconds=61)})
    served(made, stored)
    assert made.turns.put_off_s(waiting.uid) is None, "it is stored, and given no more"
    assert next_after_the_first(made, job("short", 30)) == "long"


def test_a_moved_job_has_the_turn_it_was_moved_to() -> None:
    moved = job("long", 100).model_copy(update={"put_off_s": 0, "turn_at": T0})
    assert next_after_the_first(placer(), job("short", 1), moved) == "long"


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("en", "Shorter jobs go first here: it takes its turn as if submitted 1d16h later."),
        ("zh_CN", "此处较短的作业优先，因此它按晚 1d16h 提交来排队。"),
    ],
)
def test_why_says_that_a_turn_was_put_off(language: str, sentence: str) -> None:
    made = placer()
    served(made, job("long", 1))
    told = why(made, job("long", 1).uid, T0)
    assert told is not None
    assert told.texts[language].sentence.endswith(sentence)
    assert told.put_off_s == 40 * 3600
