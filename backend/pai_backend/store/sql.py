"""The store on SQL: :class:`SqlStore` puts the modules of this room together and holds no logic of its own.

Reads go to :class:`database.Database`, writes to :class:`writer.Writer`, waiting to :class:`wake.Wake`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from sqlalchemy import Connection, make_url
from sqlalchemy.exc import ArgumentError

from pai_backend.model.attempts import Times
from pai_backend.model.errors import InvalidParameters, Unavailable
from pai_backend.model.ids import JobUid, PortLease
from pai_backend.model.job import Event, Job, NewEvent, Task
from pai_backend.platform.disk_reserve import DiskReserve
from pai_backend.store import (
    events,
    explanations,
    keys,
    lease,
    listing,
    lookup,
    migrate,
    noting,
    ports,
    run_times,
    save,
    sealing,
    tagging,
    tally,
    task_keys,
    tokens,
)
from pai_backend.store.base import AccessToken, Explanation, JobFilter, JobSummary, Lease, UserKey
from pai_backend.store.cipher import Cipher
from pai_backend.store.configurations import SqlConfigs
from pai_backend.store.database import Backing, Database
from pai_backend.store.deleting import SqlDeletion
from pai_backend.store.granting import SqlGrants
from pai_backend.store.grants import Act
from pai_backend.store.idle_clocks import SqlIdling
from pai_backend.store.keyring import LARGE_BYTES, KeyRing, KeySource
from pai_backend.store.matching import Findings
from pai_backend.store.recovering import SqlRecovery
from pai_backend.store.release import ReleaseRequest
from pai_backend.store.replace import Replacement
from pai_backend.store.restart import RestartRequest
from pai_backend.store.stop import StopRequest
from pai_backend.store.wake import Wake
from pai_backend.store.writer import Writer

if TYPE_CHECKING:
    from pai_backend.scheduling.jobs.reorder import Move, Moved

T = TypeVar("T", covariant=True)

FREE_SPACE = "Delete finished jobs (`pai delete`), or free some space on the disk of the data directory."

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class _Opening(Protocol[T]):
    """A query that opens what it reads."""

    def __call__(self, conn: Connection, *, cipher: Cipher) -> T: ...


class SqlStore:
    """Everything durable, in SQLite or PostgreSQL. Satisfies ``base.Store``, which documents the methods."""

    def __init__(self, url: str, keys: KeySource, reserve: DiskReserve | None = None) -> None:
        """``url`` is a SQLAlchemy URL, with or without the driver; ``keys`` are what is stored sealed with.

        ``reserve`` is of the disk that a SQLite database is on. Raises InvalidParameters for another database.
        """
        self._reserve = reserve
        self._database = Database(_backing(url, reserve))
        self._ring = KeyRing(keys)
        self._wake = Wake(self._database)
        self._writer = Writer(self._database, committed=self._wake.bump)
        self._findings = Findings()
        self.configs = SqlConfigs(self._database, self._writer)
        self.deletion = SqlDeletion(self._database, self._writer)
        self.grants = SqlGrants(self._database, self._writer, self._ring)
        self.idling = SqlIdling(self._database, self._writer, self._ring)
        self.recovery = SqlRecovery(self._database, self._writer, self._ring)

    async def open(self) -> None:
        """Connect, bring the schema to head, and have the keys of all that is sealed.

        Raises Unavailable and SecretKeyError; it may be called again then.
        """
        await self._database.open()
        try:
            if await self._database.read(migrate.revision) != migrate.HEAD:
                await self._database.write(migrate.to_head, announce=False)
            await self._take_keys()
            await self._wake.mark()
        except BaseException:
            await self._database.aclose()
            raise

    async def _take_keys(self) -> None:
        """Read the keys, and make sure that no other process seals with one that is not among them."""
        used = await self._database.read(sealing.used_keys)
        await self._ring.load(used)
        if not used:
            # Of processes that made different keys at once the first marks the database, and the others are refused.
            mark = partial(sealing.mark, made=self._ring.cipher.sealed(b""))
            await self._database.write(mark, announce=False)
            await self._ring.load(await self._database.read(sealing.used_keys))

    async def aclose(self) -> None:
        """Finish the writes that wait, then close all connections. Idempotent."""
        await self._writer.aclose()
        await self._wake.aclose()
        await self._database.aclose()

    # ---- intents, written by the api -----------------------------------------------------------
    async def submit(
        self,
        job: Job,
        source: bytes,
        filename: str,
        media_type: str,
        events: Sequence[NewEvent],
        *,
        secrets: Mapping[str, Any] = _NOTHING,
        replace: bool = False,
    ) -> Job:
        """Insert a new job, sealed before its transaction; concurrent calls share one."""
        self._require_disk()
        cipher = self._ring.cipher
        prepare = partial(save.prepare, job, source, filename, media_type, events, secrets, cipher)
        submission = await asyncio.to_thread(prepare) if len(source) > LARGE_BYTES else prepare()
        if replace:
            return await self._ring.tried(lambda cipher: self._writer.run(Replacement(submission, cipher)))
        return await self._writer.put(save.submit_all, submission)

    def _require_disk(self) -> None:
        """Raises Unavailable when the disk has no room for more jobs."""
        if self._reserve is not None and self._reserve.forbids_more():
            raise Unavailable("The disk of the backend is full: no jobs are accepted.", hint=FREE_SPACE)

    async def request_stop(self, uid: JobUid, by: str, at: datetime, reason: str = "") -> Job:
        """Record the wish that the job end."""
        return await self._ring.tried(
            lambda cipher: self._writer.run(StopRequest(uid, by, at, reason, cipher)),
        )

    async def request_restart(self, uid: JobUid, by: str, at: datetime) -> Job:
        """Record the wish that an ended job run again."""
        self._require_disk()
        return await self._ring.tried(
            lambda cipher: self._writer.run(RestartRequest(uid, by, at, cipher)),
        )

    async def request_release(
        self, uid: JobUid, names: Collection[str] | None, by: str, at: datetime
    ) -> tuple[Task, ...]:
        """Record the wish that kept tasks be released."""
        return await self._ring.tried(
            lambda cipher: self._writer.run(ReleaseRequest(uid, names, by, at, cipher)),
        )

    async def request_move(self, move: Move, by: str, at: datetime, *, shared: bool) -> tuple[Moved, ...]:
        """Record other places in the queue."""
        from pai_backend.store.move import MoveRequest  # with the scheduler, which gateways and agents do without

        return await self._ring.tried(
            lambda cipher: self._writer.run(MoveRequest(move, by, at, shared, cipher)),
        )

    # ---- the controller's side -----------------------------------------------------------------
    async def acquire_lease(self, holder: str, ttl_s: float, now: datetime, *, force: bool = False) -> Lease | None:
        """Become the controller."""
        change = partial(lease.acquire, holder=holder, ttl_s=ttl_s, now=now, force=force)
        return await self._writer.run(change, announce=False)

    async def renew_lease(self, epoch: int, ttl_s: float, now: datetime) -> Lease:
        """Remain the controller."""
        return await self._writer.run(partial(lease.renew, epoch=epoch, ttl_s=ttl_s, now=now), announce=False)

    async def lease(self) -> Lease | None:
        """Who decides, and until when."""
        return await self._database.read(lease.latest)

    async def save(
        self,
        job: Job,
        *,
        seen: Job,
        epoch: int,
        events: Sequence[NewEvent],
        at: datetime,
        lease: Sequence[PortLease] = (),
        release: Sequence[str] = (),
    ) -> Job:
        """Write a controller's decision; concurrent calls share a transaction."""
        decision = save.Decision(job, seen, epoch, events, at, lease, release)
        return await self._writer.put(save.save_all, decision)

    async def unfinished(self) -> list[Job]:
        """What recovery must look at."""
        return await self._parsed(await self._database.read(lookup.unfinished))

    async def dirty(self) -> list[Job]:
        """What the controller has not seen."""
        return await self._parsed(await self._database.read(lookup.dirty))

    async def run_times(self, limit: int) -> list[Times]:
        """How long attempts ran, by user and kind."""
        return await self._database.read(partial(run_times.latest, limit=limit))

    async def port_leases(self) -> list[PortLease]:
        """All leases."""
        return await self._database.read(ports.all_leases)

    async def task_keys(self, owner: str) -> str | None:
        """The host key of a task slot."""
        return (await self.kept_task_keys((owner,))).get(owner)

    async def kept_task_keys(self, owners: Collection[str]) -> dict[str, str]:
        """Keys of several slots."""
        found = await self._database.read(partial(task_keys.kept, owners=owners))
        return {owner: await self._text(sealed) for owner, sealed in found.items()}

    async def put_task_key(self, owner: str, private_pem: str, public: str) -> str:
        """Keep a host key unless there is one."""
        return (await self.keep_task_keys({owner: (private_pem, public)}))[owner]

    async def keep_task_keys(self, made: Mapping[str, tuple[str, str]], others: Collection[str] = ()) -> dict[str, str]:
        """Keep keys of slots that have none."""
        sealed = {owner: (self._ring.cipher.sealed(pem.encode()), public) for owner, (pem, public) in made.items()}
        change = partial(task_keys.keep, made=sealed, others=others)
        kept = await self._writer.run(change, announce=False)
        return {
            owner: made[owner][0] if owner in sealed and data == sealed[owner][0].data else await self._text(data)
            for owner, data in kept.items()
        }

    # ---- why a job waits -----------------------------------------------------------------------
    async def ask_why(self, uid: JobUid, at: datetime) -> None:
        """Open the question."""
        await self._writer.run(partial(explanations.ask, uid=uid, at=at))

    async def asked_why(self, limit: int) -> list[JobUid]:
        """Open questions."""
        return await self._database.read(partial(explanations.asked, limit=limit))

    async def answer_why(self, answers: Mapping[JobUid, str], at: datetime, epoch: int) -> None:
        """Close questions."""
        await self._writer.run(partial(explanations.answer, answers=answers, at=at, epoch=epoch))

    async def explanation(self, uid: JobUid) -> Explanation | None:
        """The last answer."""
        return await self._database.read(partial(explanations.explanation, uid=uid))

    # ---- reading -------------------------------------------------------------------------------
    async def job(self, uid: JobUid) -> Job:
        """By uid."""
        return await self._read_opened(partial(lookup.job, uid=uid))

    async def find(self, name: str, user: str | None = None) -> Job:
        """By whatever a user calls it."""
        return await self._read_opened(partial(lookup.find, name=name, user=user))

    async def by_alias(self, alias: str) -> Job | None:
        """By alias."""
        return await self._read_opened(partial(lookup.by_alias, alias=alias))

    async def list_jobs(self, which: JobFilter) -> tuple[list[JobSummary], int]:
        """A page and the total, from one snapshot."""
        rows, total = await self._database.read(partial(listing.listed, which=which, findings=self._findings))
        return rows, total if which.count else which.offset + len(rows)

    async def tag(self, uid: JobUid, tag: str) -> None:
        """Give a job a tag."""
        await self._writer.run(partial(tagging.tag, uid=uid, tag=tag))

    async def untag(self, uid: JobUid, tag: str) -> None:
        """Remove a tag from a job."""
        await self._writer.run(partial(tagging.untag, uid=uid, tag=tag))

    async def document(self, uid: JobUid) -> tuple[bytes, str, str]:
        """What was submitted, byte for byte."""
        source, filename, media_type = await self._database.read(partial(lookup.document, uid=uid))
        return await self._ring.open(source), filename, media_type

    async def job_secrets(self, uid: JobUid) -> Mapping[str, Any]:
        """Names and values of the document's secrets."""
        kept = await self._database.read(partial(lookup.secrets, uid=uid))
        values: dict[str, Any] = {} if kept is None else json.loads(await self._ring.open(kept))
        return values

    async def events(self, uid: JobUid, after: int = 0, limit: int = 1000, type_: str | None = None) -> list[Event]:
        """The job's log."""
        return await self._database.read(partial(events.of_job, uid=uid, after=after, limit=limit, type_=type_))

    async def news(self, uid: JobUid, after: int, limit: int = 1000) -> tuple[list[Event], bool]:
        """The job's log, and whether that is all of it."""
        return await self._database.read(partial(events.news, uid=uid, after=after, limit=limit))

    async def recent_events(self, position: str | None, user: str | None, limit: int = 1000) -> tuple[list[Event], str]:
        """The log of all jobs."""
        return await self._database.read(partial(events.recent, position=position, user=user, limit=limit))

    async def note(self, uid: JobUid, events: Sequence[NewEvent], at: datetime) -> None:
        """See ``Store.note``."""
        await self._writer.run(partial(noting.note, uid=uid, new=events, at=at))

    async def past_tasks(self, uid: JobUid) -> list[dict[str, object]]:
        """Tasks of all attempts."""
        return await self._database.read(partial(lookup.past_tasks, uid=uid))

    async def job_counts(self) -> dict[str, int]:
        """Jobs by state."""
        return await self._database.read(tally.counts)

    # ---- waking --------------------------------------------------------------------------------
    async def wait_change(self, seen: int, timeout_s: float) -> int:
        """Sleep until something is committed."""
        return await self._wake.wait(seen, timeout_s)

    async def change_mark(self) -> int:
        """Look for commits now."""
        return await self._wake.look()

    # ---- keys and secrets ----------------------------------------------------------------------
    async def add_key(self, key: UserKey, act: Act) -> None:
        """Register a public key."""
        await self._writer.run(partial(keys.add_key, key=key, act=act))

    async def replace_keys(self, user: str, wanted: Sequence[UserKey], act: Act) -> None:
        """Make these the user's keys."""
        await self._writer.run(partial(keys.replace_keys, user=user, wanted=wanted, act=act))

    async def keys(self, user: str | None = None) -> list[UserKey]:
        """Registered keys."""
        return await self._database.read(partial(keys.keys, user=user))

    async def remove_key(self, user: str, fingerprint: str, act: Act) -> None:
        """Forget a public key."""
        await self._writer.run(partial(keys.remove_key, user=user, fingerprint=fingerprint, act=act))

    async def add_token(self, token: AccessToken) -> None:
        """Keep a token's digest."""
        await self._writer.run(partial(tokens.add_token, token=token), announce=False)

    async def token(self, digest: str, now: datetime) -> AccessToken | None:
        """The living token of a digest."""
        return await self._database.read(partial(tokens.token, digest=digest, now=now))

    async def tokens_of(self, user: str, now: datetime) -> list[AccessToken]:
        """A user's living tokens."""
        return await self._database.read(partial(tokens.tokens_of, user=user, now=now))

    async def remove_token(self, user: str, digest: str, act: Act) -> None:
        """Forget a token."""
        await self._writer.run(partial(tokens.remove_token, user=user, digest=digest, act=act))

    async def claim(self, name: str, until: datetime, now: datetime) -> bool:
        """First come, first served."""
        return await self._writer.run(partial(keys.claim, name=name, until=until, now=now), announce=False)

    async def kept_secret(self, name: str) -> str | None:
        """The kept secret, if there is one."""
        kept = await self._database.read(partial(keys.secret, name=name))
        return None if kept is None else await self._text(kept)

    async def secret(self, name: str, make: str) -> str:
        """The kept secret, or ``make``, now kept."""
        kept = await self._database.read(partial(keys.secret, name=name))
        if kept is None:
            made = self._ring.cipher.sealed(make.encode())
            kept = await self._writer.run(partial(keys.put_secret, name=name, made=made), announce=False)
        return await self._text(kept)

    async def reseal(self, report: Callable[[int], None]) -> list[str]:
        """Read the keys again, then seal with the newest one everything that is sealed with others, while others go on.

        It may be ended and called again at any time. ``report`` is told how many rows of each batch were done.
        Returns what could not be opened, each by table and key; it stays as it is. Raises Unavailable, SecretKeyError.
        """
        await self._ring.load(await self.sealed_with())
        return await sealing.reseal_all(self._database, self._ring.cipher, report)

    async def sealed_with(self) -> frozenset[str]:
        """Identifiers of the keys that stored values are sealed with."""
        return await self._database.read(sealing.used_keys)

    # ---- opening what is sealed ----------------------------------------------------------------
    async def _read_opened(self, query: _Opening[T]) -> T:
        """What a query makes of sealed rows, where the database's work is done: it may parse much."""
        return await self._ring.tried(lambda cipher: self._database.read(lambda conn: query(conn, cipher=cipher)))

    async def _parsed(self, stored: Sequence[lookup.StoredJob]) -> list[Job]:
        return await self._ring.tried(lambda cipher: lookup.parsed(stored, cipher))

    async def _text(self, sealed: bytes) -> str:
        return (await self._ring.open(sealed)).decode()


def _backing(text: str, reserve: DiskReserve | None) -> Backing:
    """The backing for a URL; each is imported only when it is asked for."""
    try:
        url = make_url(text)
    except ArgumentError as error:
        raise InvalidParameters(
            "`database` is not a database URL.", hint="For example sqlite:////path/pai.sqlite or postgresql://host/pai."
        ) from error
    kind = url.get_backend_name()
    if kind == "sqlite":
        from pai_backend.store.sqlite import SqliteBacking

        return SqliteBacking(url, reserve)
    if kind in ("postgresql", "postgres"):
        from pai_backend.store.postgres import PostgresBacking

        return PostgresBacking(url)
    raise InvalidParameters(f"`database` cannot be {kind}.", hint="Use a sqlite or a postgresql URL.")
