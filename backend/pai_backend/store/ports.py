"""Port leases: a port of a machine belongs to at most one task slot.

:class:`Leases` is the part of the table that a group of saves is about. It is changed in memory, each
save on top of the one before, and the difference is written once at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from sqlalchemy import Connection, bindparam, delete, insert, select

from pai_backend.model.ids import PortLease
from pai_backend.store.base import PortTaken
from pai_backend.store.repository import Repository
from pai_backend.store.tables import port_leases as table

V = TypeVar("V")

Place = tuple[str, int]
"""Machine and port."""

_ALL = select(table.c.machine, table.c.port, table.c.owner)
_BY_PLACE = _ALL.where(table.c.machine == bindparam("machine_"), table.c.port.in_(bindparam("ports", expanding=True)))
_BY_OWNER = _ALL.where(table.c.owner.in_(bindparam("owners", expanding=True)))
_INSERT = insert(table)
_DELETE = delete(table).where(table.c.machine == bindparam("machine_"), table.c.port == bindparam("port_"))

_PORTION = 5000
"""Values in one IN list; SQLite takes 32766 parameters, PostgreSQL 32767."""


class Leases:
    """Leases of the places and owners that a group of saves names."""

    def __init__(self, stored: Mapping[Place, str]) -> None:
        self._stored = dict(stored)
        self._now = dict(stored)

    def apply(self, release: Sequence[str], lease: Sequence[PortLease]) -> None:
        """Release the owners' ports, then lease. Raises PortTaken, and then has changed nothing."""
        gone = set(release)
        wanted: dict[Place, str] = {}
        for want in lease:
            place = (want.machine, want.port)
            owner = wanted.get(place, self._now.get(place, want.owner))
            if owner != want.owner and (place in wanted or owner not in gone):
                raise PortTaken(
                    f"port {want.port} of machine {want.machine} is leased to {owner}, so {want.owner} cannot have it"
                )
            wanted[place] = want.owner
        if gone:
            self._now = {place: owner for place, owner in self._now.items() if owner not in gone}
        self._now |= wanted

    def seize(self, release: Sequence[str], lease: Sequence[PortLease]) -> None:
        """Release the owners' ports, then lease, from any former owner: what is known to use a port has it."""
        gone = set(release)
        kept = {place: owner for place, owner in self._now.items() if owner not in gone}
        self._now = kept | {(want.machine, want.port): want.owner for want in lease}

    def write(self, conn: Connection) -> None:
        """Write what has changed."""
        gone = [place for place, owner in self._stored.items() if self._now.get(place) != owner]
        new = [(place, owner) for place, owner in self._now.items() if self._stored.get(place) != owner]
        if gone:
            conn.execute(_DELETE, [{"machine_": machine, "port_": port} for machine, port in gone])
        if new:
            conn.execute(
                _INSERT, [{"machine": machine, "port": port, "owner": owner} for (machine, port), owner in new]
            )


def load(conn: Connection, owners: Sequence[str], wanted: Sequence[PortLease]) -> Leases:
    """The leases of these owners and of these places; no query when there are none to ask about."""
    stored: dict[Place, str] = {}
    by_machine: dict[str, list[int]] = {}
    for lease in wanted:
        by_machine.setdefault(lease.machine, []).append(lease.port)
    for machine, ports in by_machine.items():
        for portion in _portions(ports):
            for row in conn.execute(_BY_PLACE, {"machine_": machine, "ports": portion}):
                stored[row.machine, row.port] = row.owner
    for names in _portions(owners):
        for row in conn.execute(_BY_OWNER, {"owners": names}):
            stored[row.machine, row.port] = row.owner
    return Leases(stored)


def all_leases(conn: Connection) -> list[PortLease]:
    """Every lease, by machine and port."""
    rows = conn.execute(_ALL.order_by(table.c.machine, table.c.port))
    return [PortLease(row.machine, row.port, row.owner) for row in rows]


def _portions(values: Sequence[V]) -> Iterator[Sequence[V]]:
    for start in range(0, len(values), _PORTION):
        yield values[start : start + _PORTION]


class PortLeases(Repository):
    """Ports that tasks have leased."""

    async def leases(self) -> list[PortLease]:
        """All leases."""
        return await self._database.read(all_leases)
