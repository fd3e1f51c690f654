"""Ends logins whose right has ended: the job is over, the task has moved, the key, certificate or share is gone.

One reader of the store for all logins. A change wakes it; it then looks only at credentials and jobs of live
logins, at most once every ``PAUSE_S``, so that a busy store costs a quiet gateway nothing. What ends by the clock
alone is seen at the next look, ``WAIT_S`` later at most.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Collection
from typing import TYPE_CHECKING

from pai_backend.access.broker import lookup
from pai_backend.access.broker.rights import Credential, Limits
from pai_backend.access.gateway import door, names
from pai_backend.access.gateway.login import Login
from pai_backend.access.gateway.names import EntryPoint, LoginRefused
from pai_backend.access.gateway.reasons import RefusalReason
from pai_backend.access.gateway.turns import in_turns
from pai_backend.model.ids import JobUid, TaskUid
from pai_backend.model.job import Job

if TYPE_CHECKING:
    from pai_backend.store.sql import Store

PAUSE_S = 0.5  # between two looks; the promise is to cut within 2 s (architecture §8)
CLOCK_S = 1.0
WAIT_S = 5.0  # at the latest everything is looked at, in case a wake-up was lost
RETRY_S = 1.0  # after the store failed
REASON_S = 1.0  # how long a login whose task's end broke waits for the controller to see why

_REMOVED = LoginRefused("The job was removed.", RefusalReason.ENDED)
_NOT_SHARED = LoginRefused("This job is no longer shared with you.", RefusalReason.RIGHT_ENDED)
_CHANGED = LoginRefused("What you may do in this job has changed. Connect again.", RefusalReason.RIGHT_ENDED)

log = logging.getLogger(__name__)


class LoginWatch:
    """The live logins of one gateway process."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._logins: dict[Login, Credential] = {}
        self._of_user: Counter[str] = Counter()
        self._empty = asyncio.Event()
        self._empty.set()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def logins(self) -> Collection[Login]:
        """Those logged in now."""
        return self._logins.keys()

    def count(self, user: str) -> int:
        """How many of them are this user's."""
        return self._of_user[user]

    def add(self, login: Login, credential: Credential) -> None:
        """A client has logged in."""
        self._logins[login] = credential
        self._of_user[credential.user] += 1
        self._empty.clear()

    def remove(self, login: Login) -> None:
        """A client is gone. Idempotent."""
        credential = self._logins.pop(login, None)
        if credential is None:
            return
        self._of_user[credential.user] -= 1
        if not self._of_user[credential.user]:
            del self._of_user[credential.user]
        if not self._logins:
            self._empty.set()

    async def wait_empty(self) -> None:
        """Return when no login is left."""
        await self._empty.wait()

    async def run(self) -> None:
        """Follow the store until cancelled; a failing store is logged and tried again."""
        seen, whole_at, loop = -1, 0.0, asyncio.get_running_loop()
        while True:
            try:
                mark = await self._store.changes.wait(seen, CLOCK_S)
                whole = mark != seen or loop.time() >= whole_at
                await self.look(whole=whole)
                seen, whole_at = mark, loop.time() + WAIT_S if whole else whole_at
                await asyncio.sleep(PAUSE_S)  # bounds the rate of looks
            except Exception as exc:  # noqa: BLE001  (whatever a store raises, the gateway goes on)
                log.warning("the store does not answer (%s); live logins are checked again soon", type(exc).__name__)
                await asyncio.sleep(RETRY_S)

    async def look(self, *, whole: bool = True) -> None:
        """Check live logins and end those that may not go on. Every credential, job and right is read once.

        Without ``whole`` only those are checked whose rights can end without a change of the store.
        """
        look = _Look(self._store)
        async for login, credential in in_turns(self._logins.items()):
            if whole or credential.expires_at is not None or any(e.owner != credential.user for e, _ in login.entries):
                refused = await look.at(login, credential)
                if refused is not None:
                    login.end(refused)
                elif login in self._logins:
                    self._logins[login] = look.terms(credential)

    def task_lost(self, login: Login) -> None:
        """The task's end of ``login`` broke: end it, with the reason if the store learns one soon."""
        task = asyncio.create_task(self._end_lost(login), name="gateway-task-lost")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _end_lost(self, login: Login) -> None:
        """Why a connection breaks is known only after the controller has seen the task end."""
        entry = next(entry for entry, _ in login.entries)
        refused = LoginRefused(f"The connection to {entry.name} was lost. Connect again.", RefusalReason.UNREACHABLE)
        try:
            async with asyncio.timeout(REASON_S):
                refused = await self._when_gone(entry.job, entry.task)
        except TimeoutError:
            log.info("the SSH server of task %s is lost while the task runs", entry.task)
        except Exception as exc:  # noqa: BLE001  (the login ends, whatever a store raises)
            log.warning("the store does not answer (%s); why a task was lost is not known", type(exc).__name__)
        login.end(refused)

    async def _when_gone(self, uid: JobUid, task: TaskUid) -> LoginRefused:
        """Wait until the store knows why the task is gone."""
        seen = -1
        while True:
            seen = await self._store.changes.wait(seen, REASON_S)
            job = await door.job_of(self._store, uid)
            refused = _REMOVED if job is None else names.gone(job, task)
            if refused is not None:
                return refused


class _Look:
    """One look at many logins, which share most of what has to be read."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._found: dict[Credential, Credential | LoginRefused] = {}
        self._jobs: dict[JobUid, Job | None] = {}
        self._rights: dict[tuple[Credential, TaskUid], Limits | None] = {}

    async def at(self, login: Login, credential: Credential) -> LoginRefused | None:
        """Why the login has to end; None while it may go on."""
        if credential not in self._found:
            self._found[credential] = await door.current(self._store, credential)
        found = self._found[credential]
        if isinstance(found, LoginRefused):
            return found
        for entry, limits in list(login.entries):
            refused = await self._at_task(found, entry, limits)
            if refused is not None:
                return refused
        return None

    def terms(self, credential: Credential) -> Credential:
        """The credential to look up next time: a key that was registered again has other terms. A certificate stays the
        one that logged in, whose revocation counts also when it has been renewed.
        """
        found = self._found[credential]
        return credential if isinstance(found, LoginRefused) or found.serial is not None else found

    async def _at_task(self, credential: Credential, entry: EntryPoint, limits: Limits) -> LoginRefused | None:
        if entry.job not in self._jobs:
            self._jobs[entry.job] = await door.job_of(self._store, entry.job)
        job = self._jobs[entry.job]
        if job is None:
            return _REMOVED
        key = credential, entry.task
        if key not in self._rights:
            now = door.utc_now()
            self._rights[key] = await lookup.entrance(self._store, credential, job, now, entry.alias)
        if self._rights[key] is None:
            return _CHANGED if job.user == credential.user else _NOT_SHARED
        return names.gone(job, entry.task) or (_CHANGED if self._rights[key] != limits else None)
