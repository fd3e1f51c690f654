"""What users are to be told: made of the event log behind a mark, sent message by message, kept until it has arrived.

Notices of some events and the mark behind these events are written in one transaction, so an event is noticed once
however often a controller ends. A message has an identity from its first try on and the same notices in each: a
receiver that gets it twice can tell.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby

from pydantic_core import from_json
from sqlalchemy import Connection, bindparam, delete, func, insert, or_, select, update

from pai_backend.model.notification import TELLING, JobNews, News, Notice, NotifiedEvent, Wish
from pai_backend.store import lease
from pai_backend.store.notifications import DeliveryTarget, Notification, read
from pai_backend.store.people_tables import noticed, notices, notifications, ssh_lockouts
from pai_backend.store.repository import Repository
from pai_backend.store.rows import AnyRow
from pai_backend.store.tables import events

MOST_EVENTS = 500
"""Events that are looked at together."""
MOST_NOTICES = 1000
"""Notices of one message."""
LIFE = timedelta(days=1)
"""Notices of a receiver that is away for longer are given up."""
_EARLIER = ("job.state", "job.retry")

_MARK = select(noticed.c.position)
_NEXT = (
    select(events)
    .where(events.c.position > bindparam("after"), events.c.type.in_(TELLING))
    .order_by(events.c.position)
    .limit(MOST_EVENTS)
)
_NEWEST = select(func.coalesce(func.max(events.c.position), 0))
_ANY = select(notifications.c.id).limit(1)
_WISHES = select(notifications).where(notifications.c.username.in_(bindparam("users", expanding=True)))
_LOCKED_OUT = select(ssh_lockouts.c.username).where(ssh_lockouts.c.username.in_(bindparam("users", expanding=True)))
_FIRST = select(events.c.job, events.c.at, events.c.payload).where(
    events.c.job.in_(bindparam("jobs", expanding=True)), events.c.seq == 1
)
_BEFORE = (
    select(events)
    .where(events.c.job == bindparam("job_"), events.c.seq < bindparam("seq_"), events.c.type.in_(_EARLIER))
    .order_by(events.c.seq)
)
_tried = notices.alias("tried")
_SENT_AT = bindparam("sent_before", type_=notifications.c.sent_at.type)
_DUE = (
    select(notices.c.notification)
    .join(notifications, notifications.c.id == notices.c.notification)
    .where(
        notices.c.due <= bindparam("now", type_=notices.c.due.type),
        or_(notifications.c.sent_at.is_(None), notifications.c.sent_at <= _SENT_AT),
        # A message that was tried before goes first, when its time has come.
        ~select(_tried.c.job)
        .where(
            _tried.c.notification == notices.c.notification,
            _tried.c.message != "",
            _tried.c.due > bindparam("now", type_=notices.c.due.type),
        )
        .exists(),
    )
    .group_by(notices.c.notification)
    .order_by(func.min(notices.c.due))
    .limit(bindparam("most"))
)
_OF_ONE = (
    select(notices)
    .where(notices.c.notification == bindparam("id_"))
    .order_by(notices.c.message.desc(), notices.c.at, notices.c.job, notices.c.seq)
    .limit(MOST_NOTICES)
)
_OF_MESSAGE = (notices.c.notification == bindparam("id_")) & (notices.c.message == bindparam("message_"))
_ONE = (
    (notices.c.notification == bindparam("id_"))
    & (notices.c.job == bindparam("job_"))
    & (notices.c.seq == bindparam("seq_"))
)


@dataclass(frozen=True)
class EventBatch:
    """Events that can be news, each with who wants to be told. ``after`` and ``until``: the marks around them."""

    found: Sequence[tuple[JobNews, Sequence[Wish]]]
    after: int
    until: int


@dataclass(frozen=True)
class NoticeMessage:
    """Notices that are told together. ``id`` is empty before the first try."""

    to: Notification
    target: DeliveryTarget
    id: str
    notices: Sequence[Notice]
    tries: int
    """How often it was tried without success."""


def batch(conn: Connection) -> EventBatch | None:
    """The next events; None when there are none, or there are no notifications."""
    mark = conn.execute(_MARK).scalar_one_or_none()
    newest = conn.execute(_NEWEST).scalar_one()
    if mark is None or newest <= mark or conn.execute(_ANY).first() is None:
        return None
    rows = conn.execute(_NEXT, {"after": mark}).all()
    until = rows[-1].position if len(rows) == MOST_EVENTS else newest
    wishes: defaultdict[str, list[Wish]] = defaultdict(list)
    for row in conn.execute(_WISHES, {"users": list({row.username for row in rows})}):
        each = read(row)
        wishes[each.user].append(Wish(each.id, each.news, each.waited_s))
    for user in conn.execute(_LOCKED_OUT, {"users": [*wishes]}).scalars():
        del wishes[user]
    wanted = [row for row in rows if row.username in wishes]
    first = {row.job: row for row in conn.execute(_FIRST, {"jobs": list({row.job for row in wanted})})}
    found = [(_news(conn, row, first[row.job]), wishes[row.username]) for row in wanted if row.job in first]
    return EventBatch(found, mark, until)


def _news(conn: Connection, row: AnyRow, first: AnyRow) -> JobNews:
    told, submitted = _told(row), from_json(first.payload)
    earlier: list[NotifiedEvent] = []
    if row.type == "job.state" and told.payload["state"] == "RUNNING":
        earlier = [_told(each) for each in conn.execute(_BEFORE, {"job_": row.job, "seq_": row.seq})]
    return JobNews(told, submitted["name"], first.at, tuple(submitted.get("notify", ())), earlier)


def _told(row: AnyRow) -> NotifiedEvent:
    return NotifiedEvent(row.job, row.seq, row.at, row.type, from_json(row.payload))


def tell(conn: Connection, after: int, until: int, made: Sequence[Notice], at: datetime, epoch: int) -> None:
    """Keep the notices of a batch and move the mark behind it. Raises Fenced.

    Nothing is kept where another has done it, or for a notification that was removed.
    """
    lease.require(conn, epoch)
    if conn.execute(update(noticed).where(noticed.c.position == after).values(position=until)).rowcount == 0:
        return
    wishes = {notice.wish for notice in made}
    living = set(conn.execute(select(notifications.c.id).where(notifications.c.id.in_(wishes))).scalars())
    rows = [_values(notice, at) for notice in made if notice.wish in living]
    if rows:
        conn.execute(insert(notices), rows)


def _values(notice: Notice, at: datetime) -> dict[str, object]:
    values: dict[str, object] = {**vars(notice), "news": notice.news.value}
    return {**values, "notification": values.pop("wish"), "message": "", "tries": 0, "due": at}


def due(conn: Connection, now: datetime, sent_before: datetime, most: int) -> list[tuple[AnyRow, list[AnyRow]]]:
    """Notifications with something to send, each with its next message: a tried one first, else all that waits."""
    ids = list(conn.execute(_DUE, {"now": now, "sent_before": sent_before, "most": most}).scalars())
    found: list[tuple[AnyRow, list[AnyRow]]] = []
    for row in conn.execute(select(notifications).where(notifications.c.id.in_(ids))).all():
        waiting = conn.execute(_OF_ONE, {"id_": row.id}).all()
        _, message = next(groupby(waiting, key=lambda notice: notice.message))
        found.append((row, list(message)))
    return found


def _begin(conn: Connection, id_: str, message: str, of: Iterable[Notice], epoch: int) -> None:
    lease.require(conn, epoch)
    rows = [{"id_": id_, "job_": each.job, "seq_": each.seq} for each in of]
    conn.execute(update(notices).where(_ONE).values(message=message), rows)


def _arrived(conn: Connection, id_: str, message: str, at: datetime, epoch: int) -> None:
    lease.require(conn, epoch)
    conn.execute(delete(notices).where(_OF_MESSAGE), {"id_": id_, "message_": message})
    conn.execute(update(notifications).where(notifications.c.id == id_).values(tried_at=at, sent_at=at, trouble=""))


@dataclass(frozen=True)
class DeliveryFailure:
    """A try that failed at ``at``; ``trouble``: why."""

    message: str
    at: datetime
    trouble: str


def _again(conn: Connection, id_: str, failed: DeliveryFailure, due_: datetime, epoch: int) -> None:
    lease.require(conn, epoch)
    later = update(notices).where(_OF_MESSAGE).values(due=due_, tries=notices.c.tries + 1)
    conn.execute(later, {"id_": id_, "message_": failed.message})
    _note(conn, id_, failed, 0)


def _given_up(conn: Connection, id_: str, failed: DeliveryFailure, epoch: int) -> None:
    lease.require(conn, epoch)
    with_it = or_(notices.c.message == failed.message, notices.c.at <= failed.at - LIFE)
    lost = conn.execute(delete(notices).where(notices.c.notification == id_, with_it)).rowcount
    _note(conn, id_, failed, lost)


def _note(conn: Connection, id_: str, failed: DeliveryFailure, lost: int) -> None:
    row = update(notifications).where(notifications.c.id == id_)
    conn.execute(row.values(tried_at=failed.at, trouble=failed.trouble, lost=notifications.c.lost + lost))


class Notices(Repository):
    """What is on its way to users. Calls with an ``epoch`` are the controller's, and raise Fenced for another's."""

    async def batch(self) -> EventBatch | None:
        """The next events; None when there are none, or there are no notifications."""
        return await self._database.read(batch)

    async def tell(self, of: EventBatch, made: Sequence[Notice], at: datetime, epoch: int) -> None:
        """Keep the notices of a batch and move the mark behind it, unless another has done it."""
        change = partial(tell, after=of.after, until=of.until, made=made, at=at, epoch=epoch)
        await self._writer.run(change, announce=False)

    async def due(self, now: datetime, sent_before: datetime, most: int) -> list[NoticeMessage]:
        """The next message of each notification to which none has been sent since ``sent_before``, ``most`` at most."""
        found = await self._database.read(partial(due, now=now, sent_before=sent_before, most=most))
        return [
            NoticeMessage(
                read(row),
                DeliveryTarget.model_validate_json(await self._text(row.target)),
                waiting[0].message,
                [_notice(each) for each in waiting],
                waiting[0].tries,
            )
            for row, waiting in found
        ]

    async def begin(self, message: NoticeMessage, id_: str, epoch: int) -> None:
        """Give a message its identity, before its first try."""
        change = partial(_begin, id_=message.to.id, message=id_, of=message.notices, epoch=epoch)
        await self._writer.run(change, announce=False)

    async def arrived(self, to: str, message: str, at: datetime, epoch: int) -> None:
        """The message of this identity has arrived."""
        await self._writer.run(partial(_arrived, id_=to, message=message, at=at, epoch=epoch), announce=False)

    async def again(self, to: str, failed: DeliveryFailure, due: datetime, epoch: int) -> None:
        """A message has not arrived and is tried again at ``due``."""
        await self._writer.run(partial(_again, id_=to, failed=failed, due_=due, epoch=epoch), announce=False)

    async def given_up(self, to: str, failed: DeliveryFailure, epoch: int) -> None:
        """A message has not arrived and is not tried again, nor are others as old as it may be."""
        await self._writer.run(partial(_given_up, id_=to, failed=failed, epoch=epoch), announce=False)


def _notice(row: AnyRow) -> Notice:
    return Notice(row.notification, row.job, row.seq, row.at, News(row.news), row.name, row.text)
