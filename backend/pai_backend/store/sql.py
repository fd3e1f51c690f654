"""The store on SQL: :class:`SqlStore` puts the modules of this room together and holds no logic of its own.

Reads go to :class:`database.Database`, writes to :class:`writer.Writer`, waiting to :class:`wake.Wake`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from pai_backend.model.errors import InvalidParameters
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Event, Job
from pai_backend.store import events, keys, lease, listing, lookup, migrate, ports, save, submit, tagging, tokens
from pai_backend.store.base import AccessToken, JobFilter, JobSummary, Lease, NewEvent, PortLease, UserKey
from pai_backend.store.database import Backing, Database
from pai_backend.store.stop import StopRequest
from pai_backend.store.wake import Wake
from pai_backend.store.writer import Writer


class SqlStore:
    """Everything durable, in SQLite or PostgreSQL. Satisfies ``base.Store``, which documents the methods."""

    def __init__(self, url: str) -> None:
        """``url`` is a SQLAlchemy URL, with or without the driver. Raises InvalidParameters for another database."""
        self._database = Database(_backing(url))
        self._wake = Wake(self._database)
        self._writer = Writer(self._database, committed=self._wake.bump)

    async def open(self) -> None:
        """Connect and bring the schema to head. Raises Unavailable; it may be called again then."""
        await self._database.open()
        try:
            if await self._database.read(migrate.revision) != migrate.HEAD:
                await self._database.write(migrate.to_head, announce=False)
            await self._wake.mark()
        except BaseException:
            await self._database.aclose()
            raise

    async def aclose(self) -> None:
        """Finish the writes that wait, then close all connections. Idempotent."""
        await self._writer.aclose()
        await self._wake.aclose()
        await self._database.aclose()

    # ---- intents, written by the api -----------------------------------------------------------
    async def submit(self, job: Job, source: bytes, filename: str, media_type: str, events: Sequence[NewEvent]) -> Job:
        """Insert a new job; concurrent calls share a transaction."""
        submission = submit.prepare(job, source, filename, media_type, events)
        return await self._writer.put(submit.submit_all, submission)

    async def request_stop(self, uid: JobUid, by: str, at: datetime, reason: str = "") -> Job:
        """Record the wish that the job end."""
        return await self._writer.run(StopRequest(uid, by, at, reason))

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
        return await lookup.parsed(await self._database.read(lookup.unfinished))

    async def dirty(self) -> list[Job]:
        """What the controller has not seen."""
        return await lookup.parsed(await self._database.read(lookup.dirty))

    async def port_leases(self) -> list[PortLease]:
        """All leases."""
        return await self._database.read(ports.all_leases)

    async def task_keys(self, owner: str) -> str | None:
        """The host key of a task slot."""
        return await self._database.read(partial(keys.task_key, owner=owner))

    async def put_task_key(self, owner: str, private_pem: str, public: str) -> str:
        """Keep a host key unless there is one."""
        change = partial(keys.put_task_key, owner=owner, private_pem=private_pem, public=public)
        return await self._writer.run(change, announce=False)

    # ---- reading -------------------------------------------------------------------------------
    async def job(self, uid: JobUid) -> Job:
        """By uid."""
        return await self._database.read(partial(lookup.job, uid=uid))

    async def find(self, name: str, user: str | None = None) -> Job:
        """By whatever a user calls it."""
        return await self._database.read(partial(lookup.find, name=name, user=user))

    async def by_alias(self, alias: str) -> Job | None:
        """By alias."""
        return await self._database.read(partial(lookup.by_alias, alias=alias))

    async def list_jobs(self, which: JobFilter) -> tuple[list[JobSummary], int]:
        """A page and the total."""
        return await self._database.read(partial(listing.page, which=which))

    async def tag(self, uid: JobUid, tag: str) -> None:
        """Give a job a tag."""
        await self._writer.run(partial(tagging.tag, uid=uid, tag=tag))

    async def untag(self, uid: JobUid, tag: str) -> None:
        """Take a tag away."""
        await self._writer.run(partial(tagging.untag, uid=uid, tag=tag))

    async def document(self, uid: JobUid) -> tuple[bytes, str, str]:
        """What was submitted, byte for byte."""
        return await self._database.read(partial(lookup.document, uid=uid))

    async def events(self, uid: JobUid, after: int = 0, limit: int = 1000) -> list[Event]:
        """The job's log."""
        return await self._database.read(partial(events.of_job, uid=uid, after=after, limit=limit))

    async def recent_events(self, position: str | None, user: str | None, limit: int = 1000) -> tuple[list[Event], str]:
        """The log of all jobs."""
        return await self._database.read(partial(events.recent, position=position, user=user, limit=limit))

    async def past_tasks(self, uid: JobUid) -> list[dict[str, object]]:
        """Tasks of all attempts."""
        return await self._database.read(partial(lookup.past_tasks, uid=uid))

    async def job_counts(self) -> dict[str, int]:
        """Jobs by state."""
        return await self._database.read(listing.counts)

    # ---- waking --------------------------------------------------------------------------------
    async def wait_change(self, seen: int, timeout_s: float) -> int:
        """Sleep until something is committed."""
        return await self._wake.wait(seen, timeout_s)

    # ---- keys and secrets ----------------------------------------------------------------------
    async def add_key(self, key: UserKey) -> None:
        """Register a public key."""
        await self._writer.run(partial(keys.add_key, key=key))

    async def keys(self, user: str | None = None) -> list[UserKey]:
        """Registered keys."""
        return await self._database.read(partial(keys.keys, user=user))

    async def remove_key(self, user: str, fingerprint: str) -> None:
        """Forget a public key."""
        await self._writer.run(partial(keys.remove_key, user=user, fingerprint=fingerprint))

    async def add_token(self, token: AccessToken) -> None:
        """Keep a token's digest."""
        await self._writer.run(partial(tokens.add_token, token=token), announce=False)

    async def token(self, digest: str, now: datetime) -> AccessToken | None:
        """The living token of a digest."""
        return await self._database.read(partial(tokens.token, digest=digest, now=now))

    async def tokens_of(self, user: str, now: datetime) -> list[AccessToken]:
        """A user's living tokens."""
        return await self._database.read(partial(tokens.tokens_of, user=user, now=now))

    async def remove_token(self, user: str, digest: str) -> None:
        """Forget a token."""
        await self._writer.run(partial(tokens.remove_token, user=user, digest=digest), announce=False)

    async def claim(self, name: str, until: datetime, now: datetime) -> bool:
        """First come, first served."""
        return await self._writer.run(partial(keys.claim, name=name, until=until, now=now), announce=False)

    async def secret(self, name: str, make: str) -> str:
        """The kept secret, or ``make``, now kept."""
        kept = await self._database.read(partial(keys.secret, name=name))
        if kept is not None:
            return kept
        return await self._writer.run(partial(keys.put_secret, name=name, make=make), announce=False)


def _backing(text: str) -> Backing:
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

        return SqliteBacking(url)
    if kind in ("postgresql", "postgres"):
        from pai_backend.store.postgres import PostgresBacking

        return PostgresBacking(url)
    raise InvalidParameters(f"`database` cannot be {kind}.", hint="Use a sqlite or a postgresql URL.")
