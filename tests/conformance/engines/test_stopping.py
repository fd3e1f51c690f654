"""Jobs that are asked to stop: what runs may finish its work in the grace, what waits never starts."""

from __future__ import annotations

from tests.conformance.engines.documents import Document, commands, submitted, v2, v2_role
from tests.conformance.engines.room import Job, Room

LOOP = "while :; do sleep 0.1; done"


@submitted(commands("trap 'echo saved; exit 4' TERM", "echo up", LOOP))
def test_a_task_may_save_its_work_before_it_ends(job: Job) -> None:
    job.until_said("up")
    job.stop()
    ended = job.ended("STOPPED")
    assert (ended["exitStatus"], job.exit()["reason"], job.exit()["code"]) == (-210, "stopped", 4)
    said = job.log().splitlines()
    assert said[0] == "up"
    assert "saved" in said  # beside it bash may say, by another stream, that its sleep was terminated


@submitted(commands("trap '' TERM", "echo up", LOOP))
def test_a_task_that_does_not_end_in_the_grace_is_killed(job: Job) -> None:
    job.until_said("up")
    job.stop()
    job.ended("STOPPED")
    found = job.exit()
    assert (found["reason"], found["code"], found["signal"]) == ("stopped", None, 9)


@submitted(commands("python3 -c 'import time; time.sleep(1000)' & echo up; wait"))
def test_what_the_command_has_started_ends_with_it(job: Job) -> None:
    job.until_said("up")
    job.stop()
    job.ended("STOPPED")
    assert job.exit()["signal"] == 15


@submitted(commands("echo up", LOOP, jobRetryCount=3))
def test_stopping_twice_is_as_stopping_once(job: Job) -> None:
    job.until_said("up")
    job.stop()
    job.stop()
    ended = job.ended("STOPPED")
    assert ended["retries"] == 0
    known = job.events()
    job.stop()
    assert job.events() == known


@submitted(commands("echo up", LOOP, jobRetryCount=-2, extras={"jupyterPai": {"maxDuration": "2s"}}))
def test_a_job_that_has_run_for_its_max_duration_is_stopped_and_not_run_again(job: Job) -> None:
    ended = job.ended("STOPPED")
    assert ended["exit"] is not None
    assert (ended["exit"]["cause"], ended["retries"]) == ("duration", 0)
    assert ended["exit"]["message"] == "it has run for 2s, its maxDuration"
    assert job.log().startswith("up\n")


def with_gpus(*lines: str, instances: int = 1) -> Document:
    """A job that holds a GPU with each of its tasks; there are two in the room."""
    role = v2_role(*lines, instances=instances)
    role["resourcePerInstance"]["gpu"] = 1
    return v2({"main": role})


def test_a_job_that_waits_is_stopped_before_it_starts(room: Room) -> None:
    holding = room.submit(with_gpus("exec sleep 1000", instances=2))
    holding.running()
    waiting = room.submit(with_gpus("echo never"))
    waiting.until(lambda detail: detail["state"] == "WAITING" and bool(detail["why"]))
    waiting.stop()
    waiting.ended("STOPPED")
    assert waiting.task()["startedTime"] is None
    holding.stop()
    holding.ended("STOPPED")
