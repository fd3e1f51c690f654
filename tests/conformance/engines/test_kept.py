"""Tasks that have failed and are kept for debugging (isDebug)."""

from __future__ import annotations

from tests.conformance.engines.documents import submitted, v1, v1_role
from tests.conformance.engines.room import Job, Room

FAILS = v1(v1_role("echo the evidence > left; no-such-program-anywhere"), jobEnvs={"isDebug": True})


def kept(job: Job) -> None:
    """Wait until its task has failed and is kept."""
    job.until(lambda _: job.task()["phase"] == "kept for debugging")


@submitted(FAILS)
def test_a_failed_task_can_be_entered_until_it_is_released(room: Room, job: Job) -> None:
    kept(job)
    task = job.task()
    assert (job.detail["state"], task["state"], job.exit()["code"]) == ("RUNNING", "FAILED", 127)
    assert task["keptUntil"] is not None
    entered = room.ssh(job, "cat left; echo $PAI_JOB_NAME")
    assert (entered.stdout.decode(), entered.returncode) == (f"the evidence\n{job.detail['name']}\n", 0), entered.stderr
    assert room.client.release(job.uid)["tasks"] == ["main-0"]
    assert job.ended("FAILED")["exitStatus"] == 127
    assert job.exit()["code"] == 127


@submitted(FAILS)
def test_a_kept_task_goes_when_its_job_is_stopped(job: Job) -> None:
    kept(job)
    job.stop()
    assert job.ended("FAILED")["exitStatus"] == 127


@submitted(v1(v1_role("true"), jobEnvs={"isDebug": True}))
def test_a_task_that_succeeds_is_not_kept(job: Job) -> None:
    job.ended("SUCCEEDED")


@submitted(v1(v1_role("exec sleep 1000"), jobEnvs={"isDebug": True}))
def test_a_task_that_was_stopped_is_not_kept(job: Job) -> None:
    job.running()
    job.stop()
    job.ended("STOPPED")
