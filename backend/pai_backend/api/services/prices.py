"""Prices: all users read them, administrators set them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from pai_backend.api.context import ApiContext
from pai_backend.api.price_wire import NewPrice, PriceListWire, PriceWire
from pai_backend.auth.users import User
from pai_backend.model.errors import Forbidden
from pai_backend.model.price import Price, Prices, exact, millionths
from pai_backend.model.text import Text
from pai_backend.store.grants import Act
from pai_backend.store.prices import PriceChange


class PriceService:
    """Prices. ``source`` is the address that the caller's request came from, for the audit."""

    def __init__(self, ctx: ApiContext, source: str = "") -> None:
        self._ctx, self._source = ctx, source

    async def prices(self) -> PriceListWire:
        """All of them."""
        return _shown(await self._ctx.store.prices.all(), self._ctx.clock())

    async def put(self, user: User, new: NewPrice) -> PriceListWire:
        """Set or end a price; returns all. Raises Forbidden, InvalidParameters."""
        if not user.admin or user.within:
            raise Forbidden(Text("Prices are set by administrators."), hint=Text("Ask an administrator."))
        act = Act(user.name, self._ctx.clock(), self._source)
        hourly = None if new.hourly is None else millionths(new.hourly)
        change = PriceChange(new.type, hourly, new.since or act.at, new.currency or "")
        kept = await self._ctx.store.prices.change(change, act)
        await self._ctx.budgets.uses(at_once=True)
        return _shown(kept, self._ctx.clock())


def _shown(prices: Prices, now: datetime) -> PriceListWire:
    rows = [row for kind in sorted(prices.of) for row in _rows(prices.of[kind], now)]
    return PriceListWire(currency=prices.currency, data=tuple(rows))


def _rows(steps: tuple[Price, ...], now: datetime) -> Iterator[PriceWire]:
    for step, until in zip(steps, (*(each.since for each in steps[1:]), None), strict=True):
        yield PriceWire(
            type=step.kind,
            hourly=None if step.hourly is None else exact(step.hourly),
            since=step.since,
            until=until,
            holds=step.since <= now and (until is None or now < until),
            changed_at=step.changed_at,
            changed_by=step.changed_by,
        )
