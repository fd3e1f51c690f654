"""Notifies users about their jobs: makes notices of the event log, sends them, and tries again."""

from __future__ import annotations

import asyncio
import logging
import random
import secrets
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pai_backend.controller.notice_sending import NoticeSender, NotSent
from pai_backend.model.notification import notices
from pai_backend.store.noticing import DeliveryFailure, NoticeMessage

if TYPE_CHECKING:
    from pai_backend.store.sql import Store

log = logging.getLogger(__name__)

LOOK_S = 1.0
"""Between two looks, for events and for what is due."""
APART = timedelta(seconds=10)
"""Between two messages of one notification: what happens meanwhile comes in one."""
FIRST, LONGEST = timedelta(seconds=5), timedelta(hours=1)
"""Between two tries of a message: twice as long each time, and a part of that more or less."""
MOST_TRIES = 32
"""Of a message, which take about a day."""
AT_ONCE = 8
"""Messages that are sent at the same time."""


class Notifier:
    """That of one tenure."""

    def __init__(
        self,
        store: Store,
        sender: NoticeSender,
        *,
        epoch: int,
        clock: Callable[[], datetime],
        rng: random.Random | None = None,
    ) -> None:
        self._store, self._sender, self._epoch, self._clock = store, sender, epoch, clock
        self._rng = rng or random.Random()

    async def run(self) -> None:
        """Until it is cancelled. Raises Unavailable and Fenced, which end the tenure."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._notice())
            group.create_task(self._send())

    async def _notice(self) -> None:
        mark = -1
        while True:
            mark = await self._store.changes.wait(mark, LOOK_S)
            while (batch := await self._store.notices.batch()) is not None:
                made = [notice for news, wishes in batch.found for notice in notices(news, wishes)]
                await self._store.notices.tell(batch, made, self._clock(), self._epoch)
            await asyncio.sleep(LOOK_S)  # bounds how often a busy store is read

    async def _send(self) -> None:
        going: dict[str, asyncio.Task[None]] = {}
        try:
            while True:
                now = self._clock()
                for message in await self._store.notices.due(now, now - APART, AT_ONCE + len(going)):
                    if message.to.id not in going and len(going) < AT_ONCE:
                        going[message.to.id] = asyncio.create_task(self._deliver(message), name="notice")
                if not going:
                    await asyncio.sleep(LOOK_S)
                    continue
                await asyncio.wait(going.values(), timeout=LOOK_S, return_when=asyncio.FIRST_COMPLETED)
                for id_ in [id_ for id_, task in going.items() if task.done()]:
                    going.pop(id_).result()
        finally:
            for task in going.values():
                task.cancel()
            await asyncio.gather(*going.values(), return_exceptions=True)

    async def _deliver(self, message: NoticeMessage) -> None:
        id_ = message.id
        if not id_:
            id_ = secrets.token_hex(16)
            await self._store.notices.begin(message, id_, self._epoch)
        try:
            await self._sender.send(message, id_)
        except NotSent as error:
            await self._settle(message, id_, error)
        else:
            await self._store.notices.arrived(message.to.id, id_, self._clock(), self._epoch)

    async def _settle(self, message: NoticeMessage, id_: str, error: NotSent) -> None:
        to, failed = message.to, DeliveryFailure(id_, self._clock(), str(error))
        log.info("a message to %s of %s did not arrive: %s", to.id, to.user, error)
        if error.final or message.tries + 1 >= MOST_TRIES:
            await self._store.notices.given_up(to.id, failed, self._epoch)
        else:
            await self._store.notices.again(to.id, failed, failed.at + self._pause(message.tries), self._epoch)

    def _pause(self, tries: int) -> timedelta:
        doubled: timedelta = FIRST * 2 ** min(tries, 16)
        return min(doubled, LONGEST) * self._rng.uniform(0.75, 1.25)
