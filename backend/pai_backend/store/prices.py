"""Prices of GPUs and CPUs, each from a moment on; what was used before that moment keeps the price of its time."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from sqlalchemy import Connection, delete, func, insert, select, update

from pai_backend.model.errors import InvalidParameters
from pai_backend.model.price import CURRENCY, Price, Prices, exact
from pai_backend.model.text import Text
from pai_backend.store import audit
from pai_backend.store.grants import Act
from pai_backend.store.people_tables import prices as table
from pai_backend.store.repository import Repository

MOST = 1000
"""Prices there may be: all are looked at together."""


@dataclass(frozen=True)
class PriceChange:
    """What an hour costs from ``since`` on, until the next price; None: nothing, for good.

    ``currency``: the word for all prices from now on; empty: as before.
    """

    kind: str
    hourly: int | None
    since: datetime
    currency: str = ""


def all_prices(conn: Connection) -> Prices:
    """All of them."""
    found, currency = defaultdict[str, list[Price]](list), CURRENCY
    for row in conn.execute(select(table).order_by(table.c.kind, table.c.since)):
        found[row.kind].append(Price(row.kind, row.since, row.hourly, row.changed_at, row.changed_by))
        currency = row.currency
    return Prices(currency, {kind: tuple(steps) for kind, steps in found.items()})


def change(conn: Connection, new: PriceChange, act: Act) -> Prices:
    """Set a price, or end it with those that were to follow. Raises InvalidParameters for one too many."""
    currency = new.currency or all_prices(conn).currency
    of_kind = table.c.kind == new.kind
    follows = table.c.since >= new.since if new.hourly is None else table.c.since == new.since
    conn.execute(delete(table).where(of_kind, follows))
    has_one = conn.execute(select(table.c.kind).where(of_kind, table.c.since < new.since)).first() is not None
    if new.hourly is not None or has_one:
        if conn.execute(select(func.count()).select_from(table)).scalar_one() >= MOST:
            raise InvalidParameters(
                Text("There are {most} prices, which is the limit.", most=MOST),
                hint=Text("Remove those not needed."),
            )
        conn.execute(insert(table), _values(new, currency, act))
    conn.execute(update(table).where(table.c.currency != currency).values(currency=currency))
    said = f"from {new.since:%Y-%m-%dT%H:%M:%SZ} on"
    if new.hourly is None:
        audit.note(conn, "price.removed", act.by, new.kind, act, detail=said)
    else:
        audit.note(conn, "price.set", act.by, new.kind, act, detail=f"{exact(new.hourly)} {currency} an hour {said}")
    return all_prices(conn)


def _values(new: PriceChange, currency: str, act: Act) -> dict[str, object]:
    return {
        "kind": new.kind,
        "since": new.since,
        "hourly": new.hourly,
        "currency": currency,
        "changed_at": act.at,
        "changed_by": act.by,
    }


class PriceList(Repository):
    """Prices. What is set counts at once."""

    async def all(self) -> Prices:
        """All of them."""
        return await self._database.read(all_prices)

    async def change(self, new: PriceChange, act: Act) -> Prices:
        """Set a price, or end it with those that were to follow; returns all. Raises InvalidParameters."""
        return await self._writer.run(partial(change, new=new, act=act))
