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
from pai_backend.model.text import NO_TEXT, Text, in_sentences

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

    @property
    def text(self) -> Text:
        """Whose use counts, in words."""
        subject = Text("user {user}", user=self.user) if self.user else Text("group {group}", group=self.group)
        cluster = Text("virtual cluster {vc}", vc=self.virtual_cluster)
        if not (self.user or self.group):
            return cluster if self.virtual_cluster else NO_TEXT
        return Text("{subject} in the {cluster}", subject=subject, cluster=cluster) if self.virtual_cluster else subject

    def __str__(self) -> str:
        return self.text


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
    return NO_TEXT


HELD = "budget used up"
"""How the reason of a job begins that a budget holds up."""


def used_up_text(claim: Claim) -> str:
    """Why no job that the budget concerns starts, and what would help."""
    budget, end = claim.budget, claim.window.end
    vc = budget.scope.virtual_cluster
    who = Text("an administrator or a manager of {vc}", vc=vc) if vc else Text("an administrator")
    if end is None:
        return Text(
            "budget used up: the {budget} is {amount}, and all of it is used; jobs start again when {who} raises it",
            budget=name(claim),
            amount=_amount(claim),
            who=who,
        )
    return Text(
        "budget used up: the {budget} is {amount}, and all of it is used; it begins again on {day} (UTC), or when "
        "{who} raises it",
        budget=name(claim),
        amount=_amount(claim),
        day=f"{end:%Y-%m-%d}",
        who=who,
    )


def near_text(each: BudgetUse) -> str:
    """How much is used of a budget that is near its end, or used up."""
    budget, end = each.claim.budget, each.claim.window.end
    used = rounded_down(each.used) if budget.resource is Resource.MONEY else hours_text(each.used)
    said = Text(
        "{used} of {amount} of the {budget} are used.",
        used=used,
        amount=_amount(each.claim),
        budget=name(each.claim),
    )
    if each.level is not Level.USED_UP:
        then = Text("When all are used, jobs wait; running jobs go on.")
    elif end is None:
        then = Text("No other job starts, unless the budget is raised; running jobs go on.")
    else:
        then = Text(
            "No other job starts before {day} (UTC), unless the budget is raised; running jobs go on.",
            day=f"{end:%Y-%m-%d}",
        )
    return in_sentences([said, then])


def name(claim: Claim) -> str:
    """The budget in words, without its amount."""
    budget, begin = claim.budget, claim.window.begin
    if budget.per is Per.TOTAL:
        return Text("budget of the {whose} since {day}", whose=budget.scope.text, day=f"{begin:%Y-%m-%d}")
    month = Text("{month} {year}", month=_MONTHS[begin.month - 1], year=begin.year)
    return Text("budget of the {whose} for {month}", whose=budget.scope.text, month=month)


def _amount(claim: Claim) -> Text:
    budget = claim.budget
    if budget.resource is Resource.MONEY:
        return Text("{amount} {currency}", amount=rounded_down(budget.limit), currency=claim.tariff.currency)
    hours = hours_text(budget.limit)
    return (
        Text("{hours} GPU hours", hours=hours)
        if budget.resource is Resource.GPU
        else Text("{hours} CPU hours", hours=hours)
    )


_MONTHS = (
    Text("January"),
    Text("February"),
    Text("March"),
    Text("April"),
    Text("May"),
    Text("June"),
    Text("July"),
    Text("August"),
    Text("September"),
    Text("October"),
    Text("November"),
    Text("December"),
)
