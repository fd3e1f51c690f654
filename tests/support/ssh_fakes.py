"""A store and an engine in memory, limited to what the gateway uses of them."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import cast

from pai_backend.access.broker.rights import is_living
from pai_backend.access.broker.stock import make_rsa
from pai_backend.access.keys import RSA_HOST_KEY_SECRET, parse_public_key
from pai_backend.engine.base import Connection, Engine, EngineError
from pai_backend.model.audit import AuditEvent
from pai_backend.model.errors import NoSuchJob, Unavailable
from pai_backend.model.ids import JobUid, TaskUid
from pai_backend.model.job import Job
from pai_backend.model.node import Placement
from pai_backend.store.base import NewEvent, UserKey
from pai_backend.store.grants import Certificate, JobKey, Share
from pai_backend.store.sql import Store


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

    async def shares_in_force(self, job: JobUid, now: datetime) -> list[Share]:
        self._store.read()
        return [share for share in self.given if share.job == job and is_living(share, now)]

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
        self.registered: dict[str, UserKey] = {}
        self.entries: list[AuditEvent] = []
        self.noted: list[tuple[JobUid, NewEvent]] = []
        self.grants = MemoryGrants(self)
        self.broken = False
        self.jobs = MemoryJobs(self)
        self.events = MemoryEvents(self)
        self.task_keys = MemoryTaskKeys()
        self.secrets = MemorySecrets()
        self.changes = MemoryChanges(self)

    def as_store(self) -> Store:
        return cast("Store", self)

    def written(self) -> None:
        self.changes.bump()

    def read(self) -> None:
        if self.broken:
            raise Unavailable("the database is away")

    # ---- for tests -----------------------------------------------------------------------------
    def put(self, job: Job) -> Job:
        self.jobs.by_uid[job.uid] = job
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


class MemoryJobs:
    """Jobs of a :class:`MemoryStore`."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.by_uid: dict[JobUid, Job] = {}

    async def by_alias(self, alias: str, user: str = "") -> Job | None:
        self._store.read()
        return next((job for job in self.by_uid.values() if job.alias == alias), None)

    async def find(self, name: str, user: str | None = None) -> Job:
        self._store.read()
        for job in self.by_uid.values():
            if name in (job.id, job.alias, job.uid) or (job.name == name and job.user == user):
                return job
        raise NoSuchJob(f"no job {name}")

    async def get(self, uid: JobUid) -> Job:
        self._store.read()
        try:
            return self.by_uid[uid]
        except KeyError:
            raise NoSuchJob(f"no job {uid}") from None


class MemoryEvents:
    """Events of jobs of a :class:`MemoryStore`."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def note(
        self, uid: JobUid, events: Sequence[NewEvent], at: datetime, entry: AuditEvent | None = None
    ) -> None:
        await self._store.jobs.get(uid)
        self._store.entries += [entry] if entry is not None else []
        self._store.noted += [(uid, event) for event in events]


class MemoryTaskKeys:
    """Host keys of slots."""

    def __init__(self) -> None:
        self.pems: dict[str, str] = {}

    async def get(self, owner: str) -> str | None:
        return self.pems.get(owner)

    async def kept(self, owners: Collection[str]) -> dict[str, str]:
        return {owner: self.pems[owner] for owner in owners if owner in self.pems}

    async def put(self, owner: str, private_pem: str, public: str) -> str:
        return self.pems.setdefault(owner, private_pem)

    async def keep(self, made: Mapping[str, tuple[str, str]], others: Collection[str] = ()) -> dict[str, str]:
        for owner, (private_pem, _) in made.items():
            self.pems.setdefault(owner, private_pem)
        return await self.kept([*made, *others])


class MemorySecrets:
    """The server's secrets."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {RSA_HOST_KEY_SECRET: _rsa()}

    async def kept(self, name: str) -> str | None:
        return self.values.get(name)

    async def get(self, name: str, make: str) -> str:
        return self.values.setdefault(name, make)


class MemoryChanges:
    """Wakes those who wait for a change of a :class:`MemoryStore`."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._mark = 0
        self._changed = asyncio.Event()

    def bump(self) -> None:
        self._mark += 1
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait(self, seen: int, timeout_s: float) -> int:
        self._store.read()
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
