"""Shows people at terminals that their job is about to be stopped because nothing uses it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from datetime import timedelta
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from pai_backend.access.gateway.login import Login
from pai_backend.access.gateway.turns import in_turns
from pai_backend.lifecycle.idleness import stop_at
from pai_backend.model.errors import Unavailable
from pai_backend.model.idle import IdleClock
from pai_backend.model.ids import JobUid

if TYPE_CHECKING:
    from pai_backend.store.sql import Store

PAUSE_S = 0.5  # between two looks, as ``watch`` has it
WAIT_S = 5.0
RETRY_S = 1.0

log = logging.getLogger(__name__)


class Warnings:
    """Follows the idle clocks of the jobs that have a login at this process."""

    def __init__(self, store: Store, logins: Callable[[], Collection[Login]]) -> None:
        self._store = store
        self._logins = logins
        self._told: WeakKeyDictionary[Login, JobUid] = WeakKeyDictionary()

    async def run(self) -> None:
        """Follow the store until cancelled; a failing store is logged and tried again."""
        seen = -1
        while True:
            try:
                seen = await self._store.changes.wait(seen, WAIT_S)
                await self._look()
                await asyncio.sleep(PAUSE_S)  # bounds the rate of looks
            except Unavailable as exc:
                log.warning("the store does not answer (%s); warnings of idle jobs wait", exc.message)
                await asyncio.sleep(RETRY_S)
            except Exception:  # a fault of ours must not end the warnings, nor pass for one of the store
                log.exception("checking for idle jobs again")
                await asyncio.sleep(RETRY_S)

    async def _look(self) -> None:
        entered = [(login, login.terminal_job) async for login in in_turns(self._logins())]
        idling = {login: found for login, found in entered if found is not None}
        if not idling:
            return
        clocks = await self._store.idling.clocks({job for job, _ in idling.values()})
        for login, (job, timeout_s) in idling.items():
            clock = clocks.get(job)
            if clock is None or clock.warned_at is None:
                self._told.pop(login, None)
            elif login not in self._told:
                self._told[login] = job
                login.say_on_terminals(_sentence(clock, timeout_s))


def _sentence(clock: IdleClock, timeout_s: int) -> str:
    ends = stop_at(clock, timedelta(seconds=timeout_s))
    return f"This job is idle and will be stopped at {ends:%H:%M:%S} UTC. Type something to keep it running."
