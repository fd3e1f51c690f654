"""Would a document's job start now? Tried in copies of the cluster, without submitting it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from pai_backend.api.context import ApiContext
from pai_backend.api.services.documents import new_job
from pai_backend.api.services.submission import SubmissionService
from pai_backend.api.services.why import for_user
from pai_backend.api.snapshot import Snapshot
from pai_backend.api.wire import Trial
from pai_backend.auth.users import User
from pai_backend.lifecycle.step import to_place
from pai_backend.model.budget import Level, held_up
from pai_backend.model.errors import DocumentError, Forbidden, NoSuchJob, NoSuchStorage, NoVirtualCluster
from pai_backend.model.job import Job
from pai_backend.scheduling.jobs.change import Queued, rebuilt
from pai_backend.scheduling.jobs.placer import Placer
from pai_backend.scheduling.jobs.trial import Outcome, Trials


class TrialService:
    """Tries documents. Copies are kept with the state of the cluster that they are of."""

    def __init__(self, ctx: ApiContext) -> None:
        self._ctx = ctx

    async def trial(self, user: User, text: bytes, filename: str, secrets_of: str | None = None) -> Trial:
        """What would become of the document if the user submitted it now."""
        try:
            document, warnings = await SubmissionService(self._ctx).read_new(user, text, filename, secrets_of)
        except (DocumentError, NoVirtualCluster, Forbidden, NoSuchStorage, NoSuchJob):
            return Trial(outcome=None, waiting=None)
        now = self._ctx.clock()
        job = new_job(user.name, document.spec, warnings, now)
        snapshot = await self._ctx.snapshots.now()
        if not snapshot.nodes:  # not known yet: nothing can be said
            return Trial(outcome=None, waiting=None)
        async with snapshot.trying:
            if snapshot.trials is None:
                snapshot.trials = self._trials(snapshot)
            tried = await asyncio.to_thread(snapshot.trials.tried, job, now)
        announced = await self._ctx.store.announcements.current(now)
        if tried.outcome is Outcome.STARTS and announced is not None and announced.holds_starts(now):
            return Trial(outcome=Outcome.WAITS, waiting=None)  # the announcement says why
        used_up = (each.claim for each in await self._ctx.budgets.uses() if each.level is Level.USED_UP)
        held = held_up(used_up, user.name, document.spec)
        if held and tried.outcome is not Outcome.NEVER:
            return Trial(outcome=Outcome.WAITS, waiting=None, held=held)
        waiting = tried.waiting and for_user(tried.waiting, user, self._ctx.cells)
        return Trial(outcome=tried.outcome, waiting=waiting)

    def _trials(self, snapshot: Snapshot) -> Trials:
        rules, now = snapshot.rules, self._ctx.clock()
        healed = tuple(node.model_copy(update={"ready": True, "schedulable": True}) for node in snapshot.nodes)

        def copy(jobs: Sequence[Job]) -> Placer:
            return rebuilt(
                rules.config,
                snapshot.nodes if jobs is snapshot.jobs else healed,
                jobs,
                cells_for_all=rules.cells_for_all,
                rules=rules.node_rules,
                policy=rules.policy,
                bookings=rules.bookings if jobs is snapshot.jobs else (),
            )

        queued = [Queued(job, tasks) for job in snapshot.jobs if (tasks := to_place(job, now))]
        return Trials(copy, snapshot.jobs, queued)
