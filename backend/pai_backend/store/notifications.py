"""Notifications as users add, see and remove them; ``noticing`` has what is on its way."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from pydantic import BaseModel
from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from pai_backend.model.errors import Forbidden, NoSuchNotification
from pai_backend.model.notification import Channel, News
from pai_backend.model.text import Text
from pai_backend.store import audit
from pai_backend.store.cipher import Cipher
from pai_backend.store.grants import Act
from pai_backend.store.people_tables import noticed, notices
from pai_backend.store.people_tables import notifications as table
from pai_backend.store.repository import Repository
from pai_backend.store.rows import AnyRow
from pai_backend.store.tables import events

MOST = 20
"""Notifications that one user may have."""
MOST_TESTS = 5
"""Tests of one notification that wait at the same time."""

_ID = table.c.id == bindparam("id_")
_OF_USER = select(table).where(table.c.username == bindparam("user_")).order_by(table.c.created_at, table.c.id)
_ONE = select(table).where(_ID, table.c.username == bindparam("user_"))
_COUNT = select(func.count()).select_from(table)
_MADE_BY = select(table.c.id, table.c.username).where(table.c.made_by == bindparam("made_by_"))
_WAITING = (
    select(notices.c.notification, func.count())
    .join(table, table.c.id == notices.c.notification)
    .where(table.c.username == bindparam("user_"))
    .group_by(notices.c.notification)
)
_NEWEST = select(func.coalesce(func.max(events.c.position), 0))
_TESTS = select(func.coalesce(func.max(notices.c.seq), 0), func.count()).where(
    notices.c.notification == bindparam("id_"), notices.c.job == ""
)


class DeliveryTarget(BaseModel):
    """Where messages go: a mail address or a URL, and the secret that they are signed with. Stored sealed."""

    to: str
    secret: str = ""


@dataclass(frozen=True)
class Notification:
    """How one user is told. ``place`` is where it leads, without anything secret."""

    id: str
    user: str
    channel: Channel
    place: str
    news: frozenset[News]
    waited_s: int
    created_at: datetime
    made_by: str = ""
    """Digest of the application token that made it."""
    tried_at: datetime | None = None
    """When a message was tried last."""
    sent_at: datetime | None = None
    """When a message arrived last."""
    trouble: str = ""
    """Why the last message did not arrive."""
    lost: int = 0
    """Notices that were given up."""
    waiting: int = field(default=0, compare=False)
    """Notices that have not arrived yet."""


def new_id() -> str:
    """One that no notification has."""
    return secrets.token_hex(4)


def add(conn: Connection, new: Notification, target: DeliveryTarget, act: Act, cipher: Cipher) -> None:
    """Keep it. What happened before is not told. Raises Forbidden for one too many, Unauthorized."""
    audit.require_token(conn, new.made_by)
    mine = conn.execute(_COUNT.where(table.c.username == new.user)).scalar_one()
    if mine >= MOST:
        raise Forbidden(
            Text("You have {most} notifications, which is the limit.", most=MOST), hint=Text("Remove those not needed.")
        )
    if not conn.execute(_COUNT).scalar_one():  # nothing has moved the mark while there was none
        conn.execute(delete(noticed))
        conn.execute(insert(noticed), {"id": 1, "position": conn.execute(_NEWEST).scalar_one()})
    sealed = cipher.sealed(target.model_dump_json().encode())
    values = {name: value for name, value in vars(new).items() if name not in ("user", "waiting")}
    values |= {"username": new.user, "channel": new.channel.value, "news": " ".join(sorted(new.news))}
    conn.execute(insert(table), {**values, "target": sealed.data, "sealed_by": sealed.by})
    audit.note(conn, "notification.added", new.user, new.id, act, detail=f"{new.channel.value}: {new.place}")


def remove(conn: Connection, user: str, id_: str, act: Act) -> None:
    """Remove it with what is on its way. Raises NoSuchNotification."""
    _require(conn, user, id_)
    conn.execute(delete(notices).where(notices.c.notification == id_))
    conn.execute(delete(table).where(table.c.id == id_))
    audit.note(conn, "notification.removed", user, id_, act)


def test(conn: Connection, user: str, id_: str, text: str, at: datetime) -> None:
    """Have a message sent that says nothing of a job, and what waits tried again. Raises NoSuchNotification."""
    _require(conn, user, id_)
    conn.execute(update(notices).where(notices.c.notification == id_).values(due=at))
    last, waiting = conn.execute(_TESTS, {"id_": id_}).one()
    if waiting >= MOST_TESTS:
        return
    values = {"notification": id_, "job": "", "seq": last + 1, "at": at, "due": at, "news": News.TEST.value}
    conn.execute(insert(notices), {**values, "name": "", "text": text, "message": "", "tries": 0})


def forget_user(conn: Connection, user: str, act: Act) -> None:
    """Remove all that a user has."""
    for row in conn.execute(_OF_USER, {"user_": user}).all():
        remove(conn, user, row.id, act)


def end_of_token(conn: Connection, digest: str, act: Act) -> None:
    """Remove what an application token has made."""
    for row in conn.execute(_MADE_BY, {"made_by_": digest}).all():
        remove(conn, row.username, row.id, act)


def _require(conn: Connection, user: str, id_: str) -> None:
    if conn.execute(_ONE, {"id_": id_, "user_": user}).one_or_none() is None:
        raise NoSuchNotification(
            Text("You have no notification {id}.", id=repr(id_[:100])), hint=Text("`pai notify list` shows yours.")
        )


def read(row: AnyRow, waiting: int = 0) -> Notification:
    """One from its row."""
    return Notification(
        row.id,
        row.username,
        Channel(row.channel),
        row.place,
        frozenset(map(News, row.news.split())),
        row.waited_s,
        row.created_at,
        row.made_by,
        row.tried_at,
        row.sent_at,
        row.trouble,
        row.lost,
        waiting,
    )


def _of_user(conn: Connection, user: str) -> list[Notification]:
    waiting = {row[0]: row[1] for row in conn.execute(_WAITING, {"user_": user})}
    return [read(row, waiting.get(row.id, 0)) for row in conn.execute(_OF_USER, {"user_": user})]


class Notifications(Repository):
    """How users want to be told."""

    async def add(self, new: Notification, target: DeliveryTarget, act: Act) -> None:
        """Keep it. What happened before is not told. Raises Forbidden for one too many, Unauthorized."""
        await self._ring.tried(
            lambda cipher: self._writer.run(
                partial(add, new=new, target=target, act=act, cipher=cipher), announce=False
            )
        )

    async def of_user(self, user: str) -> list[Notification]:
        """A user's, oldest first."""
        return await self._database.read(partial(_of_user, user=user))

    async def remove(self, user: str, id_: str, act: Act) -> None:
        """Remove it with what is on its way. Raises NoSuchNotification."""
        await self._writer.run(partial(remove, user=user, id_=id_, act=act), announce=False)

    async def test(self, user: str, id_: str, text: str, at: datetime) -> None:
        """Have a message sent that says nothing of a job, and what waits tried again. Raises NoSuchNotification."""
        await self._writer.run(partial(test, user=user, id_=id_, text=text, at=at), announce=False)
