"""OpenPAI's words cover all of ours: every phase, every kind of exit, every event."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest

from pai_backend.api.openpai import events, states
from pai_backend.api.openpai.jobs import debug_id, milliseconds
from pai_backend.api.openpai.states import exit_spec, job_exit_spec
from pai_backend.api.services.attempts import attempt_of
from pai_backend.lifecycle.exits import RULES
from pai_backend.model.job import Desired, Event, JobExit, Phase, State, TaskExit
from pai_backend.model.spec import Dialect
from pai_backend.testing.builders import T0, make_job, make_role, make_spec

EVENTS_PAGE = Path(__file__).parents[3] / "docs" / "events.md"
TYPES = re.findall(r"^### `([\w.-]+)`$", EVENTS_PAGE.read_text(encoding="utf-8"), re.MULTILINE)
FC_STATES = {
    "AttemptCreationPending",
    "AttemptPreparing",
    "AttemptRunning",
    "AttemptDeletionRequested",
    "AttemptCompleted",
    "Completed",
}


def test_every_phase_has_a_sub_state_that_openpai_knows() -> None:
    assert {states.sub_state(phase) for phase in Phase} == FC_STATES


def test_v1_knows_all_states_but_stopping() -> None:
    assert {states.job_state(state, 1) for state in State} == {state.value for state in State} - {"STOPPING"}
    assert [states.job_state(state, 2) for state in State] == [state.value for state in State]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.of.phrase)
def test_every_exit_class_has_a_specification(rule) -> None:  # type: ignore[no-untyped-def]
    exit_ = TaskExit(code=rule.statuses[0] if rule.statuses else 1, reason=rule.reason or "exited", at=T0)
    spec = exit_spec(exit_)
    assert spec.phrase == rule.of.phrase
    assert spec.code == rule.of.openpai
    assert spec.reason
    assert spec.behavior in ("SUCCEED", "TRANSIENT", "TRANSIENT_CONFLICT", "PERMANENT", "UNKNOWN")
    assert spec.reaction in ("ALWAYS_RETRY", "ALWAYS_BACKOFF_RETRY", "RETRY_TO_MAX", "NEVER_RETRY")
    assert spec.type in ("USER_SUCCESS", "USER_STOP", "USER_FAILURE", "PLATFORM_FAILURE")


def test_a_job_that_no_task_decided_is_explained_all_the_same() -> None:
    stopped = job_exit_spec(JobExit(status=-210, message="stopped on request"), None, stopped=True, at=T0)
    done = job_exit_spec(JobExit(status=0, message="all tasks are done"), None, stopped=False, at=T0)
    assert (stopped.type, stopped.code) == ("USER_STOP", -210)
    assert (done.type, done.phrase) == ("USER_SUCCESS", "Succeeded")


def test_a_task_that_its_attempt_stopped_has_another_code_than_one_the_user_stopped() -> None:
    job = make_job()
    task = job.tasks[0].model_copy(
        update={"state": State.STOPPED, "exit": TaskExit(signal=15, reason="stopped", at=T0)}
    )
    assert states.task_exit_code(job, task) == -220
    assert states.task_exit_code(job.model_copy(update={"desired": Desired.STOP}), task) == -210
    assert states.task_exit_code(job, job.tasks[0]) is None


@pytest.mark.parametrize("type_", TYPES)
def test_every_event_has_a_reason_of_one_word_and_openpais_type(type_: str) -> None:
    job = make_job()
    payload = {"role": "worker", "index": 0, "attempt": 0} if type_.startswith("task.") else {}
    shown = events.shown(Event(job=job.uid, seq=3, at=T0, type=type_, payload=payload), job)
    assert re.fullmatch(r"(Job|Task)[A-Za-z]*", shown.reason)
    assert shown.type in ("Normal", "Warning")
    assert shown.uid == f"{job.uid}-3"
    assert shown.pod_uid == (job.tasks[0].uid if payload else None)


def test_the_message_of_an_event_is_what_it_says_itself() -> None:
    job = make_job()

    def message(type_: str, **payload: object) -> tuple[str, str]:
        shown = events.shown(Event(job=job.uid, seq=1, at=T0, type=type_, payload=payload), job)
        return shown.type, shown.message

    assert message("job.submitted") == ("Normal", "The job is submitted.")
    assert message("job.state", state="WAITING", phase="queued", why="no room") == ("Normal", "no room")
    assert message("task.state", state="FAILED", exit={"message": "out of memory"}) == ("Warning", "out of memory")
    assert message("job.retry", reason="retrying") == ("Warning", "retrying")


def test_runs_of_a_task_are_numbered_within_their_attempt() -> None:
    job = make_job(spec=make_spec(roles=[make_role(instances=2)], dialect=Dialect.OPENPAI_V2))
    first = [task.model_copy(update={"attempt": run, "job_attempt": 0}) for run in (0, 1) for task in job.tasks]
    second = [task.model_copy(update={"attempt": 2, "job_attempt": 1}) for task in job.tasks]
    later = job.model_copy(update={"attempt": 1, "tasks": tuple(second)})
    retry = Event(
        job=job.uid, seq=9, at=T0 + timedelta(minutes=1), type="job.retry", payload={"attempt": 1, "reason": "x"}
    )

    old, new = (attempt_of(later, number, [*first, *second], [retry]) for number in (0, 1))

    assert [len(runs) for runs in old.runs.values()] == [2, 2]
    assert [task.attempt for task in old.tasks] == [1, 1]
    assert [task.attempt for task in new.tasks] == [2, 2]
    assert (old.completed, new.created, new.completed) == (retry.at, retry.at, None)
    assert (old.retry_reason, new.retry_reason) == ("x", "")


def test_the_debug_id_is_the_one_that_openpai_gives() -> None:
    """Source: the name of the framework of job admin~job-config-0 in a running OpenPAI."""
    assert debug_id("admin", "job-config-0") == "13c3e7e8cfac2009119395723466e92a"
    assert milliseconds(T0) == 1767323045678
