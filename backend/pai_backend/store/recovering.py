"""Identity, orphans and jobs taken back, in SQL. :class:`SqlRecovery` satisfies ``recovery.RecoveryStore``."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Collection, Sequence
from datetime import datetime
from functools import partial

from sqlalchemy import Connection

from pai_backend.model.ids import TaskUid
from pai_backend.model.job import Job
from pai_backend.store import keys, orphans, taking_back
from pai_backend.store.database import Database
from pai_backend.store.keyring import LARGE_BYTES, KeyRing
from pai_backend.store.orphans import Orphan
from pai_backend.store.taking_back import LostJob
from pai_backend.store.writer import Writer

IDENTITY = "identity"
"""Name of the server secret with it. It is no secret, but kept where every database has room for it."""


LOG_PLACE = "log-place-"
"""What the names of secrets begin with that stand for a directory of logs; they hold nothing."""


class SqlRecovery:
    """``recovery.RecoveryStore`` documents the methods."""

    def __init__(self, database: Database, writer: Writer, ring: KeyRing) -> None:
        self._database, self._writer, self._ring = database, writer, ring

    async def identity(self) -> str:
        """Which database this is."""
        kept = await self._database.read(partial(keys.secret, name=IDENTITY))
        if kept is None:
            made = self._ring.cipher.sealed(secrets.token_hex(8).encode())
            kept = await self._writer.run(partial(keys.put_secret, name=IDENTITY, made=made), announce=False)
        return (await self._ring.open(kept)).decode()

    async def seal(self, plain: bytes) -> str:
        """Text for holders of the keys."""
        cipher = self._ring.cipher
        sealed = await asyncio.to_thread(cipher.seal, plain) if len(plain) > LARGE_BYTES else cipher.seal(plain)
        return sealed.decode("ascii")

    async def unseal(self, sealed: str) -> bytes:
        """What was sealed."""
        return await self._ring.open(sealed.encode())

    async def take_back(self, lost: LostJob, epoch: int, at: datetime) -> Job:
        """Store a job as its tasks carry it."""
        cipher = self._ring.cipher

        def change(conn: Connection) -> Job:
            return taking_back.take_back(conn, lost, cipher, epoch, at)

        return await self._writer.run(change)

    async def add_log_place(self, mark: str) -> None:
        """Note a directory of logs."""
        if mark not in await self.log_places():
            made = self._ring.cipher.sealed(b"")
            await self._writer.run(partial(keys.put_secret, name=LOG_PLACE + mark, made=made), announce=False)

    async def log_places(self) -> frozenset[str]:
        """Directories of logs."""
        names = await self._database.read(partial(keys.secret_names, prefix=LOG_PLACE))
        return frozenset(name.removeprefix(LOG_PLACE) for name in names)

    async def orphans(self) -> list[Orphan]:
        """Tasks that nothing here knows."""
        return await self._database.read(orphans.listed)

    async def put(self, found: Sequence[Orphan], gone: Collection[TaskUid], epoch: int) -> None:
        """What the controller sees of them."""
        change = partial(orphans.put, found=found, gone=gone, epoch=epoch)
        await self._writer.run(change, announce=False)

    async def end(self, task: TaskUid, by: str) -> None:
        """Ask for the end of one."""
        await self._writer.run(partial(orphans.request_end, task=task, by=by))
