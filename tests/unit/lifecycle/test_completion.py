"""When an attempt is decided, and how: one row a rule, each with its source."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pai_backend.lifecycle.retry import STOPPED_STATUS, decide, stopped
from pai_backend.model.job import Job, State, StopCause
from pai_backend.model.spec import Completion
from pai_backend.testing.builders import make_job, make_role, make_spec
from tests.support.lives import ended, lost, running

WAITS, WINS, FAILS = None, State.SUCCEEDED, State.FAILED


@dataclass(frozen=True)
class Case:
    """Roles as (instances, min_failed, min_succeeded); ends in order of time as (task number, code); the outcome."""

    source: str
    roles: list[tuple[int, int | None, int | None]]
    ends: list[tuple[int, int]]
    outcome: State | None
    kill_all: int | None = None
    message: str = ""

    def job(self) -> Job:
        """The job after these ends."""
        roles = [
            make_role(f"role{number}", instances=count, completion=Completion(min_failed=failed, min_succeeded=wins))
            for number, (count, failed, wins) in enumerate(self.roles)
        ]
        spec = make_spec(roles=roles).model_copy(update={"kill_all_on_completed": self.kill_all})
        job = running(make_job(spec=spec))
        for number, (task, code) in enumerate(self.ends):
            job = ended(job, task, code, after_s=2 + number)
        return job


V1 = "OpenPAI v1, field table of the seeds"
V2 = "OpenPAI v2, completion (research, §2.4)"
QIZHI = "QIZHI, killAllOnCompletedTaskNumber"

CASES = [
    Case(f"{V1}: minFailedTaskCount defaults to 1", [(2, 1, None)], [(1, 3)], FAILS, message="role0-1"),
    Case(f"{V1}: minFailedTaskCount 2 is not reached by one", [(3, 2, None)], [(1, 3)], WAITS),
    Case(f"{V1}: minFailedTaskCount 2", [(3, 2, None)], [(2, 3), (0, 4)], FAILS, message="role0-0"),
    Case(f"{V1}: null minFailedTaskCount never fails the job", [(2, None, None)], [(0, 1), (1, 1)], WINS),
    Case(f"{V1}: null minSucceededTaskCount waits for all", [(2, 1, None)], [(0, 0)], WAITS),
    Case(f"{V1}: null minSucceededTaskCount, all are done", [(2, 1, None)], [(0, 0), (1, 0)], WINS, message="all"),
    Case(f"{V1}: of all roles", [(1, 1, None), (1, 1, None)], [(0, 0)], WAITS),
    Case(f"{V1}: minSucceededTaskCount 1", [(3, 1, 1)], [(2, 0)], WINS, message="1 of role role0"),
    Case(f"{V1}: minSucceededTaskCount 2 is not reached by one", [(3, 1, 2)], [(2, 0)], WAITS),
    Case(f"{V1}: what failed does not count as succeeded", [(3, None, 2)], [(0, 0), (1, 1)], WAITS),
    Case(f"{V1}: a failure counts before a success of the same role", [(2, 1, 1)], [(0, 9)], FAILS),
    Case(f"{V2}: -1 (None) on both rules, all done", [(2, None, None)], [(0, 1), (1, 0)], WINS),
    Case(f"{V2}: the first role that is complete ends the job", [(1, 1, 1), (4, 1, 4)], [(0, 0)], WINS),
    Case(f"{V2}: not before all its instances are", [(2, 1, 2), (4, 1, 4)], [(0, 0), (2, 0)], WAITS),
    Case(f"{V2}: a helper role with -1 does not", [(1, 1, None), (2, 1, 2)], [(0, 0)], WAITS),
    Case(f"{V2}: any role can fail the job", [(1, 1, 1), (4, 1, 4)], [(3, 1)], FAILS, message="role1-2"),
    Case(f"{QIZHI}: 0 is off", [(2, 1, None)], [(0, 0)], WAITS, kill_all=0),
    Case(f"{QIZHI}: that many completed tasks end the job", [(3, 1, None)], [(0, 0), (2, 0)], WINS, kill_all=2),
    Case(f"{QIZHI}: one less does not", [(3, 1, None)], [(0, 0)], WAITS, kill_all=2),
    Case(f"{QIZHI}: tasks of all roles count", [(1, 1, None), (2, 1, None)], [(0, 0), (1, 0)], WINS, kill_all=2),
    Case(f"{QIZHI}: a failed one fails the job first", [(3, 1, None)], [(0, 5)], FAILS, kill_all=1),
    Case("a limit below 1 is off, whoever let it through", [(2, 0, 0)], [(0, 1)], WAITS),
    Case("a limit of -1 is off, whoever let it through", [(2, -1, -1)], [(0, 1), (1, 0)], WINS),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.source)
def test_an_attempt_is_decided_as_the_document_says(case: Case) -> None:
    verdict = case.job().verdict or decide(case.job())
    job = case.job()
    if case.outcome is WAITS:
        assert verdict is None
        assert job.state is State.RUNNING
        return
    assert verdict is not None
    assert verdict.outcome is case.outcome
    assert case.message in verdict.exit.message


def test_the_exit_of_the_task_that_was_one_too_many_is_the_jobs() -> None:
    """Source: OpenPAI v2, an attempt that fails inherits the exit of the task that completed the count."""
    job = Case("", [(3, 2, None)], [(2, 41), (0, 42)], FAILS).job()
    assert job.verdict is not None
    assert (job.verdict.exit.status, job.verdict.exit.role, job.verdict.exit.index) == (42, "role0", 0)


def test_the_jobs_exit_carries_the_sentence_and_the_remedy() -> None:
    job = ended(running(make_job()), 0, 127)
    assert job.exit is not None
    assert job.exit.message == "task worker-0: a program that the command names was not found (exited with status 127)"
    assert job.exit.remedy.startswith("Check its spelling")


def test_a_lost_task_decides_a_gang_whatever_its_rules() -> None:
    """It has to be run again, and that is free; source: architecture §7."""
    job = lost(Case("", [(2, None, None)], [], WAITS).job(), 1)
    assert job.verdict is not None
    assert (job.verdict.outcome, job.verdict.kind.free) == (FAILS, True)


@pytest.mark.parametrize("reason", ["storage-exceeded", "deadline-exceeded", "out-of-memory"])
def test_a_command_that_went_beyond_a_limit_and_exited_with_0_has_failed(reason: str) -> None:
    """Programs that save their state exit with 0 when they are told to end."""
    job = ended(running(make_job()), 0, 0, reason)
    assert job.tasks[0].state is FAILS
    assert job.verdict is not None
    assert (job.verdict.outcome, job.verdict.exit.status) == (FAILS, 255)
    assert "exited with status 0" in job.verdict.exit.message


def test_a_command_that_was_stopped_and_exited_with_0_is_no_failure() -> None:
    assert ended(running(make_job()), 0, 0, "stopped").tasks[0].state is WINS


def test_a_stop_request_has_openpais_exit_status() -> None:
    assert stopped("enough", StopCause.USER).exit.status == STOPPED_STATUS == -210
    assert stopped("", StopCause.USER).exit.message == "stopped on request"
    assert stopped("", StopCause.IDLE).exit.cause is StopCause.IDLE
