"""Budgets on the wire."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, Self

from pydantic import AwareDatetime, Field, model_validator

from pai_backend.api.price_wire import Amount
from pai_backend.api.queries import Body
from pai_backend.api.wire import Camel
from pai_backend.model.budget import WARN_PERCENT, Per, Resource

MOST = 100_000_000
"""Hours, or units of the currency: far beyond what a cluster has, and exact in microseconds and millionths."""


class NewBudget(Body):
    """A budget to set, in place of one of the same user, group, virtual cluster, resource and period."""

    user: str | None = Field(default=None, max_length=64, description="Whose use counts; of everyone without one.")
    group: str | None = Field(default=None, max_length=255, description="Whose members' use counts together.")
    virtual_cluster: str | None = Field(default=None, max_length=255, description="Only use in this one counts.")
    resource: Resource = Field(default=Resource.GPU, description="`hours` of GPUs or CPUs, or an `amount` of money.")
    per: Per = Field(default=Per.MONTH, description="A calendar month of UTC, or all time since `since`.")
    hours: float | None = Field(default=None, ge=0, le=MOST, allow_inf_nan=False)
    amount: Amount | None = Field(default=None, le=MOST, description="With `money`, as a decimal number in a string.")
    warn_percent: int = Field(default=WARN_PERCENT, ge=1, le=100, description="From this share on users are warned.")
    since: AwareDatetime | None = Field(
        default=None, description="Of a budget in total; without one, when it was first set."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.user and self.group:
            raise ValueError("a budget is of a user or of a group, not of both")
        if not (self.user or self.group or self.virtual_cluster):
            raise ValueError("a budget needs a user, a group or a virtual cluster")
        if (self.hours is None, self.amount is None) != (
            (True, False) if self.resource is Resource.MONEY else (False, True)
        ):
            raise ValueError("a budget of money needs an amount, and one of hours needs hours")
        if self.since is not None and self.per is Per.MONTH:
            raise ValueError("since is for a budget in total; a month begins by the calendar")
        return self


class BudgetWire(Camel):
    """A budget, and what of it is used."""

    id: str
    user: str | None
    group: str | None
    virtual_cluster: str | None
    resource: Resource
    per: Per
    hours: float | None = Field(description="Null for money.")
    used_hours: float | None = Field(description="As `/api/v2/usage` adds up for the same users, cluster and time.")
    amount: str | None = Field(description="Money, as a decimal number; null for hours.")
    used_amount: str | None = Field(description="The same of what is used, rounded down to millionths.")
    currency: str | None
    level: Literal["ok", "near", "used-up"] = Field(description="`near`: users are warned; `used-up`: jobs wait.")
    warn_percent: int
    begins: datetime = Field(description="From when on hours count now.")
    ends: datetime | None = Field(description="When the use begins again at zero; null: never.")
    changed_at: datetime
    changed_by: str
    may_change: bool = Field(description="Whether the caller may change it.")


class BudgetList(Camel):
    """Budgets."""

    data: tuple[BudgetWire, ...] = Field(description="Those that the caller may see.")
