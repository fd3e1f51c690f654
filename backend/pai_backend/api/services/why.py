"""Why a job waits: asked of the controller through the store, and answered with what it said."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from pai_backend.api.context import ApiContext, CellRules
from pai_backend.api.services.jobs import JobService
from pai_backend.api.staleness import staleness_of
from pai_backend.api.wire import Why
from pai_backend.auth.users import User
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Job, Phase
from pai_backend.model.waiting import ChangeKind, Waiting
from pai_backend.scheduling.explain import LANGUAGES, render
from pai_backend.store.base import Explanation

FRESH = timedelta(seconds=2)
"""An answer of this age is given again, so that many who ask cost what one costs."""

PATIENCE_S = 3.0
"""How long an answer of the controller is waited for. Then the last one is given, with its time."""


class WhyService:
    """Asks and tells. Nothing is computed here: the scheduler's state is in the controller."""

    def __init__(self, ctx: ApiContext) -> None:
        self._ctx = ctx

    async def why(self, user: User, name: str) -> Why:
        """Why the job waits, as of now where the controller answers in time. Raises NoSuchJob."""
        job = await JobService(self._ctx).find(user, name)
        if not _waits(job):
            return _told(job, None, None, await staleness_of(job, self._ctx))
        known = await self._ctx.store.explanations.get(job.uid)
        if known is None or not self._is_fresh(known):
            known = await self._asked(job.uid)
        job = await self._ctx.store.jobs.get(job.uid)  # it may have started meanwhile
        if not _waits(job) or known is None or not known.body:
            return _told(job, None, known)
        return _told(job, for_user(Waiting.model_validate_json(known.body), user, self._ctx.cells), known)

    def _is_fresh(self, known: Explanation) -> bool:
        return not known.open and known.answered_at is not None and self._ctx.clock() - known.answered_at < FRESH

    async def _asked(self, uid: JobUid) -> Explanation | None:
        """The answer to the question asked now; the last one when the controller does not answer in time."""
        await self._ctx.store.explanations.ask(uid, self._ctx.clock())
        try:
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    seen = self._ctx.changes.number
                    found = await self._ctx.store.explanations.get(uid)
                    if found is not None and not found.open:
                        return found
                    await self._ctx.changes.wait(seen)
        except TimeoutError:
            return await self._ctx.store.explanations.get(uid)


def for_user(waiting: Waiting, user: User, rules: CellRules) -> Waiting:
    """Without virtual clusters that the user may not use; in words that do not name them either."""
    changes = tuple(
        change for change in waiting.changes if change.kind is not ChangeKind.VC or rules.granted(user, change.vc)
    )
    if changes == waiting.changes:
        return waiting
    kept = waiting.model_copy(update={"changes": changes})
    return kept.model_copy(update={"texts": {language: render(kept, language) for language in LANGUAGES}})


def _waits(job: Job) -> bool:
    """Whether some of its tasks have no place yet; others of an incremental job may run."""
    return not job.state.final and any(task.phase is Phase.QUEUED for task in job.tasks)


def _told(job: Job, waiting: Waiting | None, known: Explanation | None, doubt: str = "") -> Why:
    return Why(
        id=job.id,
        state=job.state,
        phase=job.phase,
        sentence=job.why,
        waiting=waiting,
        as_of=None if known is None else known.answered_at,
        current=known is None or not known.open,
        doubt=doubt,
    )
