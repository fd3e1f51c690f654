"""Jobs as rows and rows as jobs; pure.

A job row has a column for each field that lists filter, sort or show; its other changing fields are one
JSON text, ``rest``. Tasks are JSON texts of their own, so that a save writes only those that changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError, from_json, to_json
from sqlalchemy import Row

from pai_backend.model.errors import Bug, DocumentError
from pai_backend.model.job import Job, Task
from pai_backend.model.spec import JobSpec
from pai_backend.model.text import Text
from pai_backend.model.wording import restored, wording_of
from pai_backend.store.base import JobSummary
from pai_backend.store.cipher import Cipher
from pai_backend.store.tables import jobs

Values: TypeAlias = dict[str, Any]
"""Column name -> value, as SQLAlchemy takes them."""

AnyRow: TypeAlias = "Row[*tuple[Any, ...]]"
"""A row whose columns are known by name only."""

_COLUMN_OF = {
    "uid": "uid",
    "name": "name",
    "user": "username",
    "alias": "alias",
    "state": "state",
    "phase": "phase",
    "why": "why",
    "desired": "desired",
    "attempt": "attempt",
    "submitted_at": "submitted_at",
    "launched_at": "launched_at",
    "completed_at": "completed_at",
    "version": "version",
}
"""Field of :class:`Job` -> column of ``jobs``. Columns not named here are derived, for lists and indexes."""

_REST = set(Job.model_fields) - set(_COLUMN_OF) - {"spec", "tasks", "tags"}
"""Fields in ``rest``: a field added to Job is kept here without a migration."""

_TASKS = TypeAdapter(tuple[Task, ...])

SUMMARY = (
    jobs.c.uid,
    jobs.c.name,
    jobs.c.username,
    jobs.c.alias,
    jobs.c.state,
    jobs.c.phase,
    jobs.c.why,
    jobs.c.virtual_cluster,
    jobs.c.submitted_at,
    jobs.c.launched_at,
    jobs.c.completed_at,
    jobs.c.retries,
    jobs.c.task_count,
    jobs.c.gpu_count,
    jobs.c.exit_status,
    jobs.c.warning_count,
    jobs.c.desired,
    jobs.c.priority,
    jobs.c.role_count,
    jobs.c.platform_retries,
    jobs.c.resource_retries,
    jobs.c.tags,
    jobs.c.gpu_types,
    jobs.c.why_wording,
)
"""The columns of a :class:`JobSummary`, in its order."""


def fixed_values(job: Job) -> Values:
    """Columns of ``jobs`` that are written once, at submit."""
    spec = job.spec
    return {
        "uid": job.uid,
        "name": job.name,
        "username": job.user,
        "alias": job.alias,
        "virtual_cluster": spec.virtual_cluster,
        "priority": spec.scheduling.priority_class,
        "tags": tags_text(job.tags),
        "search": search_text(job),
        "role_count": len(spec.task_roles),
        "task_count": spec.task_count,
        "gpu_count": sum(role.instances * role.resources.gpus for role in spec.task_roles),
        "submitted_at": job.submitted_at,
    }


def search_text(job: Job) -> str:
    """What a keyword is looked for in, as OpenPAI does: name, user and virtual cluster; the alias is ours."""
    return "\n".join((job.name, job.alias, job.user, job.spec.virtual_cluster)).lower()


def tags_text(tags: Iterable[str]) -> str:
    """Tags as the column of a job's row has them, for lists to show."""
    return to_json(sorted(tags)).decode()


def read_tags(text: str) -> tuple[str, ...]:
    """Tags of :func:`tags_text`, in alphabetical order."""
    return tuple(from_json(text)) if text != "[]" else ()


MOST_TYPE_BYTES = 300
"""Of all GPU types of a job in its row: they stand in an index, and a row of PostgreSQL's has room for 2,704 bytes."""


def gpu_types_text(types: Iterable[str]) -> str:
    """GPU types as the column of a job's row has them; those that would make it too long are left out."""
    kept: list[str] = []
    for each in sorted(types):
        if len(to_json([*kept, each])) <= MOST_TYPE_BYTES:
            kept.append(each)
    return to_json(kept).decode()


@lru_cache(maxsize=256)
def read_gpu_types(text: str) -> tuple[str, ...]:
    """GPU types of :func:`gpu_types_text`; a list of jobs has few different ones."""
    return tuple(from_json(text))


def changing_values(job: Job) -> Values:
    """Columns of ``jobs`` that a save writes, but for version, sequence and marks."""
    return {
        "state": job.state.value,
        "phase": job.phase.value,
        "why": job.why,
        "why_wording": wording_text(job.why),
        "desired": job.desired.value,
        "attempt": job.attempt,
        "retries": job.retries.total,
        "platform_retries": job.retries.by_platform,
        "resource_retries": job.retries.resource,
        "warning_count": len(job.warnings),
        "exit_status": None if job.exit is None else job.exit.status,
        "gpu_types": gpu_types_text(job.gpu_types),
        "launched_at": job.launched_at,
        "completed_at": job.completed_at,
        "settled": settled(job),
        "rest": job.model_dump_json(include=_REST),
    }


def wording_text(text: str) -> str:
    """The wording of a text as a column has it; empty for one without a template."""
    wording = wording_of(text)
    return "" if wording is None else wording.model_dump_json()


def settled(job: Job) -> bool:
    """Whether recovery may overlook the job: final, and the engine has nothing left of it."""
    return job.state.final and all(task.forgotten for task in job.tasks)


def document_values(
    job: Job, source: bytes, filename: str, media_type: str, secrets: Mapping[str, Any], cipher: Cipher
) -> Values:
    """The row of ``documents``, sealed. Raises DocumentError for text that is not Unicode (a lone surrogate)."""
    try:
        spec = job.spec.model_dump_json().encode()
    except PydanticSerializationError:  # its own words may repeat the document's
        raise DocumentError(
            Text("The document has text that cannot be stored: half of a surrogate pair."),
            hint=Text(r"Look for an escape such as \ud800 that is half of a character, and remove it."),
        ) from None
    return {
        "job": job.uid,
        "spec": cipher.seal(spec),
        "filename": filename,
        "media_type": media_type,
        "source": cipher.seal(source),
        # Escaped to ASCII, because a secret may be text that is not Unicode.
        "secrets": cipher.seal(json.dumps(dict(secrets)).encode()) if secrets else None,
        "sealed_by": cipher.newest,
    }


def task_values(job: Job, tasks: Iterable[Task]) -> list[Values]:
    """Rows of ``tasks``. Raises Bug for a task of a role that the job does not have."""
    numbers = {role.name: number for number, role in enumerate(job.spec.task_roles)}
    rows: list[Values] = []
    for task in tasks:
        if task.role not in numbers:
            raise Bug(f"task {task.uid} is of role {task.role!r}, which its job does not have")
        rows.append(
            {
                "job": job.uid,
                "attempt": task.attempt,
                "role_number": numbers[task.role],
                "task_index": task.index,
                "body": task.model_dump_json(),
            }
        )
    return rows


def to_tasks(bodies: Sequence[str]) -> tuple[Task, ...]:
    """Tasks from their JSON, read as one array: one call into the parser, however many there are."""
    return _TASKS.validate_json(f"[{','.join(bodies)}]")


def to_job(row: AnyRow, bodies: Sequence[str], cipher: Cipher) -> Job:
    """A job from its row (all of ``jobs``, and ``documents.spec``) and its tasks' JSON in order. Raises UnknownKey."""
    fields = {name: getattr(row, column) for name, column in _COLUMN_OF.items()}
    # A field that an older version knew, and this one does not, is dropped rather than refused.
    rest = {name: value for name, value in from_json(row.rest).items() if name in _REST}
    rest["tags"] = read_tags(row.tags)
    if row.why_wording:
        fields["why"] = restored(row.why, from_json(row.why_wording))
    return Job.model_validate(
        {**fields, **rest, "spec": JobSpec.model_validate_json(cipher.open(row.spec)), "tasks": to_tasks(bodies)}
    )


def to_summary(row: AnyRow) -> JobSummary:
    """A list row from :data:`SUMMARY`; no JSON is read but that of tags and GPU types."""
    return JobSummary(*(*row[:-3], read_tags(row[-3]), read_gpu_types(row[-2]), row[-1]))
