"""The reconciler: makes jobs, cells and tasks agree, step by step.

Rules of this file: only :meth:`Tenure.decide` and what it awaits change ``_jobs``; a decision is written
before it is acted on, in one transaction guarded by the job's version and the lease's epoch; the engine
watch, the store watch and the carrier only put news into the inbox.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING

from pai_backend.controller.admission import Admission, AdmissionWatch, is_refusal
from pai_backend.controller.configuring import Configuring
from pai_backend.controller.effects import Carrier
from pai_backend.controller.figures import ClusterFigures
from pai_backend.controller.inbox import Batch, Configured, Inbox, by_job, cleaned, job_events
from pai_backend.controller.orphans import Orphans, is_unknown
from pai_backend.controller.plans import Planner
from pai_backend.controller.ports import PassResult, PassResults, Placing
from pai_backend.controller.seen_nodes import SeenNodes
from pai_backend.engine.base import Engine, TakesNotes, TaskPlan
from pai_backend.lifecycle.derive import next_wake
from pai_backend.lifecycle.effects import open_effects
from pai_backend.lifecycle.events import (
    Displaced,
    JobEvent,
    Look,
    Placed,
    PredecessorEnded,
    Preempted,
    TaskExited,
    TaskForgotten,
    TaskGone,
    Unreserved,
    Waiting,
)
from pai_backend.lifecycle.history import claims_told, events_between
from pai_backend.lifecycle.notes import stop_notes
from pai_backend.lifecycle.step import stepped, to_place
from pai_backend.lifecycle.table import IllegalTransition
from pai_backend.model.booking import Booking
from pai_backend.model.budget import BudgetUse
from pai_backend.model.ids import JobUid, TaskUid, job_of, slot_of
from pai_backend.model.job import Causer, Job, Phase, Task, TaskExit
from pai_backend.model.labels import NodeRule
from pai_backend.model.text import Text
from pai_backend.model.vc_rules import KeptRules
from pai_backend.scheduling.jobs.history import History
from pai_backend.scheduling.queue import Policy
from pai_backend.scheduling.queue.policy import with_rules
from pai_backend.store.base import Conflict, PortTaken

if TYPE_CHECKING:
    from pai_backend.store.sql import Store

log = logging.getLogger(__name__)

SAFETY_S = 5.0
"""The loop looks at intents and at ports held by foreign programs at least this often."""

TOGETHER = 64
"""How many decisions are written side by side; they can share a transaction."""


class Reconciler:
    """Decides during one tenure: a controller's time between getting the lease and losing it."""

    def __init__(
        self,
        store: Store,
        engine: Engine,
        placing: Placing,
        planner: Planner,
        configuring: Configuring,
        history: History,
        *,
        epoch: int,
        clock: Callable[[], datetime],
        grace_s: float,
        keep: timedelta,
        keep_orphans: timedelta | None = None,
        figures: ClusterFigures | None = None,
        grants: Mapping[str, Collection[str]] = MappingProxyType({}),
    ) -> None:
        """``grants``: the virtual clusters that the settings grant users."""
        self._figures = figures
        self._admitting = AdmissionWatch(store, grants, clock)
        self._store = store
        self._engine = engine
        self._placing = placing
        self._nodes = SeenNodes(placing.placer, clock)
        self._planner = planner
        self._configuring = configuring
        self._history = history
        self._newer: Configured | None = None  # a cluster configuration to go over to
        self._epoch = epoch
        self._clock = clock
        self._keep = keep
        self._inbox = Inbox()
        self._carrier = Carrier(
            engine, plan=self._plan, job_info=self._job_info, report=self._inbox.report, clock=clock, grace_s=grace_s
        )
        self._jobs: dict[JobUid, Job] = {}
        self._wakes: dict[JobUid, datetime] = {}  # when a job must be looked at though nothing happens
        self._fresh: set[JobUid] = set()  # whose waiting tasks, or whose turn, may be other ones
        self._successors: set[JobUid] = set()  # which wait for the end of the jobs that they replace
        self._unwritten: set[JobUid] = set()  # adopted from an intent that is still marked as unseen
        self._results = PassResults(placing, store)
        self._admission = Admission()
        self._of_settings = placing.placer.queue.policy
        self._look_again: datetime | None = None  # when cells have to be kept for a group, or ports be tried again
        self._seen: set[TaskUid] = set()
        self._orphans = Orphans(store, engine, planner.records, epoch=epoch, clock=clock, keep=keep_orphans)
        self._listed = False

    @property
    def jobs(self) -> Mapping[JobUid, Job]:
        """The jobs that are not done with, as they are stored. To be read only."""
        return self._jobs

    @property
    def policy(self) -> Policy:
        """The rules of the queue now: those of the settings, and of virtual clusters."""
        return self._placing.placer.queue.policy

    @property
    def vc_rules(self) -> Mapping[str, KeptRules]:
        """The rules of virtual clusters now."""
        return self._admission.rules

    @property
    def bookings(self) -> Sequence[Booking]:
        """The reservations that are not over."""
        return self._admission.bookings

    @property
    def budgets(self) -> Sequence[BudgetUse]:
        """What of each budget was used at the last look."""
        return self._admitting.budgets

    @property
    def knows_nodes(self) -> bool:
        """Whether the engine has listed its nodes and tasks."""
        return self._listed

    # ---- news ------------------------------------------------------------------------------------

    async def watch_engine(self) -> None:
        """Pass the engine's events to the loop, for ever."""
        async for event in self._engine.watch():
            self._inbox.engine(event)

    async def watch_store(self) -> None:
        """Wake the loop whenever anything was committed, for ever."""
        mark = -1
        while True:
            mark = await self._store.changes.wait(mark, SAFETY_S)
            self._inbox.store_changed()

    async def watch_configuration(self) -> None:
        """Pass newer cluster configurations to the loop, for ever."""
        await self._configuring.watch(self._inbox)

    async def watch_admission(self) -> None:
        """Pass on to the loop who may start, for ever."""
        await self._admitting.watch(self._inbox.admitted)

    async def aclose(self) -> None:
        """Stop carrying effects out; they stay open for the next tenure."""
        await self._carrier.aclose()

    # ---- the loop --------------------------------------------------------------------------------

    async def decide(self) -> None:
        """Recover what is stored, then decide on news and intents, for ever."""
        await self._recover()
        while True:
            await self.step(await self._inbox.take(self._seconds_to_next_wake()))

    async def step(self, batch: Batch) -> None:
        """Decide on what has come in: news first, then who is placed, then what is still to be written."""
        events = self._digest(batch)
        if batch.listed:
            # Before anything is decided or carried out: a restored database knows less than what runs.
            self._carrier.carry(tuple(await self._orphans.review()))
            for uid, lost in await self._unaccounted():
                events.setdefault(uid, []).append(lost)
            for known in self._jobs.values():
                self._carrier.carry(open_effects(known))
        if batch.store_changed and self._listed:
            self._carrier.carry(tuple(await self._orphans.ends()))
        if batch.store_changed:
            for job in await self._store.jobs.dirty():
                self._adopt_intent(job)
                events.setdefault(job.uid, []).append(Look())
        for uid in self._due():
            events.setdefault(uid, []).append(Look())
        await _in_chunks([self._hear(uid, news) for uid, news in events.items()])
        if self._listed:
            self._carrier.carry(tuple(await self._orphans.review()))
            await self._configure()
            await _in_chunks([self._advance(uid, [PredecessorEnded()]) for uid in self._freed_names()])
            await self._place()
            await _in_chunks([self._advance(uid, [Look()]) for uid in sorted(self._unwritten)])

    async def _recover(self) -> None:
        """Rebuild from the store: jobs, what they hold, their ports. Open effects wait for what the engine lists."""
        self._admit(await self._admitting.begin())
        self._placing.placer.ledger.set_leases(await self._store.ports.leases())
        jobs = await self._store.jobs.unfinished()
        self._placing.placer.recover(jobs)
        for job in jobs:
            self._remember(job)
            self._fresh.add(job.uid)

    def _digest(self, batch: Batch) -> dict[JobUid, list[JobEvent]]:
        """Take nodes over, note tasks of no job, and give what the news means to each job."""
        self._newer = batch.configured or self._newer
        if batch.admission is not None:
            self._admit(batch.admission)
            self._fresh.update(self._jobs)
        self._nodes.take(batch.nodes)
        unknown = {uid for uid in batch.tasks if is_unknown(uid, self._jobs.get(job_of(uid)))}
        events = by_job({uid: seen for uid, seen in batch.tasks.items() if uid not in unknown})
        for uid, reported in batch.events.items():
            events.setdefault(uid, []).extend(reported)
            for event in reported:
                if isinstance(event, TaskForgotten):
                    self._orphans.drop(event.uid)
        for seen in batch.tasks.values():
            if seen.uid in unknown:
                self._orphans.note(seen)
            else:
                self._orphans.drop(seen.uid)
        if not self._listed:
            self._seen.update(batch.tasks)
        self._listed = self._listed or batch.listed
        for news in events.values():
            self._nodes.hear(news)
        self._nodes.try_again()
        return events

    def _admit(self, found: Admission) -> None:
        """From now on this is who may start, and the rules and reservations of virtual clusters hold."""
        self._admission = found
        self._placing.placer.set_policy(with_rules(self._of_settings, found.rules))
        self._placing.placer.book(found.bookings)

    async def _unaccounted(self) -> list[tuple[JobUid, JobEvent]]:
        """Tasks stored as begun or kept that the engine did not list.

        One that it was told to forget ended as it remembers: this database was restored, and does not know it.
        """
        found: list[tuple[JobUid, JobEvent]] = []
        for job in self._jobs.values():
            for task in job.tasks:
                if task.uid in self._seen:
                    continue
                if task.phase is Phase.KEPT:
                    found.append((job.uid, TaskGone(task.uid)))
                elif task.phase is Phase.RUNNING:
                    recalled = await self._engine.recall(task.uid)
                    if recalled is not None:
                        found += [(job.uid, event) for event in job_events(recalled)]
                        continue
                    message = Text("the engine no longer knows this task")
                    gone = TaskExit(code=None, reason="lost", message=message, causer=Causer.PLATFORM, at=self._clock())
                    found.append((job.uid, TaskExited(task.uid, gone)))
        return found

    def _adopt_intent(self, job: Job) -> None:
        self._remember(job)
        self._unwritten.add(job.uid)
        self._fresh.add(job.uid)

    def _remember(self, job: Job) -> None:
        """Take a job as it is stored, and note when its time comes."""
        self._jobs[job.uid] = job
        if job.replaces is not None:
            self._successors.add(job.uid)
        else:
            self._successors.discard(job.uid)
        at = next_wake(job)
        if at is None:
            self._wakes.pop(job.uid, None)
        else:
            self._wakes[job.uid] = at

    def _freed_names(self) -> list[JobUid]:
        """Jobs that need wait no longer for those that they replace."""
        return [
            uid for uid in sorted(self._successors) if (earlier := self._earlier(uid)) is None or earlier.state.final
        ]

    def _earlier(self, uid: JobUid) -> Job | None:
        """The job that this one replaces, unless it is done with."""
        replaced = self._jobs[uid].replaces
        return self._jobs.get(replaced) if replaced is not None else None

    def _due(self) -> list[JobUid]:
        now = self._clock()
        due = [uid for uid, at in self._wakes.items() if at <= now]
        self._fresh.update(due)
        return due

    def _seconds_to_next_wake(self) -> float:
        now = self._clock()
        wakes = [*self._wakes.values(), self._look_again, self._nodes.wake]
        return min([SAFETY_S, *((at - now).total_seconds() for at in wakes if at is not None and at > now)])

    # ---- one job ---------------------------------------------------------------------------------

    async def _hear(self, uid: JobUid, news: Sequence[JobEvent]) -> None:
        """Take what an engine says of a job, without the job's secrets."""
        job = self._jobs.get(uid)
        if job is not None:
            await self._advance(uid, await cleaned(job, news, self._planner.secrets))

    async def _advance(self, uid: JobUid, news: Sequence[JobEvent], result: PassResult | None = None) -> bool:
        """Step a job through its news and write it; again from the stored job when another process wrote first.

        False: a port of the result is leased to another job, and nothing was written.
        """
        while (job := self._jobs.get(uid)) is not None:
            after = self._stepped(job, news)
            if after == job and (uid not in self._unwritten or self._will_be_tried(job)):
                return True
            over = _slots(after) if after.state.final else []
            try:
                saved = await self._store.jobs.save(
                    after,
                    seen=job,
                    epoch=self._epoch,
                    events=[*events_between(job, after), *claims_told(job, after, news)],
                    at=self._clock(),
                    lease=result.lease if result is not None and result.is_taken(after) else (),
                    release=[*(result.release if result is not None else ()), *over],
                )
            except Conflict:
                self._remember(await self._store.jobs.get(uid))
                # The first writer left an intent, and the next write clears its mark: look at it now.
                news = [*news, Look()]
                continue
            except PortTaken:
                self._placing.placer.ledger.set_leases(await self._store.ports.leases())
                return False
            self._adopt(job, saved, over)
            return True
        return True

    def _stepped(self, job: Job, news: Sequence[JobEvent]) -> Job:
        now = self._clock()
        for event in news:
            if isinstance(event, (Placed, Waiting)) and not self._applies(job, event, now):
                continue
            try:
                job = stepped(job, event, now, self._keep)
            except IllegalTransition:
                # One job's impossible news must not keep all others from being served.
                log.exception("job %s: ignored an impossible event: %s", job.uid, type(event).__name__)
        return job

    @staticmethod
    def _applies(job: Job, event: Placed | Waiting, now: datetime) -> bool:
        """Whether a placement's outcome still fits the job: a stop may have been written meanwhile."""
        if isinstance(event, Placed):
            return event.placements.keys() <= {task.uid for task in to_place(job, now)}
        return not job.state.final and job.verdict is None

    def _will_be_tried(self, job: Job) -> bool:
        """Whether the next pass of the queue is going to write this job anyway, or this is done after it."""
        return job.uid in self._fresh and bool(to_place(job, self._clock()))

    def _adopt(self, before: Job, saved: Job, released: Iterable[str]) -> None:
        """Take a written decision over: what it frees, what it opens, and whether the job is done with."""
        self._unwritten.discard(saved.uid)
        self._placing.freed(released)
        self._placing.placer.keep_only(saved.uid, saved.tasks)
        self._history.record(before, saved)
        if self._figures is not None:
            self._figures.changed(before, saved)
        self._fresh.add(saved.uid)
        if isinstance(self._engine, TakesNotes):
            for note in stop_notes(before, saved):
                self._engine.note(note)
        already = set(open_effects(before))
        self._remember(saved)
        if saved.state.final and all(task.forgotten for task in saved.tasks):
            del self._jobs[saved.uid]
            self._successors.discard(saved.uid)
            self._planner.forget(saved)
        self._carrier.carry(tuple(effect for effect in open_effects(saved) if effect not in already))

    async def _plan(self, uid: TaskUid) -> TaskPlan | None:
        """The plan of a task that is still to be started."""
        job = self._jobs.get(job_of(uid))
        task: Task | None = job.task(uid) if job is not None else None
        if job is None or task is None or task.phase not in (Phase.STARTING, Phase.PULLING):
            return None
        placer, place = self._placing.placer, task.placement
        rule = NodeRule() if place is None else placer.rules.of_placed(place, placer.config)
        return await self._planner.plan(job, task, rule.tolerations)

    async def _job_info(self, uid: TaskUid) -> str | None:
        """What a running task is to know of its job now; None when it no longer runs."""
        job = self._jobs.get(job_of(uid))
        task = job.task(uid) if job is not None else None
        if job is None or task is None or task.phase is not Phase.RUNNING:
            return None
        return self._planner.job_info(job)

    # ---- placement -------------------------------------------------------------------------------

    async def _configure(self) -> None:
        """Go over to a newer cluster configuration, if there is one, before anything else is decided."""
        found, self._newer = self._newer, None
        if found is not None:
            self._placing.placer.catch_up()
            await self._configuring.take(found, self._placing.placer, self._jobs.values())

    async def _place(self) -> None:
        """Let the queue decide until nothing is left to ask; write what it decided, then why others wait."""
        now, placer = self._clock(), self._placing.placer
        placer.catch_up()
        await self._write_lost()
        refused = self._line_up(now)
        await _in_chunks([self._advance(uid, [Unreserved(), Waiting(words)]) for uid, words in refused.items()])
        while True:
            found = placer.advance(now)
            results = await self._results.of_pass(found, self._jobs)
            await self._write_claims()
            await _in_chunks([self._settle(result) for result in results])
            await self._preempt()
            if not found.more:
                break
        self._look_again = found.look_again
        await self._write_reasons()

    def _line_up(self, now: datetime) -> dict[JobUid, str]:
        """Let the queue know who waits. Units that lacked ports are tried again after a while.

        Returns the jobs that would wait and may not, with the reason.
        """
        refused: dict[JobUid, str] = {}
        if self._placing.ran_short and self._look_again is not None and self._look_again <= now:
            self._placing.ran_short = False
            self._placing.placer.ask_for_nodes_again()
        fresh, self._fresh = self._fresh, set()
        for uid in fresh:
            job = self._jobs.get(uid)
            if job is None:
                self._placing.placer.forget(uid)
                continue
            tasks = to_place(job, now)
            if tasks and (words := self._admission.refusal(job)):
                refused[uid] = words
                tasks = ()
            elif is_refusal(job):
                self._placing.placer.changed_reasons.note(uid)  # it waits for something else now
            self._placing.placer.wait(job, tasks)
        return refused

    async def _write_reasons(self) -> None:
        """Write why jobs wait, where that is new or has never been told."""
        jobs = [job for uid in self._placing.placer.changed_reasons.take() if (job := self._jobs.get(uid)) is not None]
        results = [self._results.of_job(job) for job in jobs]
        await _in_chunks([self._advance(result.job, result.news) for result in results if result.news])
        if self._placing.ran_short:
            again = self._clock() + timedelta(seconds=SAFETY_S)
            self._look_again = min(again, self._look_again or again)

    async def _settle(self, result: PassResult) -> None:
        """Write a result, or give it back when its job was stopped meanwhile or another job leases a port."""
        uid, job, written = result.job, self._jobs.get(result.job), False
        if job is not None:
            written, _ = await asyncio.gather(
                self._advance(uid, result.news, result), self._planner.prepare(job, result.placements.keys())
            )
        units = [*(decision.unit for decision in result.decisions), *result.kept]
        if written and result.is_taken(self._jobs.get(uid)):
            for unit in units:
                self._placing.placer.written(unit)
        else:
            self._placing.undo(units, result.decisions)
            self._fresh.add(uid)
            self._inbox.store_changed()  # it is decided again at once

    async def _write_claims(self) -> None:
        """Write who lost its claim on a quota, or has it again.

        Before what takes the quota is written: after a crash in between, the claim is found to be free and returns.
        """
        claims = self._placing.placer.take_changed_claims()
        config = self._configuring.version
        await _in_chunks([self._advance(each.job, [Displaced(each.uids, each.displaced, config)]) for each in claims])

    async def _write_lost(self) -> bool:
        """Write which jobs lost their reservation, so that they are decided again; whether there are any."""
        lost = [uid for uid in self._placing.placer.lost.take() if uid in self._jobs]
        await _in_chunks([self._advance(uid, [Unreserved(self._configuring.version)]) for uid in lost])
        self._fresh.update(lost)
        return bool(lost)

    async def _preempt(self) -> None:
        """Ask those to end on whose cells a place is kept for others.

        Only reservations that are written still stand here. All are asked again whenever jobs are placed, until they
        have ended, so that a crash between the two writes loses nothing.
        """
        placer = self._placing.placer
        news: dict[JobUid, list[JobEvent]] = {}
        for each in placer.preemptions():
            news.setdefault(each.job, []).append(Preempted(each.uids, each.by, each.priority))
        await _in_chunks([self._advance(uid, events) for uid, events in news.items()])
        if await self._write_lost():
            self._inbox.store_changed()  # jobs that lost a reservation are decided again at once


def _slots(job: Job) -> list[str]:
    """Owners of all ports of a job."""
    return [slot_of(task.uid) for task in job.tasks]


async def _in_chunks(work: Sequence[Coroutine[None, None, object]]) -> None:
    """Await all of it, a bounded number at a time; the first failure is raised after its chunk has settled."""
    for start in range(0, len(work), TOGETHER):
        results = await asyncio.gather(*work[start : start + TOGETHER], return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
