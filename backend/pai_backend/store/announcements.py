"""What administrators announce to all users: one text at a time, until it ends."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import partial

from sqlalchemy import Connection, delete, insert, select

from pai_backend.store import audit
from pai_backend.store.grants import Act
from pai_backend.store.people_tables import announcements as table
from pai_backend.store.repository import Repository

_CURRENT = select(table).order_by(table.c.at.desc(), table.c.by).limit(1)


@dataclass(frozen=True)
class Announcement:
    """A text for all users. ``until``: when it ends by itself; None: when an administrator ends it.

    ``no_starts_from``: from when on no job starts while it is announced; None: it holds up no job.
    """

    text: str
    until: datetime | None
    by: str
    at: datetime
    no_starts_from: datetime | None = None

    def holds_starts(self, now: datetime) -> bool:
        """Whether no job starts now."""
        return self.no_starts_from is not None and self.no_starts_from <= now


def current(conn: Connection, now: datetime) -> Announcement | None:
    """What is announced now."""
    row = conn.execute(_CURRENT).one_or_none()
    if row is None or (row.until is not None and row.until <= now):
        return None
    return Announcement(row.text, row.until, row.by, row.at, row.no_starts_from)


def announce(conn: Connection, new: Announcement, act: Act) -> None:
    """Announce this in place of what was announced."""
    conn.execute(delete(table))
    conn.execute(insert(table), vars(new))
    held = "" if new.no_starts_from is None else f"no job starts from {new.no_starts_from.isoformat()} on: "
    audit.note(conn, "announcement.made", act.by, "", act, detail=f"{held}{new.text}")


def end(conn: Connection, act: Act) -> None:
    """Announce nothing."""
    conn.execute(delete(table))
    audit.note(conn, "announcement.ended", act.by, "", act)


class Announcements(Repository):
    """What is announced."""

    async def current(self, now: datetime) -> Announcement | None:
        """What is announced now; None: nothing."""
        return await self._database.read(partial(current, now=now))

    async def announce(self, new: Announcement, act: Act) -> None:
        """Announce this in place of what was announced."""
        await self._writer.run(partial(announce, new=new, act=act))

    async def end(self, act: Act) -> None:
        """Announce nothing."""
        await self._writer.run(partial(end, act=act))
