"""A store and an engine in memory, limited to what the gateway uses of them."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import cast

from pai_backend.access.broker.stock import make_rsa
from pai_backend.access.keys import RSA_HOST_KEY_SECRET, parse_public_key
from pai_backend.engine.base import Connection, Engine, EngineError
from pai_backend.model.errors import NoSuchJob, Unavailable
from pai_backend.model.ids import JobUid, TaskUid
from pai_backend.model.job import Job
from pai_backend.model.node import Placement
from pai_backend.store.base import NewEvent, Store, UserKey
from pai_backend.store.grants import Certificate, JobKey, Share


@functools.cache
def _rsa() -> str:
    """A pair for all stores of a run: it takes long to make."""
    return make_rsa()


class MemoryGrants:
    """Keys, certificates, shares and lockouts of a :class:`MemoryStore`."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.issued: dict[int, Certificate] = {}
        self.job_keys: dict[str, JobKey] = {}
        self.given: list[Share] = []
        self.locked: set[str] = set()
        self.gone: set[str] = set()
        self.administrators: set[str] = set()
        self.uses: list[tuple[str, str]] = []

    async def key(self, fingerprint: str) -> UserKey | None:
        self._store.read()
        return self._store.registered.get(fingerprint)

    async def job_key(self, fingerprint: str) -> JobKey | None:
        self._store.read()
        return self.job_keys.get(fingerprint)

    async def certificate(self, serial: int) -> Certificate | None:
        self._store.read()
        return self.issued.get(serial)

    async def certificates(self, user: str | None, now: datetime) -> list[Certificate]:
        self._store.read()
        living = [kept for kept in self.issued.values() if kept.revoked_at is None and kept.expires_at > now]
        return [kept for kept in living if user in (None, kept.user)]

    async def shares(self, job: JobUid) -> list[Share]:
        self._store.read()
        return [share for share in self.given if share.job == job]

    async def shut_out(self, users: Collection[str]) -> dict[str, bool]:
        self._store.read()
        return {user: user in self.locked for user in users if user in self.locked | self.gone}

    async def admins(self, users: Collection[str]) -> frozenset[str]:
        self._store.read()
        return frozenset(self.administrators & set(users))

    async def note_key_use(self, fingerprint: str, at: datetime, source: str) -> None:
        self._store.read()
        self.uses.append((fingerprint, source))

    async def note_certificate_use(self, serial: int, at: datetime, source: str) -> None:
        self._store.read()
        self.uses.append((str(serial), source))


class MemoryStore:
    """Jobs, keys and secrets in dictionaries; every write wakes those who wait for a change."""

    def __init__(self) -> None:
        self.jobs: dict[JobUid, Job] = {}
        self.registered: dict[str, UserKey] = {}
        self.secrets: dict[str, str] = {RSA_HOST_KEY_SECRET: _rsa()}
        self.host_keys: dict[str, str] = {}
        self.noted: list[tuple[JobUid, NewEvent]] = []
        self.grants = MemoryGrants(self)
        self.broken = False
        self._mark = 0
        self._changed = asyncio.Event()

    def as_store(self) -> Store:
        return cast("Store", self)

    def written(self) -> None:
        self._mark += 1
        self._changed.set()
        self._changed = asyncio.Event()

    def read(self) -> None:
        if self.broken:
            raise Unavailable("the database is away")

    # ---- for tests -----------------------------------------------------------------------------
    def put(self, job: Job) -> Job:
        self.jobs[job.uid] = job
        self.written()
        return job

    def register(self, user: str, public_key: str) -> UserKey:
        parsed = parse_public_key(public_key)
        key = UserKey(parsed.fingerprint, user, parsed.line, parsed.comment, datetime.now(UTC))
        self.registered[key.fingerprint] = key
        self.written()
        return key

    def unregister(self, fingerprint: str) -> None:
        del self.registered[fingerprint]
        self.written()

    # ---- the Store protocol --------------------------------------------------------------------
    async def by_alias(self, alias: str) -> Job | None:
        self.read()
        return next((job for job in self.jobs.values() if job.alias == alias), None)

    async def find(self, name: str, user: str | None = None) -> Job:
        self.read()
        for job in self.jobs.values():
            if name in (job.id, job.alias, job.uid) or (job.name == name and job.user == user):
                return job
        raise NoSuchJob(f"no job {name}")

    async def job(self, uid: JobUid) -> Job:
        self.read()
        try:
            return self.jobs[uid]
        except KeyError:
            raise NoSuchJob(f"no job {uid}") from None

    async def keys(self, user: str | None = None) -> list[UserKey]:
        self.read()
        return [key for key in self.registered.values() if user is None or key.user == user]

    async def note(self, uid: JobUid, events: Sequence[NewEvent], at: datetime) -> None:
        await self.job(uid)
        self.noted += [(uid, event) for event in events]

    async def task_keys(self, owner: str) -> str | None:
        return self.host_keys.get(owner)

    async def kept_task_keys(self, owners: Collection[str]) -> dict[str, str]:
        return {owner: self.host_keys[owner] for owner in owners if owner in self.host_keys}

    async def put_task_key(self, owner: str, private_pem: str, public: str) -> str:
        return self.host_keys.setdefault(owner, private_pem)

    async def keep_task_keys(self, made: Mapping[str, tuple[str, str]], others: Collection[str] = ()) -> dict[str, str]:
        for owner, (private_pem, _) in made.items():
            self.host_keys.setdefault(owner, private_pem)
        return await self.kept_task_keys([*made, *others])

    async def kept_secret(self, name: str) -> str | None:
        return self.secrets.get(name)

    async def secret(self, name: str, make: str) -> str:
        return self.secrets.setdefault(name, make)

    async def wait_change(self, seen: int, timeout_s: float) -> int:
        self.read()
        if seen == self._mark:
            try:
                async with asyncio.timeout(timeout_s):
                    await self._changed.wait()
            except TimeoutError:
                pass
        return self._mark


class LoopbackEngine:
    """Tasks are whatever listens on this machine's loopback address."""

    def __init__(self) -> None:
        self.dials: list[tuple[TaskUid, int]] = []

    def as_engine(self) -> Engine:
        return cast("Engine", self)

    async def dial(self, placement: Placement, uid: TaskUid, port: int) -> Connection:
        self.dials.append((uid, port))
        try:
            return Connection(*await asyncio.open_connection("127.0.0.1", port))
        except OSError as exc:
            raise EngineError("nothing answers on its SSH port") from exc
