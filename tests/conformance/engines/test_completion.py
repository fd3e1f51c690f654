"""When a job is decided, and what becomes of the tasks that are not done."""

from __future__ import annotations

from tests.conformance.engines.documents import Document, submitted, v1, v1_role, v2, v2_role
from tests.conformance.engines.room import Job

FIRST_ENDS = "test $PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX != 0 || exit {}; exec sleep 1000"
NEVER: Document = {"minFailedInstances": -1, "minSucceededInstances": -1}


def states(job: Job, role: str = "main") -> list[str]:
    """States of the tasks of a role."""
    return [task["state"] for task in job.tasks if task["role"] == role]


@submitted(v2({"main": v2_role(FIRST_ENDS.format(0), instances=3, completion={"minSucceededInstances": 1})}))
def test_so_many_successes_end_the_job_and_stop_the_others(job: Job) -> None:
    job.ended("SUCCEEDED")
    assert states(job) == ["SUCCEEDED", "STOPPED", "STOPPED"]


@submitted(v2({"main": v2_role(FIRST_ENDS.format(4), instances=2)}))
def test_one_failure_fails_the_job_and_stops_the_others(job: Job) -> None:
    assert job.ended("FAILED")["exitStatus"] == 4
    assert states(job) == ["FAILED", "STOPPED"]
    assert job.exit(index=1)["reason"] == "stopped"


@submitted(
    v2(
        {
            "main": v2_role(
                "exit $PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX",
                instances=2,
                completion={"minFailedInstances": 2, "minSucceededInstances": -1},
            )
        }
    )
)
def test_fewer_failures_than_count_do_not_fail_the_job(job: Job) -> None:
    job.ended("SUCCEEDED")
    assert states(job) == ["SUCCEEDED", "FAILED"]


@submitted(v2({"main": v2_role("exit 1", instances=2, completion=NEVER)}))
def test_failures_that_do_not_count_let_the_job_succeed(job: Job) -> None:
    job.ended("SUCCEEDED")
    assert states(job) == ["FAILED", "FAILED"]


@submitted(v2({"main": v2_role("true"), "server": v2_role("exec sleep 1000")}))
def test_the_first_role_that_is_complete_ends_a_v2_job(job: Job) -> None:
    job.ended("SUCCEEDED")
    assert (states(job), states(job, "server")) == (["SUCCEEDED"], ["STOPPED"])


@submitted(v1(v1_role("true"), v1_role("until test -e $PAI_DEFAULT_FS_URI/go-on; do sleep 0.2; done", "slow")))
def test_a_v1_job_waits_for_all_of_its_roles(job: Job) -> None:
    job.until(lambda _: job.task()["state"] == "SUCCEEDED" and job.task("slow")["state"] == "RUNNING")
    assert job.detail["state"] == "RUNNING"
    (job.room.files / "go-on").touch()
    job.ended("SUCCEEDED")
    assert states(job, "slow") == ["SUCCEEDED"]


@submitted(v1(v1_role("true", "worker", 1), v1_role("exec sleep 1000", "server"), killAllOnCompletedTaskNumber=1))
def test_so_many_tasks_that_are_done_end_a_job_of_qizhi(job: Job) -> None:
    job.ended("SUCCEEDED")
    assert (states(job, "worker"), states(job, "server")) == (["SUCCEEDED"], ["STOPPED"])
