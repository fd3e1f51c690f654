"""What is run again, how often, and at whose expense."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from pai_backend.engine.containers.podman import container_name
from pai_backend.model.ids import TaskUid
from tests.conformance.engines.documents import commands, submitted, v2, v2_role
from tests.conformance.engines.room import Job, Room
from tests.kubernetes.cluster.kubectl import Kubectl

ATTEMPT = "echo attempt $FC_FRAMEWORK_ATTEMPT_ID"


@submitted(commands(ATTEMPT, "test $FC_FRAMEWORK_ATTEMPT_ID = 2", jobRetryCount=2))
def test_a_failed_job_is_run_again_until_it_succeeds(room: Room, job: Job) -> None:
    ended = job.ended("SUCCEEDED")
    assert (ended["retries"], ended["attempt"]) == (2, 2)
    assert job.log() == "attempt 2\n"
    with room.backend.client() as client:
        earlier = [client.get(f"/api/v2/jobs/{job.uid}/logs", params={"attempt": number}).text for number in (0, 1)]
    assert earlier == ["attempt 0\n", "attempt 1\n"]


@submitted(commands("exit 6", jobRetryCount=1))
def test_a_job_is_run_again_as_often_as_it_says_and_no_more(job: Job) -> None:
    ended = job.ended("FAILED")
    assert (ended["retries"], ended["exitStatus"]) == (1, 6)


@submitted(commands("no-such-program-anywhere", jobRetryCount=5))
def test_what_cannot_succeed_is_not_run_again(job: Job) -> None:
    assert job.ended("FAILED")["retries"] == 0


@submitted(commands("true", jobRetryCount=-2))
def test_a_job_that_is_to_run_for_ever_is_run_again_after_a_success(job: Job) -> None:
    job.until(lambda detail: detail["attempt"] >= 1)
    job.stop()
    job.ended("STOPPED")


@submitted(
    v2(
        {
            "weak": v2_role("test $FC_TASK_ATTEMPT_ID = 1", taskRetryCount=1, completion={"minSucceededInstances": -1}),
            "strong": v2_role(
                "until test -e $PAI_DEFAULT_FS_URI/weak-is-done; do sleep 0.2; done",
                completion={"minSucceededInstances": -1},
            ),
        },
        extras={"gangAllocation": False},
    )
)
def test_a_task_of_an_incremental_job_is_run_again_alone(job: Job) -> None:
    job.until(lambda _: job.task("weak")["state"] == "SUCCEEDED")
    assert (job.task("weak")["attempt"], job.task("strong")["attempt"]) == (1, 0)
    assert job.task("strong")["state"] == "RUNNING"
    (job.room.files / "weak-is-done").touch()
    assert job.ended("SUCCEEDED")["retries"] == 0


@submitted(commands("echo $PPID", "until test $FC_FRAMEWORK_ATTEMPT_ID = 1; do sleep 0.2; done", jobRetryCount=1))
def test_what_was_lost_is_run_again_as_the_platforms_doing(
    room: Room, job: Job, request: pytest.FixtureRequest
) -> None:
    job.until_said("\n")
    if room.local:
        os.kill(int(job.log()), signal.SIGKILL)  # what keeps the task there, which takes a retry: it may have done so
    elif room.engine == "containers":
        name = container_name(str(room.backend.data_dir / "engine"), TaskUid(job.task()["uid"]))
        request.getfixturevalue("site").podman("rm", "--force", "--time=0", name)
    else:
        namespace: Kubectl = request.getfixturevalue("room_namespace")
        asyncio.run(namespace("delete", "pod", job.task()["uid"], "--grace-period=1", "--wait=false"))
    ended = job.ended("SUCCEEDED")
    assert ended["attempt"] == 1
    with room.backend.client() as client:
        details = client.get(f"/api/v2/jobs/{job.uid}").json()["retryDetails"]
    assert (details["user"], details["platform"] + details["resource"]) == (0, 1)
