"""Prices on the wire."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Annotated

from pydantic import AwareDatetime, BeforeValidator, Field, PlainSerializer

from pai_backend.api.queries import Body
from pai_backend.api.wire import Camel

MOST = 1_000_000
"""For an hour; a currency of which that is little has larger units."""


def _decimal(given: object) -> object:
    """A number of JSON as it was written: as a binary fraction it would have more places."""
    return str(given) if isinstance(given, bool | float) else given


Amount = Annotated[
    Decimal,
    BeforeValidator(_decimal, json_schema_input_type=str | float),
    PlainSerializer(str),
    Field(ge=0, decimal_places=6, allow_inf_nan=False),
]
"""Money: a decimal number with at most six places."""


class NewPrice(Body):
    """What an hour costs from a moment on."""

    type: str = Field(
        min_length=1,
        max_length=255,
        pattern=r"^[^\x00-\x1f]+$",
        description="A GPU type; or `cpu`, for each CPU of tasks without GPUs.",
    )
    hourly: Amount | None = Field(
        default=None, le=MOST, description="Null: it has no price from then on, and what was to follow is removed."
    )
    currency: str | None = Field(
        default=None,
        min_length=1,
        max_length=16,
        pattern=r"^[^\s\x00-\x1f,;]+$",
        description="The word for all prices from now on; no amount is converted. Without one, as before.",
    )
    since: AwareDatetime | None = Field(
        default=None, description="From when on; now, without one. What was used before keeps its price."
    )


class PriceWire(Camel):
    """A price, and when it holds."""

    type: str = Field(description="A GPU type, or `cpu`.")
    hourly: str | None = Field(description="For an hour, as a decimal number; null: it has no price from then on.")
    since: datetime
    until: datetime | None = Field(description="When the next one takes its place; null: never.")
    holds: bool = Field(description="Whether it holds now.")
    changed_at: datetime
    changed_by: str


class PriceListWire(Camel):
    """All prices."""

    currency: str
    data: tuple[PriceWire, ...] = Field(description="By type, and in the order of time.")
