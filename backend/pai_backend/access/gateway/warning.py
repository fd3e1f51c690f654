"""Shows people at terminals that their job is about to be stopped: as idle, or by a rule of its cluster."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
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
    """Follows the clocks of the jobs that have a login at this process."""

    def __init__(self, store: Store, logins: Callable[[], Collection[Login]]) -> None:
        self._store = store
        self._logins = logins
        self._told: WeakKeyDictionary[Login, JobUid] = WeakKeyDictionary()
        self._rules_told: WeakKeyDictionary[Login, frozenset[datetime]] = WeakKeyDictionary()

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
        await self._tell_of_rules({login: job for login, (job, _) in idling.items()})
        timed = {job for job, timeout_s in idling.values() if timeout_s is not None}
        clocks = await self._store.idling.clocks(timed) if timed else {}
        for login, (job, timeout_s) in idling.items():
            clock = clocks.get(job)
            if clock is None or clock.warned_at is None or timeout_s is None:
                self._told.pop(login, None)
            elif login not in self._told:
                self._told[login] = job
                login.say_on_terminals(_sentence(clock, timeout_s))

    async def _tell_of_rules(self, jobs: Mapping[Login, JobUid]) -> None:
        """Say each warning once on each login; of underuse it is one for as long as it holds, whatever its numbers."""
        ending = await self._store.rule_clocks.ending({*jobs.values()})
        underuse = await self._store.rule_clocks.underuse({*jobs.values()})
        for login, job in jobs.items():
            texts: dict[datetime, str] = {}
            if (end := ending.get(job)) is not None and end.text:
                texts[end.ends_at] = end.text
            if (clock := underuse.get(job)) is not None and clock.warned_at is not None:
                texts[clock.warned_at] = clock.text
            told = self._rules_told.get(login, frozenset())
            for at, text in texts.items():
                if at not in told:
                    login.say_on_terminals(text)
            self._rules_told[login] = frozenset(texts)


def _sentence(clock: IdleClock, timeout_s: int) -> str:
    ends = stop_at(clock, timedelta(seconds=timeout_s))
    return f"This job is idle and will be stopped at {ends:%H:%M:%S} UTC. Type something to keep it running."
