"""Stays and prices of any kind, and what these must cost: counted in the plainest way, from one instant to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st
from sqlalchemy import Connection, delete, insert

from pai_backend.model.accounting import Stay
from pai_backend.model.ids import JobUid, TaskUid
from pai_backend.model.price import CPU, Price, Prices
from pai_backend.store.accounting import Change, note
from pai_backend.store.people_tables import prices as price_table
from pai_backend.store.tables import stays as stay_table

LATE = datetime(2026, 12, 31, 22, tzinfo=UTC)
"""Times are around the end of a year."""
KINDS = ("V100", "A100", "K80")
STAYS = st.lists(
    st.tuples(
        st.sampled_from(["alice", "bob", "carol"]),
        st.sampled_from(["default", "research"]),
        st.sampled_from(KINDS),
        st.integers(0, 8),  # GPUs
        st.integers(-3_000_000, 9_000),  # begins so many seconds around LATE
        st.one_of(st.none(), st.integers(1, 3_000_000)),  # and lasts so many; None: it goes on
    ),
    max_size=12,
)
PRICES = st.dictionaries(
    st.tuples(st.sampled_from([*KINDS[:2], CPU]), st.integers(-3_500_000, 30_000)),  # from when on, in seconds
    st.one_of(st.none(), st.integers(0, 3), st.integers(0, 10**12)),  # millionths; up to what one may set
    max_size=8,
)
GivenStay = tuple[str, str, str, int, int, int | None]
GivenPrices = dict[tuple[str, int], int | None]


@dataclass(frozen=True)
class Ledger:
    """What was drawn."""

    stays: Sequence[GivenStay]
    prices: GivenPrices

    def write(self, conn: Connection) -> None:
        """Make these the only stays and prices of the database."""
        conn.execute(delete(stay_table))
        conn.execute(delete(price_table))
        for number, (user, vc, kind, gpus, begins, lasts) in enumerate(self.stays):
            task, began = TaskUid(f"task-{number}"), LATE + timedelta(seconds=begins)
            job = JobUid(f"j{number:016d}")
            stay = Stay(task, job, user, vc, kind if gpus else "", gpus, 3, opportunistic=number % 2 == 0)
            note(conn, [Change(began, (), (stay,))])
            if lasts is not None:
                note(conn, [Change(began + timedelta(seconds=lasts), (task,), ())])
        for (kind, since), hourly in self.prices.items():
            row = {"kind": kind, "since": LATE + timedelta(seconds=since), "hourly": hourly, "currency": "EUR"}
            conn.execute(insert(price_table), {**row, "changed_at": LATE, "changed_by": "root"})

    def as_prices(self) -> Prices:
        """The prices as the model has them."""
        found: dict[str, tuple[Price, ...]] = {}
        for (kind, since), hourly in sorted(self.prices.items(), key=lambda item: item[0]):
            step = Price(kind, LATE + timedelta(seconds=since), hourly, LATE, "root")
            found[kind] = (*found.get(kind, ()), step)
        return Prices("EUR", found)

    def cost(self, begin: datetime, end: datetime, user: str, vc: str) -> int:
        """What the user's stays there cost between two instants of whole seconds, in millionths times microseconds."""
        first, last = (round((at - LATE).total_seconds()) for at in (begin, end))
        cuts = sorted({since for _, since in self.prices})
        total = 0
        for who, where, kind, gpus, begins, lasts in self.stays:
            if (who, where) != (user, vc):
                continue
            units, paid = (gpus, kind) if gpus else (3, CPU)
            since, until = max(begins, first), last if lasts is None else min(begins + lasts, last)
            ends = [cut for cut in cuts if since < cut < until]
            for one, other in zip([since, *ends], [*ends, until], strict=True):
                total += units * max(0, other - one) * 1_000_000 * self._price(paid, one)
        return total

    def _price(self, kind: str, at: int) -> int:
        held = [(since, hourly) for (of, since), hourly in self.prices.items() if of == kind and since <= at]
        return (max(held, key=lambda each: each[0])[1] or 0) if held else 0
