"""New jobs, many in one transaction: two look-ups and four inserts, however many come together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select

from pai_backend.model.alias import job_alias
from pai_backend.model.errors import Bug, InvalidParameters, NameTaken
from pai_backend.model.job import Job
from pai_backend.store import events
from pai_backend.store.base import NewEvent
from pai_backend.store.cipher import Cipher
from pai_backend.store.rows import Values, changing_values, document_values, fixed_values, search_text, task_values
from pai_backend.store.tables import documents, jobs, tasks

_NAMES = select(jobs.c.name, jobs.c.username).where(jobs.c.name.in_(bindparam("names", expanding=True)))
_ALIASES = select(jobs.c.alias).where(jobs.c.alias.in_(bindparam("aliases", expanding=True)))
_INSERT_JOB = insert(jobs)
_INSERT_DOCUMENT = insert(documents)
_INSERT_TASK = insert(tasks)
_MOST_GPUS = 2**31 - 1  # of PostgreSQL's integer


@dataclass(frozen=True, eq=False)
class Submission:
    """A job ready to be inserted: everything that needs no database is done already."""

    job: Job
    candidates: tuple[str, ...]
    values: Values
    document: Values
    tasks: list[Values]
    events: list[Values]


def prepare(
    job: Job,
    source: bytes,
    filename: str,
    media_type: str,
    new: Sequence[NewEvent],
    secrets: Mapping[str, Any],
    cipher: Cipher,
) -> Submission:
    """Turn a job into rows. Raises DocumentError or InvalidParameters for text that cannot be stored."""
    _check(job, filename, media_type)
    stored = job.model_copy(update={"version": job.version + 1})
    return Submission(
        job=stored,
        candidates=alias_candidates(job),
        values={
            **fixed_values(stored),
            **changing_values(stored),
            "version": stored.version,
            "last_seq": len(new),
            "dirty": True,
        },
        document=document_values(job, source, filename, media_type, secrets, cipher),
        tasks=task_values(job, job.tasks),
        events=events.event_values(job, 0, new, job.submitted_at),
    )


def _check(job: Job, filename: str, media_type: str) -> None:
    """Refuse what one of the databases would refuse, before it could spoil the others' transaction."""
    for what, text in (("job name", job.name), ("file name", filename), ("media type", media_type)):
        if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
            raise InvalidParameters(
                f"The {what} has a character that cannot be stored.",
                hint="Remove NUL and half surrogate pairs from it.",
            )
    gpus = sum(role.instances * role.resources.gpus for role in job.spec.task_roles)
    if gpus > _MOST_GPUS:
        raise InvalidParameters(f"The job asks for {gpus} GPUs.", hint=f"Ask for at most {_MOST_GPUS}.")


def alias_candidates(job: Job) -> tuple[str, ...]:
    """The proposal, then the name with ever more of the uid; the last has all of it, which nobody can guess."""
    digits = job.uid[1:]
    return (job.alias, *(job_alias(job.name, digits[:length]) for length in (4, 8, 12, 16)))


def submit_all(conn: Connection, submissions: Sequence[Submission]) -> list[Job | Exception]:
    """Insert them; the outcome of one whose name its user has already is NameTaken."""
    names = {(row.username, row.name) for row in conn.execute(_NAMES, {"names": [s.job.name for s in submissions]})}
    wanted = [alias for s in submissions for alias in s.candidates]
    aliases = set(conn.execute(_ALIASES, {"aliases": wanted}).scalars())
    outcomes: list[Job | Exception] = []
    accepted: list[Submission] = []
    rows: list[Values] = []
    for submission in submissions:
        job = submission.job
        if (job.user, job.name) in names:
            outcomes.append(_name_taken(job))
            continue
        alias = next((text for text in submission.candidates if text not in aliases), None)
        if alias is None:
            raise Bug(f"every alias of job {job.uid} is taken: its uid is not random")
        names.add((job.user, job.name))
        aliases.add(alias)
        accepted.append(submission)
        if alias != job.alias:
            job = job.model_copy(update={"alias": alias})
        rows.append({**submission.values, "alias": alias, "search": search_text(job)})
        outcomes.append(job)
    if accepted:
        _insert(conn, rows, accepted)
    return outcomes


def _insert(conn: Connection, rows: list[Values], accepted: Sequence[Submission]) -> None:
    conn.execute(_INSERT_JOB, rows)
    conn.execute(_INSERT_DOCUMENT, [s.document for s in accepted])
    new_tasks = [row for s in accepted for row in s.tasks]
    if new_tasks:
        conn.execute(_INSERT_TASK, new_tasks)
    events.append(conn, [row for s in accepted for row in s.events])


def _name_taken(job: Job) -> NameTaken:
    return NameTaken(
        f"{job.user} already has a job named {job.name}.",
        hint="Give this one another name: `pai submit FILE --name OTHER`, or `name=OTHER` in the REST query.",
    )
