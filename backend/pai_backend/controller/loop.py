"""Being the controller for as long as it is asked: one tenure after another."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pai_backend.access.ports import PortRange
from pai_backend.controller.configuring import Configuring, Setting
from pai_backend.controller.deleting import Deleter
from pai_backend.controller.explaining import Explainer
from pai_backend.controller.idle_clocks import IdleKeeper, Watcher
from pai_backend.controller.lease import LeaseKeeper
from pai_backend.controller.orphans import TakenBack
from pai_backend.controller.plans import Planner
from pai_backend.controller.ports import Placing
from pai_backend.controller.reconciler import Reconciler
from pai_backend.engine.base import Engine, EngineError
from pai_backend.engine.holding import BEAT_S, Claim, HeldByAnother
from pai_backend.lifecycle.keeping import KEEP
from pai_backend.model.errors import Unavailable
from pai_backend.scheduling.jobs.history import MOST_KINDS, History
from pai_backend.scheduling.jobs.placer import Placer
from pai_backend.storage.reach import Reach
from pai_backend.store.base import Fenced, Store
from pai_backend.store.deletion import Retention

log = logging.getLogger(__name__)

RETRY_S = 1.0
"""Pause before a new tenure after the database was away, the watch broke or the lease was lost."""


@dataclass(frozen=True)
class ControllerOptions:
    """What a controller needs to know.

    ``lock``: a file whose exclusive flock proves others dead (one machine). ``keep``: how long failed tasks of debug
    jobs are kept, 0 for not at all. ``reach``: what is read of storages for whom; none but the default one if absent.
    ``cluster``: the cluster configuration as the settings give it. ``keep_orphans``: how long tasks that the database
    does not know are kept; None: until an administrator ends them. ``keep_jobs``: which finished jobs are kept.
    """

    holder: str
    lock: Path | None = None
    lease_ttl_s: float = 10.0
    grace_s: float = 10.0
    ports: PortRange = field(default_factory=PortRange)
    default_fs_uri: str = ""
    reach: Reach | None = None
    keep: timedelta = KEEP
    keep_orphans: timedelta | None = None
    cluster: Setting = field(default_factory=Setting)
    keep_jobs: Retention = field(default_factory=Retention)


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
        self._planner = Planner(store, options.default_fs_uri, options.reach, clock)

    async def run(self, stop: asyncio.Event) -> None:
        """Decide until ``stop``. Known trouble starts a new tenure; anything else is a bug and is raised."""
        ended = asyncio.create_task(stop.wait())
        try:
            while not stop.is_set():
                tenure = asyncio.create_task(self._tenure())
                try:
                    await asyncio.wait({tenure, ended}, return_when=asyncio.FIRST_COMPLETED)
                finally:  # also when we are cancelled: nobody else would end it
                    tenure.cancel()
                    (outcome,) = await asyncio.gather(tenure, return_exceptions=True)
                if isinstance(outcome, BaseException) and not isinstance(outcome, asyncio.CancelledError):
                    log.warning("controller starts anew: %s", _known(outcome))
                    await asyncio.wait({ended}, timeout=RETRY_S)
        finally:
            ended.cancel()
            await self._lease.give_up()

    async def _tenure(self) -> None:
        """From the lease to its loss."""
        epoch = await self._lease.acquire()
        claim = Claim(await self._planner.records.identity(), self._options.holder, epoch)
        await self._engine.hold(claim)
        configuring = Configuring(self._store, self._options.cluster, epoch=epoch, clock=self._clock)
        history = History(await self._store.run_times(MOST_KINDS))
        placing = Placing(self._new_placer(), self._engine, self._options.ports, self._rng)
        placing.placer.run_time = history.run_time
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
        )
        watcher = Watcher(self._engine, self._planner.secrets.token, self._clock)
        keeper = IdleKeeper(self._store, tenure, watcher, epoch=epoch, clock=self._clock)
        explainer = Explainer(self._store, tenure, placing, epoch=epoch, clock=self._clock)
        deleter = Deleter(self._store, self._engine, self._options.keep_jobs, epoch=epoch, clock=self._clock)
        log.info("controller with epoch %d", epoch)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._lease.keep(epoch))
                group.create_task(self._beat(claim))
                group.create_task(tenure.watch_engine())
                group.create_task(tenure.watch_store())
                group.create_task(tenure.watch_configuration())
                group.create_task(tenure.decide())
                group.create_task(explainer.run())
                group.create_task(keeper.run())
                group.create_task(deleter.run())
        finally:
            await tenure.aclose()

    async def _beat(self, claim: Claim) -> None:
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
