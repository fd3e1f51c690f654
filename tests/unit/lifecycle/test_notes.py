"""Why a task is asked to end, as administrators of the cluster are told."""

from __future__ import annotations

import pytest

from pai_backend.lifecycle.events import JobEvent, Look, Preempted, TaskExited
from pai_backend.lifecycle.notes import stop_notes
from pai_backend.lifecycle.step import step
from pai_backend.model.job import Desired, Job, StopCause, TaskExit
from pai_backend.model.task_note import NoteReason
from pai_backend.testing.builders import T0, make_job, make_role, make_spec
from tests.support.lives import running


def told(before: Job, event: JobEvent) -> list[tuple[NoteReason, str]]:
    after, _ = step(before, event, T0)
    return [(note.reason, note.text) for note in stop_notes(before, after)]


def pair() -> Job:
    return running(make_job(spec=make_spec(roles=[make_role("ps"), make_role("worker")])))


@pytest.mark.parametrize(
    ("cause", "reason"),
    [
        (StopCause.USER, NoteReason.USER_STOPPED),
        (StopCause.IDLE, NoteReason.IDLE_STOPPED),
        (StopCause.DURATION, NoteReason.DURATION_STOPPED),
    ],
)
def test_of_a_stopped_job_the_cause_is_told_and_no_words_of_a_user(cause: StopCause, reason: NoteReason) -> None:
    asked = {"desired": Desired.STOP, "stop_cause": cause, "stop_reason": "the password is hunter2"}
    stopping = pair().model_copy(update=asked)
    notes = told(stopping, Look())
    assert [each for each, _ in notes] == [reason, reason]
    assert "hunter2" not in str(notes)
    after, _ = step(stopping, Look(), T0)
    assert told(after, Look()) == [], "it is told once"


def test_of_a_preempted_task_the_job_is_named_and_not_its_user() -> None:
    job = pair()
    assert told(job, Preempted((job.tasks[1].uid,), "bob~urgent.1, 2", 7)) == [
        (NoteReason.PREEMPTED, "it makes way for the job urgent.1, 2 (priority 7)")
    ]


def test_of_others_of_a_job_that_one_task_has_decided_that_task_is_named() -> None:
    job = pair()
    failed = TaskExited(job.tasks[0].uid, TaskExit(code=3, at=T0))
    assert told(job, failed) == [
        (NoteReason.JOB_ENDED, "its job or this attempt of it has failed, which task ps-0 decided")
    ]
