"""Reservations of GPUs, those of the last month included."""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection
from datetime import datetime, timedelta
from functools import partial

from sqlalchemy import Connection, delete, insert, select

from pai_backend.model.booking import Booking
from pai_backend.model.ids import JobUid
from pai_backend.store import audit, groups
from pai_backend.store.grants import Act
from pai_backend.store.repository import Repository
from pai_backend.store.rows import AnyRow
from pai_backend.store.tables import bookings as table

KEPT = timedelta(days=30)
"""For so long a reservation that is over stays in the list."""


def new_id() -> str:
    """One that no reservation has."""
    return secrets.token_hex(4)


class Bookings(Repository):
    """Reservations. What is written holds at once."""

    async def all(self) -> tuple[Booking, ...]:
        """All of them, the earliest first; their members are not looked up."""
        return await self._database.read(all_bookings)

    async def add(self, new: Booking, beside: Collection[str], act: Act) -> bool:
        """Write one that fits beside those with these ids; False, writing nothing, when there are others now.

        Raises NoSuchGroup. Forgets those that have been over for :data:`KEPT`.
        """
        return await self._writer.run(partial(_add, new=new, beside=frozenset(beside), act=act))

    async def remove(self, id_: str, act: Act) -> bool:
        """Remove it; whether it was there."""
        return await self._writer.run(partial(_remove, id_=id_, act=act))


def all_bookings(conn: Connection) -> tuple[Booking, ...]:
    """All of them, the earliest first."""
    return tuple(_booking(row) for row in conn.execute(select(table).order_by(table.c.begins, table.c.id)))


def _add(conn: Connection, new: Booking, beside: frozenset[str], act: Act) -> bool:
    groups.require_known(conn, new.groups)
    if {each.id for each in all_bookings(conn)} != beside:
        return False
    conn.execute(delete(table).where(table.c.ends < act.at - KEPT))
    conn.execute(insert(table), _values(new, act))
    audit.note(conn, "reservation.made", act.by, new.vc, act, detail=_said(new))
    return True


def _remove(conn: Connection, id_: str, act: Act) -> bool:
    row = conn.execute(select(table).where(table.c.id == id_)).one_or_none()
    if row is None:
        return False
    conn.execute(delete(table).where(table.c.id == id_))
    audit.note(conn, "reservation.removed", act.by, row.virtual_cluster, act, detail=_said(_booking(row)))
    return True


def _values(new: Booking, act: Act) -> dict[str, object]:
    body = {
        "name": new.name,
        "gpus": new.gpus,
        "gpu_type": new.gpu_type,
        "one_node": new.one_node,
        "users": new.users,
        "groups": new.groups,
        "stops": sorted(new.stops),
    }
    return {
        "id": new.id,
        "virtual_cluster": new.vc,
        "begins": new.begins,
        "ends": new.ends,
        "body": json.dumps(body, ensure_ascii=False),
        "made_at": act.at,
        "made_by": act.by,
    }


def _booking(row: AnyRow) -> Booking:
    body = json.loads(row.body)
    return Booking(
        row.id,
        row.virtual_cluster,
        body["name"],
        body["gpus"],
        row.begins,
        row.ends,
        gpu_type=body["gpu_type"],
        one_node=body["one_node"],
        users=tuple(body["users"]),
        groups=tuple(body["groups"]),
        stops=frozenset(JobUid(uid) for uid in body["stops"]),
        made_at=row.made_at,
        made_by=row.made_by,
    )


def _said(booking: Booking) -> str:
    def moment(at: datetime) -> str:
        return f"{at:%Y-%m-%d %H:%M} UTC"

    kind = f" {booking.gpu_type}" if booking.gpu_type else ""
    where = " in one node" if booking.one_node else ""
    stops = f", stops {', '.join(sorted(booking.stops))}" if booking.stops else ""
    whom = f" ({booking.whom})" if booking.whom else ""
    span = f"{moment(booking.begins)} to {moment(booking.ends)}"
    return f"{booking.gpus}{kind} GPUs{where} for {booking.name}{whom}, {span}{stops}"
