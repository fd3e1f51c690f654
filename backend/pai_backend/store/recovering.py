"""Identity, orphans and jobs taken back, in SQL."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Collection, Sequence
from datetime import datetime
from functools import partial

from sqlalchemy import Connection

from pai_backend.model.ids import TaskUid
from pai_backend.model.job import Job
from pai_backend.store import orphans, server_secrets, taking_back
from pai_backend.store.keyring import LARGE_BYTES
from pai_backend.store.orphans import Orphan
from pai_backend.store.repository import Repository
from pai_backend.store.taking_back import LostJob

IDENTITY = "identity"
"""Name of the server secret with it. It is no secret, but kept where every database has room for it."""


LOG_PLACE = "log-place-"
"""What the names of secrets begin with that stand for a directory of logs; they hold nothing."""


class Recovery(Repository):
    """Which database this is, and what runs without being known to it."""

    async def identity(self) -> str:
        """Which database this is: made at the first call, and the same in every copy and backup of it."""
        kept = await self._database.read(partial(server_secrets.secret, name=IDENTITY))
        if kept is None:
            made = self._ring.cipher.sealed(secrets.token_hex(8).encode())
            kept = await self._writer.run(partial(server_secrets.put_secret, name=IDENTITY, made=made), announce=False)
        return (await self._ring.open(kept)).decode()

    async def seal(self, plain: bytes) -> str:
        """``plain`` as text that only holders of the database's keys can read or make."""
        cipher = self._ring.cipher
        sealed = await asyncio.to_thread(cipher.seal, plain) if len(plain) > LARGE_BYTES else cipher.seal(plain)
        return sealed.decode("ascii")

    async def unseal(self, sealed: str) -> bytes:
        """What was sealed. Raises Unavailable when no key opens it."""
        return await self._ring.open(sealed.encode())

    async def take_back(self, lost: LostJob, epoch: int, at: datetime) -> Job:
        """Store a job that runs and is not known, or known in an earlier state. Raises CannotTakeBack, Fenced."""
        cipher = self._ring.cipher

        def change(conn: Connection) -> Job:
            return taking_back.take_back(conn, lost, cipher, epoch, at)

        return await self._writer.run(change)

    async def add_log_place(self, mark: str) -> None:
        """Logs of tasks are written to the directory with this mark (``engine.log_place``). Idempotent."""
        if mark not in await self.log_places():
            made = self._ring.cipher.sealed(b"")
            await self._writer.run(partial(server_secrets.put_secret, name=LOG_PLACE + mark, made=made), announce=False)

    async def log_places(self) -> frozenset[str]:
        """The marks of all directories that logs were written to."""
        names = await self._database.read(partial(server_secrets.secret_names, prefix=LOG_PLACE))
        return frozenset(name.removeprefix(LOG_PLACE) for name in names)

    async def orphans(self) -> list[Orphan]:
        """Tasks that the engine has and the database does not know, the longest known first."""
        return await self._database.read(orphans.listed)

    async def put(self, found: Sequence[Orphan], gone: Collection[TaskUid], epoch: int) -> None:
        """Write what the controller sees of orphans. Raises Fenced."""
        change = partial(orphans.put, found=found, gone=gone, epoch=epoch)
        await self._writer.run(change, announce=False)

    async def end(self, task: TaskUid, by: str) -> None:
        """Ask the controller to end an orphan, and wake it. Idempotent. Raises NoSuchTask."""
        await self._writer.run(partial(orphans.request_end, task=task, by=by))
