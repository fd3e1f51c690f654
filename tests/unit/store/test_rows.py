"""Jobs to rows and back, without a database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.dialects import sqlite

from pai_backend.model.errors import Bug, DocumentError
from pai_backend.model.job import Job, State
from pai_backend.store.cipher import Cipher, new_key
from pai_backend.store.columns import Instant
from pai_backend.store.rows import _COLUMN_OF, _REST, document_values, settled, task_values, to_tasks
from pai_backend.store.tables import jobs
from pai_backend.testing.builders import make_job, make_role, make_spec

ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=ZONES))
def test_a_time_is_kept_to_the_microsecond_whatever_its_zone(time: datetime) -> None:
    stored = Instant().process_bind_param(time, sqlite.dialect())

    again = Instant().process_result_value(stored, sqlite.dialect())

    assert again == time
    assert again is not None
    assert again.tzinfo is UTC


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="zone"):
        Instant().process_bind_param(datetime(2026, 1, 1), sqlite.dialect())


def test_every_field_of_a_job_is_kept_in_one_place() -> None:
    kept_elsewhere = {"spec", "tasks", "tags"}

    assert set(_COLUMN_OF) | _REST | kept_elsewhere == set(Job.model_fields)
    assert not set(_COLUMN_OF) & _REST
    assert set(_COLUMN_OF.values()) <= set(jobs.c.keys())


def test_tasks_keep_role_order_and_number() -> None:
    job = make_job(spec=make_spec(roles=[make_role("z", instances=2), make_role("a")]))

    rows = task_values(job, job.tasks)

    assert [(row["role_number"], row["task_index"]) for row in rows] == [(0, 0), (0, 1), (1, 0)]
    assert to_tasks([row["body"] for row in rows]) == job.tasks


def test_a_task_of_a_role_that_is_not_in_the_job_is_a_bug() -> None:
    job = make_job()
    with pytest.raises(Bug, match="other"):
        task_values(job, [job.tasks[0].model_copy(update={"role": "other"})])


def test_text_that_is_not_unicode_is_a_fault_of_the_document() -> None:
    with pytest.raises(DocumentError) as refusal:
        document_values(make_job(spec=make_spec(env={"X": "\ud83d"})), b"", "", "", {}, Cipher([new_key()]))
    assert "surrogate" in refusal.value.message


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize("forgotten", [True, False])
def test_a_job_is_settled_when_it_is_final_and_all_is_forgotten(state: State, forgotten: bool) -> None:
    job = make_job(state=state)
    tasks = tuple(task.model_copy(update={"forgotten": forgotten}) for task in job.tasks)

    assert settled(job.model_copy(update={"tasks": tasks})) is (state.final and forgotten)
