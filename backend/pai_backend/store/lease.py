"""The controller's lease: one row, whose epoch grows with every new holder and fences the old one."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

from sqlalchemy import Connection, insert, select, update

from pai_backend.store.base import Fenced, Lease
from pai_backend.store.repository import Repository
from pai_backend.store.tables import controller_lease as table

_ID = 1
_ROW = select(table.c.epoch, table.c.holder, table.c.expires_at).where(table.c.id == _ID)
_UPDATE = update(table).where(table.c.id == _ID)
_INSERT = insert(table)


def current_epoch(conn: Connection) -> int:
    """The epoch that may write; 0 before the first controller."""
    row = conn.execute(_ROW).one_or_none()
    return 0 if row is None else int(row.epoch)


def latest(conn: Connection) -> Lease | None:
    """The lease as it stands."""
    row = conn.execute(_ROW).one_or_none()
    return None if row is None else Lease(epoch=row.epoch, expires_at=row.expires_at)


def acquire(conn: Connection, holder: str, ttl_s: float, now: datetime, *, force: bool) -> Lease | None:
    """A new epoch for ``holder``, or None while another's is unexpired and not forced."""
    row = conn.execute(_ROW).one_or_none()
    lease = Lease(epoch=1 if row is None else row.epoch + 1, expires_at=now + timedelta(seconds=ttl_s))
    values = {"epoch": lease.epoch, "holder": holder, "expires_at": lease.expires_at}
    if row is None:
        conn.execute(_INSERT, {"id": _ID, **values})
        return lease
    if row.holder != holder and row.expires_at > now and not force:
        return None
    conn.execute(_UPDATE, values)
    return lease


def require(conn: Connection, epoch: int) -> None:
    """Raises Fenced unless the controller's epoch is this one."""
    if (current := current_epoch(conn)) != epoch:
        raise Fenced(f"the controller's epoch is {current}, not {epoch}: another controller has taken over")


def renew(conn: Connection, epoch: int, ttl_s: float, now: datetime) -> Lease:
    """Prolong the lease of that epoch, even past its end unless another controller took over. Raises Fenced."""
    current = current_epoch(conn)
    if current != epoch or epoch == 0:
        raise Fenced(f"the controller's epoch is {current}, not {epoch}: another controller has taken over")
    lease = Lease(epoch=epoch, expires_at=now + timedelta(seconds=ttl_s))
    conn.execute(_UPDATE, {"expires_at": lease.expires_at})
    return lease


class Leadership(Repository):
    """Which process is the controller."""

    async def acquire(self, holder: str, ttl_s: float, now: datetime, *, force: bool = False) -> Lease | None:
        """Become the controller, or None while another's lease is unexpired. Each success has a new, higher epoch.

        ``force`` takes over an unexpired lease: for callers that hold an exclusive lock proving the other dead.
        """
        change = partial(acquire, holder=holder, ttl_s=ttl_s, now=now, force=force)
        return await self._writer.run(change, announce=False)

    async def renew(self, epoch: int, ttl_s: float, now: datetime) -> Lease:
        """Prolong. Raises Fenced when the epoch is no longer current."""
        return await self._writer.run(partial(renew, epoch=epoch, ttl_s=ttl_s, now=now), announce=False)

    async def latest(self) -> Lease | None:
        """The latest controller lease, expired or not; None before the first controller."""
        return await self._database.read(latest)
