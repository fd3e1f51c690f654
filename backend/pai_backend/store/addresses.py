"""Workspace names of users, and which job holds each now.

A name that is reserved has an alias that no job gets by itself. Its holder is the job that has this alias; as an alias
is one job's alone, there is never a second one. A name stays reserved without a holder until it is released.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import partial

from sqlalchemy import Connection, bindparam, delete, insert, select

from pai_backend.model.errors import NoSuchAddress, ReadOnlyJob
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Job, State
from pai_backend.model.text import Text
from pai_backend.store.repository import Repository
from pai_backend.store.rows import AnyRow
from pai_backend.store.tables import addresses, jobs

_MINE = addresses.c.username == bindparam("user_")
_HELD = (
    select(addresses, jobs.c.uid, jobs.c.name.label("job_name"), jobs.c.state)
    .outerjoin(jobs, jobs.c.alias == addresses.c.alias)
    .where(_MINE)
)
_ONE = _HELD.where(addresses.c.name == bindparam("name_"))
_ALL = _HELD.order_by(addresses.c.name)
_DELETE = delete(addresses).where(_MINE, addresses.c.name == bindparam("name_"))


@dataclass(frozen=True)
class HeldBy:
    """The job that holds a workspace name."""

    uid: JobUid
    name: str
    state: State


@dataclass(frozen=True)
class Address:
    """A workspace name of a user's. ``holder`` None: no job holds it now."""

    user: str
    name: str
    alias: str
    created_at: datetime
    holder: HeldBy | None


def one(conn: Connection, user: str, name: str) -> Address | None:
    """The user's workspace name; None when it is not reserved."""
    row = conn.execute(_ONE, {"user_": user, "name_": name}).one_or_none()
    return None if row is None else _address(row)


def reserve(conn: Connection, user: str, name: str, alias: str, at: datetime) -> None:
    """Reserve a name that is not."""
    conn.execute(insert(addresses), {"username": user, "name": name, "alias": alias, "created_at": at})


def forget_user(conn: Connection, user: str) -> None:
    """Release all names of a user who is removed."""
    conn.execute(delete(addresses).where(_MINE), {"user_": user})


def _address(row: AnyRow) -> Address:
    held = None if row.uid is None else HeldBy(JobUid(row.uid), row.job_name, State(row.state))
    return Address(row.username, row.name, row.alias, row.created_at, held)


class Addresses(Repository):
    """Workspace names. They are reserved by submitting a job (``store.jobs.submit``)."""

    async def of_user(self, user: str) -> list[Address]:
        """All names of a user, in order."""
        rows = await self._database.read(lambda conn: conn.execute(_ALL, {"user_": user}).all())
        return [_address(row) for row in rows]

    async def held_by(self, job: Job) -> str:
        """The name that the job holds now; empty for none."""
        if not job.spec.address:
            return ""
        found = await self._database.read(partial(one, user=job.user, name=job.spec.address))
        return job.spec.address if found is not None and found.alias == job.alias else ""

    async def release(self, user: str, name: str) -> None:
        """Reserve the name no longer. Its last holder keeps the alias.

        Raises NoSuchAddress, and ReadOnlyJob while a job that has not ended holds it.
        """
        await self._writer.run(partial(_release, user=user, name=name))


def _release(conn: Connection, user: str, name: str) -> None:
    found = one(conn, user, name)
    if found is None:
        raise NoSuchAddress(
            Text("{user} has no workspace name {name}.", user=user, name=repr(name[:100])),
            hint=Text("`pai addresses` lists those that you have."),
        )
    if found.holder is not None and not found.holder.state.final:
        raise ReadOnlyJob(
            Text(
                "The job {user}~{holder} holds the workspace name {name} and has not ended.",
                user=user,
                holder=found.holder.name,
                name=name,
            ),
            hint=Text("Stop it first: `pai stop {holder}`.", holder=found.holder.name),
        )
    conn.execute(_DELETE, {"user_": user, "name_": name})
