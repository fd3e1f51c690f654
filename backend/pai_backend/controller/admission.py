"""Which waiting jobs may start at all, whatever is free; who runs goes on until its next attempt.

The job of a user who may not use its virtual cluster waits: that was asked when it was submitted, but a grant may end.
So does one that the rules of its virtual cluster no longer allow, and one that a used-up budget concerns.
In a maintenance all jobs wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from pai_backend.controller.budgets import BudgetLook
from pai_backend.model import budget
from pai_backend.model.account import Account, Directory, is_granted
from pai_backend.model.booking import Booking, in_force
from pai_backend.model.budget import BudgetUse, Claim, Level
from pai_backend.model.job import Job
from pai_backend.model.text import NO_TEXT, Text, refused
from pai_backend.model.vc_rules import KeptRules, breaches
from pai_backend.store.announcements import Announcement

if TYPE_CHECKING:
    from pai_backend.store.sql import Store

LOOK_S = 5.0
"""All this is looked at at least so often: a maintenance begins and ends by the clock."""
_MAINTENANCE = "maintenance: no job starts"
_BREACH = "not allowed any longer"
"""How the reason of a job begins that the rules of its virtual cluster do not allow."""
_SHOWN = 200
"""Characters of an announcement in a reason."""
REST_S = 1.0
"""And at most this often: what changes is live within two seconds, and a busy database is not asked all the time."""


@dataclass(frozen=True)
class Admission:
    """Who may start, as of one moment.

    ``settled``: what the settings grant, by user, which nothing else changes. ``maintenance``: the announcement because
    of which no job starts. ``rules``: those of virtual clusters. ``used_up``: budgets of which nothing is left.
    """

    maintenance: Announcement | None = None
    directory: Directory = field(default_factory=Directory)
    admins: frozenset[str] = frozenset()
    settled: Mapping[str, Collection[str]] = field(default_factory=dict)
    rules: Mapping[str, KeptRules] = field(default_factory=dict)
    used_up: tuple[Claim, ...] = ()
    bookings: tuple[Booking, ...] = ()
    """Reservations that are not over, with their members."""
    _known: dict[tuple[str, str], bool] = field(default_factory=dict, compare=False, repr=False)

    def refusal(self, job: Job) -> str:
        """Why a job may not start; empty when it may."""
        if self.maintenance is not None:
            return _maintained(self.maintenance)
        user, vc = job.user, job.spec.virtual_cluster
        if (user, vc) not in self._known:
            account = self.directory.with_rights(Account(user, user in self.admins))
            self._known[user, vc] = is_granted(vc, account, self.settled)
        if not self._known[user, vc]:
            return _refusal(job)
        return self._breach(job) or budget.held_up(self.used_up, user, job.spec)

    def _breach(self, job: Job) -> str:
        """What the rules of its virtual cluster do not allow; empty: nothing."""
        kept = self.rules.get(job.spec.virtual_cluster)
        found = breaches(job.spec, kept.rules) if kept is not None else ()
        if not found:
            return NO_TEXT
        return Text("not allowed any longer: {why}", why=refused(found[0].message, found[0].hint))


def is_refusal(job: Job) -> bool:
    """Whether a job was told to wait for this, and not for a place."""
    return job.why == _refusal(job) or job.why.startswith((_MAINTENANCE, _BREACH, budget.HELD))


def _maintained(why: Announcement) -> str:
    said = " ".join(why.text.split())[:_SHOWN]
    if why.until is None:
        return Text("maintenance: no job starts until {user} ends it: {text}", user=why.by, text=said)
    return Text("maintenance: no job starts until {time} UTC: {text}", time=f"{why.until:%Y-%m-%d %H:%M}", text=said)


def _refusal(job: Job) -> str:
    """The sentence for a job whose user may not use its virtual cluster."""
    vc = job.spec.virtual_cluster
    return Text(
        "{user} may not use the virtual cluster {vc} any more; it starts once an administrator or a manager of {vc} "
        "has granted that again",
        user=job.user,
        vc=vc,
    )


class AdmissionWatch:
    """Who may start during one tenure."""

    def __init__(self, store: Store, settled: Mapping[str, Collection[str]], clock: Callable[[], datetime]) -> None:
        self._store, self._clock = store, clock
        self._settled = settled
        self._budgets = BudgetLook(store)
        self._told = Admission(settled=settled)

    @property
    def budgets(self) -> Sequence[BudgetUse]:
        """What of each budget was used at the last look."""
        return self._budgets.uses

    async def begin(self) -> Admission:
        """As it is now."""
        directory = await self._store.groups.directory()
        admins = await self._store.grants.all_admins()
        now = self._clock()
        announced = await self._store.announcements.current(now)
        maintenance = announced if announced is not None and announced.holds_starts(now) else None
        rules = await self._store.vc_rules.all()
        budgets = await self._budgets.look(now, (directory.groups, admins))
        used_up = tuple(each.claim for each in budgets if each.level is Level.USED_UP)
        bookings = in_force(await self._store.bookings.all(), directory, now)
        self._told = Admission(
            maintenance, replace(directory, users=()), admins, self._settled, rules, used_up, bookings
        )
        return self._told

    async def watch(self, tell: Callable[[Admission], None]) -> None:
        """Tell it whenever it is another than before, for ever."""
        mark = -1
        while True:
            mark = await self._store.changes.wait(mark, LOOK_S)
            before = self._told
            if await self.begin() != before:
                tell(self._told)
            await asyncio.sleep(REST_S)
