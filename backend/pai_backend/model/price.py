"""Prices: what an hour of a GPU of each type costs, and of a CPU for tasks without GPUs, and from when on. Pure.

Amounts are whole millionths of the currency. A cost is a sum of ``units * microseconds * millionths an hour``, which is
whole too, so that costs of parts add up to that of the whole; it is divided, and rounded, only to be shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

MILLION = 1_000_000
HOUR_US = 3_600_000_000
CPU = "cpu"
"""Stands in place of a GPU type for the CPUs of tasks without GPUs; those of tasks with GPUs cost nothing."""
CURRENCY = "credits"
"""The currency as long as none was named."""
_US = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Price:
    """What an hour costs from a moment on, in millionths of the currency; None: it has no price then."""

    kind: str
    """A GPU type, or ``CPU``."""
    since: datetime
    hourly: int | None
    changed_at: datetime
    changed_by: str


@dataclass(frozen=True)
class Tariff:
    """The prices at one moment, by kind. A kind that has none is not in it."""

    currency: str = CURRENCY
    hourly: Mapping[str, int] = field(default_factory=dict)

    def may_cost(self, kind: str, gpus: int) -> bool:
        """Whether a task costs something, as far as it is known before it has a place. ``kind``: empty for any.

        A task with GPUs may, unless it asks for a type whose price is 0: a type may have several names.
        """
        return self.hourly.get(kind) != 0 if gpus else self.hourly.get(CPU, 0) > 0


@dataclass(frozen=True)
class Prices:
    """All prices that hold, held or will hold: of each kind in the order of time."""

    currency: str = CURRENCY
    of: Mapping[str, tuple[Price, ...]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether anything has, had or will have a price."""
        return any(self.of.values())

    def at(self, now: datetime) -> Tariff:
        """Those that hold at a moment."""
        held = {kind: [each for each in steps if each.since <= now] for kind, steps in self.of.items()}
        last = {kind: steps[-1].hourly for kind, steps in held.items() if steps}
        return Tariff(self.currency, {kind: hourly for kind, hourly in last.items() if hourly is not None})

    def cost(self, gpu_type: str, gpus: int, cpus: int, since: datetime, until: datetime) -> int:
        """What a task costs that holds these from ``since`` until ``until``: each moment at the price of its time."""
        units, kind = (gpus, gpu_type) if gpus else (cpus, CPU)
        held, end = 0, until
        for step in reversed(self.of.get(kind, ())):
            if step.since < end:
                held += (step.hourly or 0) * ((end - max(step.since, since)) // _US)
                end = step.since
            if step.since <= since:
                break
        return units * held


def millionths(amount: Decimal) -> int:
    """An amount in whole millionths."""
    return round(amount * MILLION)


def of_cost(cost: int) -> int:
    """A cost in whole millionths, rounded half up."""
    return (2 * cost + HOUR_US) // (2 * HOUR_US)


def exact(amount: int) -> str:
    """Millionths as a decimal number with at least two places: 2.50, 0.000694."""
    whole, rest = divmod(amount, MILLION)
    return f"{whole}.{f'{rest:06}'.rstrip('0'):0<2}"


def rounded_down(amount: int) -> str:
    """Millionths with two places for a reader, rounded down: what is not used up never reads as if it were."""
    return f"{amount // MILLION:,}.{amount % MILLION // 10_000:02}"
