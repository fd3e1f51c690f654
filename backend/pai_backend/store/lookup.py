"""Whole jobs, by whatever names them, and what belongs to one job."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from pydantic_core import from_json
from sqlalchemy import ColumnElement, Connection, Select, and_, bindparam, exists, or_, select

from pai_backend.model.errors import NoSuchJob
from pai_backend.model.ids import JobUid, is_job_uid
from pai_backend.model.job import Job
from pai_backend.model.text import Text
from pai_backend.store.cipher import Cipher
from pai_backend.store.rows import AnyRow, to_job
from pai_backend.store.tables import addresses, documents, jobs, tasks

_JOB = select(jobs, documents.c.spec).join(documents, documents.c.job == jobs.c.uid)
_next = tasks.alias("next_run")
_BODIES = (
    select(tasks.c.job, tasks.c.body)
    # No run of a current attempt is older than the attempt, so earlier attempts are never read.
    .join(jobs, and_(jobs.c.uid == tasks.c.job, jobs.c.attempt <= tasks.c.attempt))
    .where(
        ~exists().where(
            _next.c.job == tasks.c.job,
            _next.c.attempt == tasks.c.attempt + 1,
            _next.c.role_number == tasks.c.role_number,
            _next.c.task_index == tasks.c.task_index,
        )
    )
    .order_by(tasks.c.job, tasks.c.role_number, tasks.c.task_index)
)
"""Of each instance its latest run: runs are numbered without gaps, so it is the one that no other follows."""

_ORDER = (jobs.c.submitted_at, jobs.c.uid)


def _pair(condition: ColumnElement[bool]) -> tuple[Select[Any], Select[Any]]:
    """The two statements that load all jobs of a condition."""
    return _JOB.where(condition).order_by(*_ORDER), _BODIES.where(condition)


_BY_UID = _pair(jobs.c.uid == bindparam("uid_"))
_BY_ALIAS = _pair(jobs.c.alias == bindparam("alias_"))
_DIRTY = _pair(jobs.c.dirty)
_UNSETTLED = _pair(~jobs.c.settled)
_MATCHES = select(jobs.c.uid, jobs.c.alias, jobs.c.name, jobs.c.username)
_BY_FULL_NAME = _MATCHES.where(jobs.c.name == bindparam("name_"), jobs.c.username == bindparam("username_"))
_OF_ADDRESS = (
    select(addresses.c.alias)
    .where(addresses.c.username == bindparam("username_"), addresses.c.name == bindparam("name_"))
    .scalar_subquery()
)
"""The alias of the user's workspace name."""
_BY_ANY_NAME = _MATCHES.where(
    or_(
        jobs.c.alias == bindparam("name_"),
        jobs.c.alias == _OF_ADDRESS,
        and_(jobs.c.name == bindparam("name_"), jobs.c.username == bindparam("username_")),
    )
)
_DOCUMENT = select(documents.c.source, documents.c.filename, documents.c.media_type).where(
    documents.c.job == bindparam("uid_")
)
_SECRETS = select(documents.c.secrets).where(documents.c.job == bindparam("uid_"))
_ALL_BODIES = (
    select(tasks.c.body)
    .where(tasks.c.job == bindparam("uid_"))
    .order_by(tasks.c.attempt, tasks.c.role_number, tasks.c.task_index)
)
_PARSED_AT_ONCE = 32
_EXISTS = select(jobs.c.uid).where(jobs.c.uid == bindparam("uid_"))


class StoredJob(NamedTuple):
    """A job as it was read, before it is parsed."""

    row: AnyRow
    bodies: Sequence[str]

    def parse(self, cipher: Cipher) -> Job:
        """The job; about a fifth of a millisecond for one of few tasks. Raises UnknownKey."""
        return to_job(self.row, self.bodies, cipher)


def job(conn: Connection, uid: JobUid, cipher: Cipher) -> Job:
    """Raises NoSuchJob, UnknownKey."""
    found = _load(conn, _BY_UID, {"uid_": uid})
    if not found:
        raise no_such_job(uid)
    return found[0].parse(cipher)


def by_alias(conn: Connection, alias: str, cipher: Cipher, user: str = "") -> Job | None:
    """The job that holds that workspace name of the user's, or else has that alias. Raises UnknownKey."""
    meant = alias
    if user:
        own = conn.execute(select(_OF_ADDRESS), {"username_": user, "name_": alias}).scalar_one()
        meant = own or alias
    found = _load(conn, _BY_ALIAS, {"alias_": meant})
    return found[0].parse(cipher) if found else None


def find(conn: Connection, name: str, user: str | None, cipher: Cipher) -> Job:
    """By uid, by ``user~name``, or by the user's own bare name or workspace name, or any alias.

    The full names of the user's own jobs come before their bare names: each job has to be found by its id, also where
    another's name is that text. Both come before all else: a stranger's job, whose alias it is, or whose full name
    where a name has a ``~`` of its own, would hide the user's. Raises NoSuchJob, UnknownKey.
    """
    if is_job_uid(name):
        return job(conn, JobUid(name), cipher)
    owner, tilde, rest = name.partition("~")
    rows = list(conn.execute(_BY_ANY_NAME, {"name_": name, "username_": user}))
    if tilde:
        rows += conn.execute(_BY_FULL_NAME, {"name_": rest, "username_": owner}).all()

    def rank(row: AnyRow) -> int:
        is_named = row.username == user and row.name in (name, rest)
        is_full = (row.username, row.name) == (owner, rest)
        return (0 if is_full else 1) if is_named else 2 if row.username == user else 3

    if not rows:
        raise no_such_job(name)
    return job(conn, JobUid(min(rows, key=rank).uid), cipher)


def dirty(conn: Connection) -> list[StoredJob]:
    """Jobs whose intent the controller has not seen, oldest first."""
    return _load(conn, _DIRTY, {})


def unfinished(conn: Connection) -> list[StoredJob]:
    """Jobs that recovery must look at, oldest first."""
    return _load(conn, _UNSETTLED, {})


async def parsed(stored: Sequence[StoredJob], cipher: Cipher) -> list[Job]:
    """The jobs, parsed a few at a time: thousands at once would hold the event loop for half a second.

    Raises UnknownKey.
    """
    jobs: list[Job] = []
    for start in range(0, len(stored), _PARSED_AT_ONCE):
        jobs += [one.parse(cipher) for one in stored[start : start + _PARSED_AT_ONCE]]
        await asyncio.sleep(0)  # the loop's turn
    return jobs


def document(conn: Connection, uid: JobUid) -> tuple[bytes, str, str]:
    """Source (sealed), file name and media type. Raises NoSuchJob."""
    row = conn.execute(_DOCUMENT, {"uid_": uid}).one_or_none()
    if row is None:
        raise no_such_job(uid)
    return bytes(row.source), row.filename, row.media_type


def secrets(conn: Connection, uid: JobUid) -> bytes | None:
    """The secrets of a job's document (sealed JSON); None when it has none. Raises NoSuchJob."""
    row = conn.execute(_SECRETS, {"uid_": uid}).one_or_none()
    if row is None:
        raise no_such_job(uid)
    return None if row.secrets is None else bytes(row.secrets)


def past_tasks(conn: Connection, uid: JobUid) -> list[dict[str, object]]:
    """Tasks of all attempts in JSON form, oldest attempt first. Raises NoSuchJob."""
    require(conn, uid)
    return [from_json(body) for body in conn.execute(_ALL_BODIES, {"uid_": uid}).scalars()]


def require(conn: Connection, uid: JobUid) -> None:
    """Raises NoSuchJob unless there is such a job."""
    if conn.execute(_EXISTS, {"uid_": uid}).one_or_none() is None:
        raise no_such_job(uid)


def no_such_job(name: str) -> NoSuchJob:
    """The error, with its remedy."""
    return NoSuchJob(
        Text("There is no job {name}.", name=repr(name[:300])), hint=Text("`pai list` shows the names of your jobs.")
    )


def _load(conn: Connection, pair: tuple[Select[Any], Select[Any]], values: dict[str, str]) -> list[StoredJob]:
    rows = conn.execute(pair[0], values).all()
    if not rows:
        return []
    bodies = _grouped(conn.execute(pair[1], values))
    return [StoredJob(row, bodies.get(row.uid, [])) for row in rows]


def _grouped(rows: Iterable[AnyRow]) -> dict[str, list[str]]:
    bodies: dict[str, list[str]] = {}
    for row in rows:
        bodies.setdefault(row.job, []).append(row.body)
    return bodies
