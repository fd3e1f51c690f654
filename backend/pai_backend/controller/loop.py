"""Being the controller for as long as it is asked: its lease, one tenure after another, and answers to why jobs wait.

The lease's epoch fences writes, so a paused controller that wakes up late can change nothing. The file lock only makes
taking over quick: who holds it knows that the holder before is dead, and need not wait for the lease to run out.

An explanation asks the scheduler many times, and while it does the controller does nothing else. Therefore only what
is asked is explained, one job after the other, and after each the explainer rests four times as long as it took:
however many ask, at most a fifth of the controller's time goes into answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
import random
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from pai_backend.access.ports import PortRange
from pai_backend.controller.audit_keeper import AuditKeeper, AuditRules
from pai_backend.controller.budgets import BudgetKeeper
from pai_backend.controller.configuring import Configuring, Setting
from pai_backend.controller.deleting import Deleter
from pai_backend.controller.durations import DurationKeeper
from pai_backend.controller.figures import ClusterFigures, Seen
from pai_backend.controller.idle_clocks import IdleKeeper, Watcher
from pai_backend.controller.notice_sending import NoticeSender
from pai_backend.controller.notifier import Notifier
from pai_backend.controller.orphans import TakenBack
from pai_backend.controller.other_holders import tell_other_holders
from pai_backend.controller.plans import Planner
from pai_backend.controller.ports import Placing
from pai_backend.controller.reconciler import SAFETY_S, Reconciler
from pai_backend.controller.underuse import UnderuseKeeper
from pai_backend.controller.use_sampler import Sampling, UseSampler
from pai_backend.engine.base import Engine, EngineError
from pai_backend.engine.holding import BEAT_S, ControllerClaim, HeldByAnother
from pai_backend.launch.service_addresses import ServiceSite
from pai_backend.lifecycle.derive import KEEP
from pai_backend.model.errors import Unavailable
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Job
from pai_backend.model.waiting import Waiting
from pai_backend.scheduling.jobs.history import MOST_KINDS, History
from pai_backend.scheduling.jobs.placer import Placer
from pai_backend.scheduling.jobs.why import why
from pai_backend.storage.reach import StorageReach
from pai_backend.store.base import Fenced
from pai_backend.store.deletion import Retention

if TYPE_CHECKING:
    from pai_backend.store.sql import Store

POLL_S = 0.2
"""How often a waiting controller tries again; bounds the time without a controller after a crash."""


class LeaseKeeper:
    """Acquires, renews and gives up the controller lease."""

    def __init__(
        self, store: Store, holder: str, ttl_s: float, lock: Path | None, clock: Callable[[], datetime]
    ) -> None:
        self._store = store
        self._holder = holder
        self._ttl_s = ttl_s
        self._lock = lock
        self._clock = clock
        self._lock_fd: int | None = None
        self._epoch: int | None = None

    async def acquire(self) -> int:
        """Wait until this is the controller; returns the epoch that fences its writes."""
        while not self._take_lock():  # noqa: ASYNC110 - a file lock sends no event when it is released
            await asyncio.sleep(POLL_S)
        while True:
            lease = await self._store.leadership.acquire(
                self._holder, self._ttl_s, self._clock(), force=self._lock_fd is not None
            )
            if lease is not None:
                self._epoch = lease.epoch
                return lease.epoch
            await asyncio.sleep(POLL_S)

    async def keep(self, epoch: int) -> None:
        """Renew for ever. Raises Fenced when another one has taken over."""
        while True:
            await asyncio.sleep(self._ttl_s / 3)
            await self._store.leadership.renew(epoch, self._ttl_s, self._clock())

    async def give_up(self) -> None:
        """Let the next one take over at once: end the lease and drop the lock."""
        if self._epoch is not None:
            epoch, self._epoch = self._epoch, None
            with contextlib.suppress(Fenced, Unavailable):  # then it is another's already, or runs out by itself
                await self._store.leadership.renew(epoch, 0.0, self._clock())
        if self._lock_fd is not None:
            os.close(self._lock_fd)
            self._lock_fd = None

    def _take_lock(self) -> bool:
        """Whether the lock file is ours (or none is asked for); never blocks."""
        if self._lock is None or self._lock_fd is not None:
            return True
        fd = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return False
        self._lock_fd = fd
        return True


log = logging.getLogger(__name__)

TOGETHER = 8
"""How many open questions are read at once."""
REST = 4
"""Rest after an answer, in times of what it took."""


class Explainer:
    """Answers the questions in the store during one tenure."""

    def __init__(
        self, store: Store, tenure: Reconciler, placing: Placing, *, epoch: int, clock: Callable[[], datetime]
    ) -> None:
        self._store = store
        self._tenure = tenure
        self._placing = placing
        self._epoch = epoch
        self._clock = clock

    async def run(self) -> None:
        """Answer, for ever. Raises Fenced when another controller has taken over."""
        mark = -1
        while True:
            mark = await self._store.changes.wait(mark, SAFETY_S)
            while self._tenure.knows_nodes and (asked := await self._store.explanations.asked(TOGETHER)):
                for uid in asked:
                    await self._answer(uid)

    async def _answer(self, uid: JobUid) -> None:
        job = self._tenure.jobs.get(uid) or await self._store.jobs.get(uid)
        loop = asyncio.get_running_loop()
        started = loop.time()
        found = self._explained(job)
        took = loop.time() - started
        body = "" if found is None else found.model_dump_json()
        await self._store.explanations.answer({uid: body}, self._clock(), self._epoch)
        await asyncio.sleep(REST * took)

    def _explained(self, job: Job) -> Waiting | None:
        try:
            return why(self._placing.placer, job.uid, self._clock())
        except Exception:
            # An answer that cannot be given must not end the controller: who asked still has the job's own sentence.
            log.exception("job %s: why it waits could not be explained", job.uid)
            return None


RETRY_S = 1.0
"""Pause before a new tenure after the database was away, the watch broke or the lease was lost."""


@dataclass(frozen=True)
class ControllerOptions:
    """What a controller needs to know.

    ``lock``: a file whose exclusive flock proves others dead (one machine). ``keep``: how long failed tasks of debug
    jobs are kept, 0 for not at all. ``reach``: what is read of storages for whom; none but the default one if absent.
    ``cluster``: the cluster configuration as the settings give it. ``keep_orphans``: how long tasks that the database
    does not know are kept; None: until an administrator ends them. ``keep_jobs``: which finished jobs are kept.
    ``services``: where tasks are told that their services are found. ``sampling``: of what tasks use; None: it is not.
    ``figures``: for Prometheus. ``grants``: the virtual clusters that the settings grant users. ``audit``: how long its
    events are kept, and where they are sent. ``notices``: what sends to users; None: nothing is sent.
    """

    holder: str
    lock: Path | None = None
    lease_ttl_s: float = 10.0
    grace_s: float = 10.0
    ports: PortRange = field(default_factory=PortRange)
    default_fs_uri: str = ""
    reach: StorageReach | None = None
    keep: timedelta = KEEP
    keep_orphans: timedelta | None = None
    cluster: Setting = field(default_factory=Setting)
    keep_jobs: Retention = field(default_factory=Retention)
    services: ServiceSite | None = None
    sampling: Sampling | None = None
    figures: ClusterFigures | None = None
    grants: Mapping[str, Collection[str]] = field(default_factory=dict)
    audit: AuditRules = field(default_factory=AuditRules)
    notices: NoticeSender | None = None


class Controller:
    """The controller of one store and one engine; other replicas wait for their turn."""

    def __init__(
        self,
        store: Store,
        engine: Engine,
        options: ControllerOptions,
        *,
        placer: Callable[[], Placer] = Placer,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        rng: random.Random | None = None,
    ) -> None:
        self._store = store
        self._engine = engine
        self._options = options
        self._new_placer = placer
        self._clock = clock
        self._rng = rng or random.Random()
        self._lease = LeaseKeeper(store, options.holder, options.lease_ttl_s, options.lock, clock)
        self._planner = Planner(store, options.default_fs_uri, options.reach, clock, options.services)

    async def run(self, stop: asyncio.Event) -> None:
        """Decide until ``stop``. Known trouble starts a new tenure; anything else is a bug and is raised."""
        ended = asyncio.create_task(stop.wait())
        try:
            while not stop.is_set():
                tenure = asyncio.create_task(self._tenure())
                try:
                    await asyncio.wait({tenure, ended}, return_when=asyncio.FIRST_COMPLETED)
                finally:  # also when we are cancelled: nothing else ends it
                    tenure.cancel()
                    (outcome,) = await asyncio.gather(tenure, return_exceptions=True)
                if isinstance(outcome, BaseException) and not isinstance(outcome, asyncio.CancelledError):
                    log.warning("the controller restarts: %s", _known(outcome))
                    await asyncio.wait({ended}, timeout=RETRY_S)
        finally:
            ended.cancel()
            await self._lease.give_up()

    async def _tenure(self) -> None:
        """From the lease to its loss."""
        epoch = await self._lease.acquire()
        claim = ControllerClaim(await self._planner.records.identity(), self._options.holder, epoch)
        await self._engine.hold(claim)
        configuring = Configuring(self._store, self._options.cluster, epoch=epoch, clock=self._clock)
        history = History(await self._store.run_times.latest(MOST_KINDS))
        placing = Placing(self._new_placer(), self._engine, self._options.ports, self._rng)
        placing.placer.run_time, placing.placer.likely = history.run_time, history.likely
        await configuring.begin(placing.placer)
        tenure = Reconciler(
            self._store,
            self._engine,
            placing,
            self._planner,
            configuring,
            history,
            epoch=epoch,
            clock=self._clock,
            grace_s=self._options.grace_s,
            keep=self._options.keep,
            keep_orphans=self._options.keep_orphans,
            figures=self._options.figures,
            grants=self._options.grants,
        )
        watcher = Watcher(self._engine, self._planner.secrets.token, self._clock)
        keeper = IdleKeeper(self._store, tenure, watcher, epoch=epoch, clock=self._clock)
        durations = DurationKeeper(
            self._store, tenure, lambda vc: tenure.policy.longest_run(vc), epoch=epoch, clock=self._clock
        )
        budgets = BudgetKeeper(self._store, tenure, epoch=epoch, clock=self._clock)
        explainer = Explainer(self._store, tenure, placing, epoch=epoch, clock=self._clock)
        sampling = self._options.sampling
        series = sampling.series if sampling is not None else None
        deleter = Deleter(
            self._store, self._engine, self._options.keep_jobs, series=series, epoch=epoch, clock=self._clock
        )
        auditor = AuditKeeper(self._store, self._options.audit, epoch=epoch, clock=self._clock)
        log.info("controller with epoch %d", epoch)
        figures = self._options.figures
        try:
            if figures is not None:
                idle = sampling.idle_gpus if sampling is not None else dict
                figures.seen = lambda: Seen(tenure.jobs, placing.placer, idle())
            async with asyncio.TaskGroup() as group:
                group.create_task(self._lease.keep(epoch))
                group.create_task(self._beat(claim))
                group.create_task(tenure.watch_engine())
                group.create_task(tenure.watch_store())
                group.create_task(tenure.watch_configuration())
                group.create_task(tenure.watch_admission())
                nodes = placing.placer.ledger.room.nodes
                group.create_task(tell_other_holders(self._store, lambda: nodes if tenure.knows_nodes else None))
                group.create_task(tenure.decide())
                group.create_task(explainer.run())
                group.create_task(keeper.run())
                group.create_task(durations.run())
                group.create_task(budgets.run())
                group.create_task(deleter.run())
                group.create_task(auditor.run())
                if self._options.notices is not None:
                    notifier = Notifier(self._store, self._options.notices, epoch=epoch, clock=self._clock)
                    group.create_task(notifier.run())
                if sampling is not None:
                    underuse = UnderuseKeeper(
                        self._store,
                        tenure,
                        sampling.series,
                        sample_s=sampling.sample_s,
                        epoch=epoch,
                        clock=self._clock,
                    )
                    sampler = UseSampler(
                        self._store,
                        tenure,
                        self._engine,
                        sampling,
                        epoch=epoch,
                        clock=self._clock,
                        underuse=underuse,
                    )
                    group.create_task(sampler.run())
        finally:
            if figures is not None:
                figures.seen = None
            await tenure.aclose()

    async def _beat(self, claim: ControllerClaim) -> None:
        """Keep the holder's heartbeat going. Raises HeldByAnother when a copy of this database has taken over.

        A cluster that is away for a while is no reason to stop: nothing can be done to its tasks either.
        """
        while True:
            await asyncio.sleep(BEAT_S)
            try:
                await self._engine.hold(claim, renewing=True)
            except HeldByAnother:
                raise
            except EngineError as error:
                log.warning("the heartbeat of this controller cannot be written now: %s", error)


def _known(trouble: BaseException) -> str:
    """Known trouble in words. Raises the trouble itself when any part of it is not known."""
    parts = trouble.exceptions if isinstance(trouble, BaseExceptionGroup) else (trouble,)
    for part in parts:
        if isinstance(part, BaseExceptionGroup):
            _known(part)
        elif not isinstance(part, (Fenced, Unavailable, EngineError, TakenBack)):
            raise trouble
    return "; ".join(str(part) or type(part).__name__ for part in parts)
