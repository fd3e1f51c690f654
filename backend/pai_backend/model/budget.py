"""Budgets: GPU hours, CPU hours or money that a user, a group or a virtual cluster may use, and what is used. Pure.

Hours and costs are those of ``accounting``, so that a budget's use equals what ``pai usage`` adds up for the same
users, virtual cluster and time. Opportunistic jobs count like others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import IntEnum, StrEnum
from typing import Literal

from pai_backend.model.accounting import HOUR_US, Total
from pai_backend.model.price import Tariff, rounded_down
from pai_backend.model.spec import JobSpec, TaskRole

WARN_PERCENT = 80
"""From this share on its users are warned, unless the budget has another."""


class Resource(StrEnum):
    """What a budget counts: hours of GPUs, hours of CPUs, or what both cost."""

    GPU = "gpu"
    CPU = "cpu"
    MONEY = "money"


class Per(StrEnum):
    """For how long a budget is meant."""

    MONTH = "month"
    """A calendar month of UTC."""
    TOTAL = "total"
    """All time since the budget began."""


class Level(IntEnum):
    """How far a budget is used."""

    OK = 0
    NEAR = 1
    """Its users are warned."""
    USED_UP = 2
    """No job that it concerns starts."""

    @property
    def word(self) -> Literal["ok", "near", "used-up"]:
        """As it is written for users and programs."""
        return _WORDS[self]


_WORDS: dict[Level, Literal["ok", "near", "used-up"]] = {
    Level.OK: "ok",
    Level.NEAR: "near",
    Level.USED_UP: "used-up",
}


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose use counts: that of a user or of a group's members, everywhere or in one virtual cluster; or all of one.

    Empty: not limited by that. ``user`` and ``group`` are never given both.
    """

    user: str = ""
    group: str = ""
    virtual_cluster: str = ""

    def __str__(self) -> str:
        subject = f"user {self.user}" if self.user else f"group {self.group}" if self.group else ""
        cluster = f"virtual cluster {self.virtual_cluster}" if self.virtual_cluster else ""
        return f"{subject} in the {cluster}" if subject and cluster else subject or cluster


@dataclass(frozen=True, slots=True)
class Budget:
    """What may be used. ``since``: from when on use counts for a budget in total."""

    id: str
    scope: Scope
    resource: Resource
    per: Per
    limit: int
    """Microseconds of one GPU or CPU, or millionths of the currency; so is what is used."""
    warn_percent: int
    since: datetime
    changed_at: datetime
    changed_by: str


@dataclass(frozen=True, slots=True)
class Window:
    """The time that counts now. ``end``: when the use begins again at zero; None: never."""

    begin: datetime
    end: datetime | None


NO_TARIFF = Tariff()


@dataclass(frozen=True, slots=True)
class Claim:
    """A budget, the time that counts, and the users whose use counts; None: that of every user.

    ``tariff``: the prices that hold now.
    """

    budget: Budget
    window: Window
    users: frozenset[str] | None
    tariff: Tariff = NO_TARIFF

    def covers(self, user: str, virtual_cluster: str) -> bool:
        """Whether what this user uses in this virtual cluster counts."""
        wanted = self.budget.scope.virtual_cluster
        return wanted in ("", virtual_cluster) and (self.users is None or user in self.users)

    def concerns(self, user: str, spec: JobSpec) -> bool:
        """Whether a job of this user uses of the budget: one without GPUs uses no GPU hours, a free one no money."""
        return self.covers(user, spec.virtual_cluster) and any(self._counts(spec, role) for role in spec.task_roles)

    def _counts(self, spec: JobSpec, role: TaskRole) -> bool:
        match self.budget.resource:
            case Resource.CPU:
                return True
            case Resource.GPU:
                return role.resources.gpus > 0
            case Resource.MONEY:
                kind = "" if role.pinned_cell_id else role.sku_type or spec.gpu_type or ""
                return self.tariff.may_cost(kind, role.resources.gpus)


@dataclass(frozen=True, slots=True)
class BudgetUse:
    """What of a budget is used."""

    claim: Claim
    used: int

    @property
    def level(self) -> Level:
        """How far it is used."""
        budget = self.claim.budget
        if self.used >= budget.limit:
            return Level.USED_UP
        return Level.NEAR if self.used * 100 >= budget.limit * budget.warn_percent else Level.OK


def window(budget: Budget, now: datetime) -> Window:
    """The month of ``now``, or all since the budget began."""
    if budget.per is Per.TOTAL:
        return Window(budget.since, None)
    now = now.astimezone(UTC)
    begin = datetime(now.year, now.month, 1, tzinfo=UTC)
    year, month = divmod(now.year * 12 + now.month, 12)
    return Window(begin, datetime(year, month + 1, 1, tzinfo=UTC))


def use(claim: Claim, held: Mapping[tuple[str, str], Total]) -> BudgetUse:
    """What is used of it. ``held``: what was held in its window, by user and virtual cluster."""
    total = sum((each for (user, vc), each in held.items() if claim.covers(user, vc)), Total())
    match claim.budget.resource:
        case Resource.GPU:
            return BudgetUse(claim, total.gpu_us)
        case Resource.CPU:
            return BudgetUse(claim, total.cpu_us)
        case Resource.MONEY:
            return BudgetUse(claim, total.cost // HOUR_US)


def hours_us(hours: Decimal) -> int:
    """Hours in whole microseconds."""
    return round(hours * HOUR_US)


def hours_text(us: int) -> str:
    """Hours with at most one decimal, rounded down: a budget that is not used up never reads as if it were."""
    tenths = us * 10 // HOUR_US
    return f"{tenths // 10:,}" if tenths % 10 == 0 else f"{tenths // 10:,}.{tenths % 10}"


def held_up(claims: Iterable[Claim], user: str, spec: JobSpec) -> str:
    """Why a job does not start, by the first of these used-up budgets that concerns it; empty: none does."""
    for claim in claims:
        if claim.concerns(user, spec):
            return used_up_text(claim)
    return ""


HELD = "budget used up"
"""How the reason of a job begins that a budget holds up."""


def used_up_text(claim: Claim) -> str:
    """Why no job that the budget concerns starts, and what would help."""
    budget, end = claim.budget, claim.window.end
    vc = budget.scope.virtual_cluster
    who = f"an administrator or a manager of {vc}" if vc else "an administrator"
    again = f"it begins again on {end:%Y-%m-%d} (UTC), or when" if end is not None else "jobs start again when"
    return f"{HELD}: the {name(claim)} is {_amount(claim)}, and all of it is used; {again} {who} raises it"


def near_text(each: BudgetUse) -> str:
    """How much is used of a budget that is near its end, or used up."""
    budget, end = each.claim.budget, each.claim.window.end
    is_money = budget.resource is Resource.MONEY
    used = rounded_down(each.used) if is_money else hours_text(each.used)
    said = f"{used} of {_amount(each.claim)} of the {name(each.claim)} are used."
    if each.level is Level.USED_UP:
        then = f" before {end:%Y-%m-%d} (UTC)" if end is not None else ""
        return f"{said} No other job starts{then}, unless the budget is raised; running jobs go on."
    return f"{said} When all are used, jobs wait; running jobs go on."


def name(claim: Claim) -> str:
    """The budget in words, without its amount."""
    budget, begin = claim.budget, claim.window.begin
    when = f"for {begin:%B %Y}" if budget.per is Per.MONTH else f"since {begin:%Y-%m-%d}"
    return f"budget of the {budget.scope} {when}"


def _amount(claim: Claim) -> str:
    budget = claim.budget
    if budget.resource is Resource.MONEY:
        return f"{rounded_down(budget.limit)} {claim.tariff.currency}"
    return f"{hours_text(budget.limit)} {budget.resource.upper()} hours"
