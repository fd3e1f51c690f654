"""Sends events of the audit on, and forgets those that are not to be kept."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pai_backend.controller.audit_sinks import AuditSink, SinkAway
from pai_backend.store.grants import Act

if TYPE_CHECKING:
    from pai_backend.store.sql import Store

log = logging.getLogger(__name__)

SEND_S = 1.0
"""Between two looks for events that have not been sent."""
LONGEST_S = 60.0
"""Between two attempts at a sink that is away."""
AT_ONCE = 500
CUT_S = 600.0
WHO = "jupyter-pai"


@dataclass(frozen=True)
class AuditRules:
    """``keep``: how long events stay; None: for ever. ``sinks``: where they are sent."""

    keep: timedelta | None = None
    sinks: Sequence[AuditSink] = ()


class AuditKeeper:
    """That of one tenure."""

    def __init__(self, store: Store, rules: AuditRules, *, epoch: int, clock: Callable[[], datetime]) -> None:
        self._store, self._rules, self._epoch, self._clock = store, rules, epoch, clock

    async def run(self) -> None:
        """Until it is cancelled. Raises Unavailable and Fenced, which end the tenure."""
        async with asyncio.TaskGroup() as group:
            for sink in self._rules.sinks:
                group.create_task(self._send(sink))
            if self._rules.keep is not None:
                group.create_task(self._cut(self._rules.keep))

    async def _send(self, sink: AuditSink) -> None:
        wait = SEND_S
        while True:
            try:
                while events := await self._store.audit.unsent(sink.name, AT_ONCE):
                    await sink.send(events)
                    await self._store.audit.sent(sink.name, events[-1], self._epoch)
                    if wait > SEND_S:
                        log.info("events of the audit reach %s again", sink.place)
                    wait = SEND_S
            except SinkAway as error:
                if wait == SEND_S:
                    log.warning("events of the audit do not reach %s and wait: %s", sink.place, error)
                wait = min(LONGEST_S, 2 * wait)
            await asyncio.sleep(wait)

    async def _cut(self, keep: timedelta) -> None:
        while True:
            now = self._clock()
            sent_to = [sink.name for sink in self._rules.sinks]
            lost = await self._store.audit.cut(now - keep, Act(WHO, now), sent_to=sent_to)
            if lost:
                log.info("%d events of the audit are older than audit.keep_days and were forgotten", lost)
            await asyncio.sleep(CUT_S)
