"""Ends logins whose right has ended: the job is over, the task has moved, the key was removed.

One reader of the store for all logins. A change wakes it; it then looks only at jobs and users that have
live logins, at most once every ``PAUSE_S``, so that a busy store costs a quiet gateway nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection

from pai_backend.access.gateway import names
from pai_backend.access.gateway.login import Login
from pai_backend.model.errors import NoSuchJob
from pai_backend.model.ids import JobUid, TaskUid
from pai_backend.store.base import Store

PAUSE_S = 0.5  # between two looks; the promise is to cut within 2 s (architecture §8)
WAIT_S = 5.0  # longest sleep without a change; also the safety net for a lost wake-up
RETRY_S = 1.0  # after the store failed
REASON_S = 1.0  # how long a login whose task's end broke waits for the controller to see why

KEY_REMOVED = "Your key was removed."

log = logging.getLogger(__name__)


class Watch:
    """The live logins of one gateway process."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._logins: set[Login] = set()
        self._empty = asyncio.Event()
        self._empty.set()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def logins(self) -> Collection[Login]:
        """Those logged in now."""
        return self._logins

    def add(self, login: Login) -> None:
        """A client has logged in."""
        self._logins.add(login)
        self._empty.clear()

    def remove(self, login: Login) -> None:
        """A client is gone. Idempotent."""
        self._logins.discard(login)
        if not self._logins:
            self._empty.set()

    async def wait_empty(self) -> None:
        """Return when nobody is logged in."""
        await self._empty.wait()

    async def run(self) -> None:
        """Follow the store until cancelled; a failing store is logged and tried again."""
        seen = -1
        while True:
            try:
                seen = await self._store.wait_change(seen, WAIT_S)
                await self.look()
                await asyncio.sleep(PAUSE_S)  # bounds the rate of looks
            except Exception as exc:  # noqa: BLE001  (whatever a store raises, the gateway goes on)
                log.warning("the store does not answer (%s); live logins are checked again soon", type(exc).__name__)
                await asyncio.sleep(RETRY_S)

    async def look(self) -> None:
        """Check every live login once and end those that may not go on."""
        for user in {login.owner for login in self._logins}:
            kept = {key.fingerprint for key in await self._store.keys(user)}
            for login in list(self._logins):
                if login.owner == user and login.fingerprint not in kept:
                    login.end(KEY_REMOVED)
        for uid in {login.entry.job for login in self._logins if login.entry}:
            texts: dict[TaskUid, str] = {}
            for login in list(self._logins):
                if login.entry and login.entry.job == uid:
                    task = login.entry.task
                    if task not in texts:
                        texts[task] = await self._why_gone(uid, task)
                    if texts[task]:
                        login.end(texts[task])

    async def _why_gone(self, job: JobUid, task: TaskUid) -> str:
        try:
            return names.gone(await self._store.job(job), task)
        except NoSuchJob:
            return "The job was removed."

    def task_lost(self, login: Login) -> None:
        """The task's end of ``login`` broke: end it, with the reason if the store learns one soon."""
        task = asyncio.create_task(self._end_lost(login), name="gateway-task-lost")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _end_lost(self, login: Login) -> None:
        """Why a connection breaks is known only after the controller has seen the task end."""
        assert login.entry is not None
        text = f"The connection to {login.entry.name} was lost. Connect again."
        try:
            async with asyncio.timeout(REASON_S):
                text = await self._when_gone(login.entry.job, login.entry.task)
        except TimeoutError:
            log.info("the SSH server of task %s is lost while the task runs", login.entry.task)
        except Exception as exc:  # noqa: BLE001  (the login ends, whatever a store raises)
            log.warning("the store does not answer (%s); why a task was lost is not known", type(exc).__name__)
        login.end(text)

    async def _when_gone(self, job: JobUid, task: TaskUid) -> str:
        """Wait until the store knows why the task is gone."""
        seen = -1
        while True:
            seen = await self._store.wait_change(seen, REASON_S)
            if text := await self._why_gone(job, task):
                return text
