"""How far budgets are used: looked at often enough to hold jobs up, and told to the users of running jobs.

Which budget concerns which job is decided in ``model.budget``; that a job waits for one, in ``admission``.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pai_backend.model.budget import BudgetUse, Level, Resource, near_text, window
from pai_backend.model.ids import JobUid
from pai_backend.store.base import NewEvent

if TYPE_CHECKING:
    from pai_backend.controller.reconciler import Reconciler
    from pai_backend.store.sql import Store

log = logging.getLogger(__name__)

FRESH = timedelta(seconds=10)
"""The ledger is added up again after so long, or after a change of a budget, a price or a membership."""
OLDEST = timedelta(seconds=45)
"""And at last after so long, where adding it up takes long."""
SHARE = 20
"""Of the time, at most one part in so many is spent on adding up."""
LOOK_S = 2.0
"""Between two looks at whom to warn."""


class BudgetLook:
    """What of each budget is used, as of the last look."""

    def __init__(self, store: Store, timer: Callable[[], float] = time.monotonic) -> None:
        self._store, self._timer = store, timer
        self._seen: object = None
        self._looked: datetime | None = None
        self._fresh = FRESH
        self.uses: Sequence[BudgetUse] = ()

    async def look(self, now: datetime, members: object) -> Sequence[BudgetUse]:
        """Look again where that is due. ``members``: anything that changes with the members of groups.

        Raises Unavailable.
        """
        budgets = await self._store.budgets.all()
        if not budgets:
            self._seen, self.uses = None, ()
            return ()
        is_paid = any(each.resource is Resource.MONEY for each in budgets)
        seen = budgets, members, await self._store.prices.all() if is_paid else None
        if seen == self._seen and self._is_fresh(now):
            return self.uses
        began = self._timer()
        self.uses = await self._store.budgets.uses(now)
        self._fresh = min(OLDEST, max(FRESH, timedelta(seconds=SHARE * (self._timer() - began))))
        self._seen, self._looked = seen, now
        return self.uses

    def _is_fresh(self, now: datetime) -> bool:
        """Whether the last look is young, of these months, and not of the future: a clock may be set back."""
        months = all(each.claim.window == window(each.claim.budget, now) for each in self.uses)
        return months and self._looked is not None and timedelta(0) <= now - self._looked < self._fresh


class BudgetKeeper:
    """Warns the users of budgets that are nearly used, or used up, during one tenure: each of them once by one job."""

    def __init__(self, store: Store, tenure: Reconciler, *, epoch: int, clock: Callable[[], datetime]) -> None:
        self._store, self._tenure, self._epoch, self._clock = store, tenure, epoch, clock
        self._told: set[tuple[str, datetime, datetime, Level]] = set()

    async def run(self) -> None:
        """Warn them, for ever. Raises Fenced when another controller has taken over, Unavailable without a store."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_S)

    async def look(self) -> None:
        """Look at all budgets once. Raises as :meth:`run`."""
        marks = {}
        for each in self._tenure.budgets:
            if each.level is Level.OK:
                continue
            budget = each.claim.budget
            mark = (budget.id, budget.changed_at, each.claim.window.begin, each.level)
            marks[mark] = each
        self._told &= marks.keys()
        for mark, each in marks.items():
            if mark not in self._told:
                await self._tell(each)
                self._told.add(mark)

    async def _tell(self, each: BudgetUse) -> None:
        text = near_text(each)
        new = NewEvent("job.budget", {"budget": each.claim.budget.id, "text": text})
        if await self._store.budgets.tell(each, self._jobs(each), new, self._clock(), self._epoch):
            log.info("budget %s: %s", each.claim.budget.id, text)

    def _jobs(self, each: BudgetUse) -> list[JobUid]:
        """Of each user that has jobs with a place, the oldest that the budget concerns."""
        found: dict[str, JobUid] = {}
        for job in sorted(self._tenure.jobs.values(), key=lambda job: (job.submitted_at, job.uid)):
            holds = any(task.holds_place for task in job.tasks)
            if holds and job.user not in found and each.claim.concerns(job.user, job.spec):
                found[job.user] = job.uid
        return list(found.values())
