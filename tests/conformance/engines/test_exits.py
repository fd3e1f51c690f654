"""How tasks end, and what their users are told of it."""

from __future__ import annotations

import pytest

from tests.conformance.engines.documents import commands, submitted, v1, v1_role, v2, v2_role
from tests.conformance.engines.room import Job


@submitted(commands("exit 0"))
def test_a_command_that_succeeds_lets_the_job_succeed(job: Job) -> None:
    ended = job.ended("SUCCEEDED")
    assert (ended["exitStatus"], job.exit()["code"], job.exit()["signal"]) == (0, 0, None)


@pytest.mark.parametrize(
    ("code", "phrase"),
    [
        pytest.param(code, phrase, marks=submitted(commands(command)), id=str(code))
        for command, code, phrase in (
            ("exit 3", 3, "CommandFailed"),
            ("no-such-program-anywhere", 127, "CommandNotFound"),
            ("touch plain; ./plain", 126, "CommandNotExecutable"),
            ("exit 255", 255, "CommandFailed"),
            ("timeout 1 sleep 1000", 124, "CommandFailed"),
        )
    ],
)
def test_the_exit_status_of_the_command_is_the_jobs(job: Job, code: int, phrase: str) -> None:
    assert job.ended("FAILED")["exitStatus"] == code
    found = job.exit()
    assert (found["status"], found["code"], found["signal"]) == (code, code, None)
    assert found["phrase"] == phrase


@pytest.mark.parametrize(
    ("number", "phrase"),
    [
        pytest.param(number, phrase, marks=submitted(v1(v1_role(f"kill -{number} $$; sleep 100"))), id=str(number))
        for number, phrase in ((11, "SegmentationFault"), (9, "Killed"))
    ],
)
def test_a_signal_that_ends_the_command_is_told_as_one(job: Job, number: int, phrase: str) -> None:
    assert job.ended("FAILED")["exitStatus"] == 128 + number
    found = job.exit()
    assert (found["code"], found["signal"]) == (None, number)
    assert found["phrase"] == phrase


@submitted(v1(v1_role("python3 -c 'import os; os.kill(os.getpid(), 15)'")))
def test_a_program_that_a_signal_ended_inside_the_command_counts_as_ended_by_it(job: Job) -> None:
    assert job.ended("FAILED")["exitStatus"] == 128 + 15
    assert job.exit()["phrase"] == "Interrupted"


@submitted(commands("sleep 1000 & echo left", "exit 5"))
def test_what_a_command_leaves_behind_does_not_keep_its_task(job: Job) -> None:
    assert job.ended("FAILED")["exitStatus"] == 5
    assert job.log() == "left\n"


@submitted(
    v2(
        {
            "good": v2_role("exit 0", completion={"minSucceededInstances": -1}),
            "bad": v2_role("sleep 1; exit 9", completion={"minSucceededInstances": -1}),
        }
    )
)
def test_the_task_that_decided_a_job_is_named(job: Job) -> None:
    found = job.ended("FAILED")["exit"]
    assert found is not None
    assert (found["role"], found["index"], found["status"]) == ("bad", 0, 9)


@submitted(commands("exec sleep 1000 </dev/null"))
def test_a_task_has_no_input_and_times(job: Job) -> None:
    job.running()
    job.stop()
    job.ended("STOPPED")
    started, completed = job.task()["startedTime"], job.task()["completedTime"]
    assert started is not None
    assert completed is not None
    assert started <= completed
