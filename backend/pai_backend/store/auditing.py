"""The audit as it is read, checked and cut; ``audit`` has how it is written."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from sqlalchemy import ColumnElement, Connection, bindparam, delete, func, or_, select

from pai_backend.model.audit import AuditEvent, ChainLink
from pai_backend.model.ids import JobUid
from pai_backend.store import lease
from pai_backend.store.audit import HEAD, LINK, ROOT, add, link, note, set_link
from pai_backend.store.grants import MOST_LISTED, Act
from pai_backend.store.people_tables import audit_events as table
from pai_backend.store.repository import Repository
from pai_backend.store.rows import AnyRow

REMEMBERED = ("user.removed", "job-key.taken")
"""Types of events that are read for more than to be shown: they stay when the chain is cut."""

_KEPT_SINCE = select(func.min(table.c.position)).where(
    table.c.at >= bindparam("since_", type_=table.c.at.type), table.c.position > bindparam("after_")
)
_AT = select(table.c.hash).where(table.c.position == bindparam("position_"))
_CUT = delete(table).where(table.c.position <= bindparam("position_"), table.c.type.not_in(REMEMBERED))


@dataclass(frozen=True)
class AuditFilter:
    """Which events; None and empty mean no restriction.

    ``seen_by``: only what concerns this user or was done by them. ``types`` may end with ``.*``. Of ``before`` and
    ``after``, positions both, ``after`` gives the oldest first, all else the newest.
    """

    seen_by: str | None = None
    types: tuple[str, ...] = ()
    user: str = ""
    by: str = ""
    subject: str = ""
    job: JobUid | None = None
    result: str = ""
    since: datetime | None = None
    until: datetime | None = None
    before: int | None = None
    after: int | None = None
    limit: int = MOST_LISTED


def page(conn: Connection, which: AuditFilter) -> list[AuditEvent]:
    """Events of a filter, ``limit`` at most."""
    order = table.c.position.asc() if which.after is not None else table.c.position.desc()
    wanted = select(table).where(*_conditions(which)).order_by(order).limit(which.limit)
    return [_event(row) for row in conn.execute(wanted)]


def _conditions(which: AuditFilter) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if which.seen_by is not None:
        found.append(or_(table.c.username == which.seen_by, table.c.by_user == which.seen_by))
    if which.types:
        exact = [each for each in which.types if not each.endswith(".*")]
        begun = [table.c.type.startswith(each[:-1], autoescape=True) for each in which.types if each.endswith(".*")]
        found.append(or_(table.c.type.in_(exact), *begun))
    columns = {"username": which.user, "by_user": which.by, "subject": which.subject, "result": which.result}
    found += [table.c[name] == value for name, value in columns.items() if value]
    if which.job is not None:
        found.append(table.c.job == which.job)
    if which.since is not None:
        found.append(table.c.at >= which.since)
    if which.until is not None:
        found.append(table.c.at < which.until)
    if which.before is not None:
        found.append(table.c.position < which.before)
    if which.after is not None:
        found.append(table.c.position > which.after)
    return found


@dataclass(frozen=True)
class Ends:
    """Where the chain begins and ends, and the sealed copy of its end; None before the first event."""

    root: ChainLink
    head: ChainLink
    seal: bytes | None


def ends(conn: Connection) -> Ends:
    """As they are now."""
    row = conn.execute(LINK, {"name_": HEAD}).one_or_none()
    seal = None if row is None or row.seal is None else bytes(row.seal)
    return Ends(link(conn, ROOT), link(conn, HEAD), seal)


def cut(conn: Connection, before: datetime, act: Act, sent_to: Collection[str] = ()) -> int:
    """Forget the events until the first that is not older; the chain begins after them. Returns how many links it lost.

    Those of the types ``REMEMBERED`` stay, outside of the chain. All goes that far only as it was sent to these sinks.
    """
    root, head = link(conn, ROOT), link(conn, HEAD)
    kept = conn.execute(_KEPT_SINCE, {"since_": before, "after_": root.position}).scalar_one_or_none()
    last = min([head.position if kept is None else kept - 1, *(link(conn, name).position for name in sent_to)])
    if last <= root.position:
        return 0
    digest = conn.execute(_AT, {"position_": last}).scalar_one()
    conn.execute(_CUT, {"position_": last})
    set_link(conn, ROOT, ChainLink(last, digest))
    note(conn, "audit.cut", act.by, str(last), act, detail=f"{last - root.position} events")
    return last - root.position


def _unsent(conn: Connection, sink: str, limit: int) -> list[AuditEvent]:
    after = max(link(conn, sink).position, link(conn, ROOT).position)
    return page(conn, AuditFilter(after=after, limit=limit))


def _event(row: AnyRow) -> AuditEvent:
    return AuditEvent(
        type=row.type,
        at=row.at,
        user=row.username,
        by=row.by_user,
        source=row.source,
        subject=row.subject,
        job=None if row.job is None else JobUid(row.job),
        detail=row.detail,
        token=row.token,
        request=row.request,
        result=row.result,
        position=row.position,
        hash=row.hash,
    )


class Audit(Repository):
    """The audit."""

    async def page(self, which: AuditFilter) -> list[AuditEvent]:
        """Events of a filter, ``limit`` at most."""
        return await self._database.read(partial(page, which=which))

    async def add(self, event: AuditEvent) -> None:
        """Write an event of something that changes nothing in the store. Raises Unavailable."""
        await self._writer.run(partial(add, event=event), announce=False)

    async def ends(self) -> tuple[ChainLink, ChainLink, ChainLink | None]:
        """Root and head of the chain, and the end that was sealed last; None where nothing is, or no key opens it.

        The sealed one is what this backend wrote, whatever was done to the tables: its event must have that hash.
        """
        found = await self._database.read(ends)
        if found.seal is None:
            return found.root, found.head, None
        position, _, digest = (await self._ring.open(found.seal)).decode().partition(" ")
        return found.root, found.head, ChainLink(int(position), digest)

    async def cut(self, before: datetime, act: Act, sent_to: Collection[str] = ()) -> int:
        """Forget what is older than that; see :func:`cut`."""
        return await self._writer.run(partial(cut, before=before, act=act, sent_to=sent_to), announce=False)

    async def unsent(self, sink: str, limit: int) -> list[AuditEvent]:
        """The oldest events that were not sent to a sink yet."""
        return await self._database.read(partial(_unsent, sink=sink, limit=limit))

    async def sent(self, sink: str, last: AuditEvent, epoch: int) -> None:
        """Everything up to this event was sent to a sink. Raises Fenced."""

        def change(conn: Connection) -> None:
            lease.require(conn, epoch)
            set_link(conn, sink, ChainLink(last.position, last.hash))

        await self._writer.run(change, announce=False)
