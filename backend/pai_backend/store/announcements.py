"""What administrators announce to all users: one text at a time, until it ends."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import partial

from sqlalchemy import Connection, delete, insert, select

from pai_backend.store import audit
from pai_backend.store.grants import Act
from pai_backend.store.repository import Repository
from pai_backend.store.tables import announcements as table

_CURRENT = select(table).order_by(table.c.at.desc(), table.c.by).limit(1)


@dataclass(frozen=True)
class Announcement:
    """A text for all users. ``until``: when it ends by itself; None: when an administrator ends it."""

    text: str
    until: datetime | None
    by: str
    at: datetime


def current(conn: Connection, now: datetime) -> Announcement | None:
    """What is announced now."""
    row = conn.execute(_CURRENT).one_or_none()
    if row is None or (row.until is not None and row.until <= now):
        return None
    return Announcement(row.text, row.until, row.by, row.at)


def announce(conn: Connection, text: str, until: datetime | None, act: Act) -> None:
    """Announce this in place of what was announced."""
    conn.execute(delete(table))
    conn.execute(insert(table), {"text": text, "until": until, "by": act.by, "at": act.at})
    audit.note(conn, "announcement.made", act.by, "", act, detail=text)


def end(conn: Connection, act: Act) -> None:
    """Announce nothing."""
    conn.execute(delete(table))
    audit.note(conn, "announcement.ended", act.by, "", act)


class Announcements(Repository):
    """What is announced."""

    async def current(self, now: datetime) -> Announcement | None:
        """What is announced now; None: nothing."""
        return await self._database.read(partial(current, now=now))

    async def announce(self, text: str, until: datetime | None, act: Act) -> None:
        """Announce this in place of what was announced."""
        await self._writer.run(partial(announce, text=text, until=until, act=act))

    async def end(self, act: Act) -> None:
        """Announce nothing."""
        await self._writer.run(partial(end, act=act))
