"""Jobs as the other rooms have them: submitted, decided on, looked up and listed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from sqlalchemy import Connection

from pai_backend.model.errors import Unavailable
from pai_backend.model.ids import JobUid, PortLease
from pai_backend.model.job import Job, NewEvent, Task
from pai_backend.model.text import Text
from pai_backend.platform.disk_reserve import DiskReserve
from pai_backend.store import listing, lookup, save, tagging, tally
from pai_backend.store.base import JobFilter, JobSummary
from pai_backend.store.cipher import Cipher
from pai_backend.store.database import Database
from pai_backend.store.intent import ReleaseRequest, RestartRequest, StopRequest, TimeIsUp
from pai_backend.store.keyring import LARGE_BYTES, KeyRing
from pai_backend.store.matching import Findings
from pai_backend.store.replace import take_over
from pai_backend.store.repository import Repository
from pai_backend.store.submission_keys import SubmissionKey
from pai_backend.store.writer import Writer

if TYPE_CHECKING:
    from pai_backend.scheduling.jobs.reorder import Move, Moved

T = TypeVar("T", covariant=True)

FREE_SPACE = Text("Delete finished jobs (`pai delete`), or free some space on the disk of the data directory.")

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class _Opening(Protocol[T]):
    """A query that opens what it reads."""

    def __call__(self, conn: Connection, *, cipher: Cipher) -> T: ...


class Jobs(Repository):
    """Jobs: what users want of them, what the controller decides, and looking them up."""

    def __init__(self, database: Database, writer: Writer, ring: KeyRing, reserve: DiskReserve | None) -> None:
        """``reserve`` is of the disk that a SQLite database is on."""
        super().__init__(database, writer, ring)
        self._reserve = reserve
        self._findings = Findings()

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
        key: SubmissionKey | None = None,
    ) -> Job:
        """Insert a new job, its tasks, its document and its first events. Concurrent calls may share a transaction.

        The document and ``secrets`` (names and values of its secrets; none if not given) are kept sealed.

        ``job.alias`` is a proposal: when taken, a suffixed one is stored and returned.
        Raises NameTaken (model.errors) when this user has a job of that name, unless it is to ``replace`` that one:
        then it gets that job's name, alias and host keys; that job gets others, ``job.replaced``, and is asked to stop.
        A job with a workspace name takes it over, from one that goes on only with ``replace``, or raises AddressTaken.
        With ``key`` the same submission again returns the job that the first one made.
        """
        self._require_disk()
        cipher = self._ring.cipher
        prepare = partial(save.prepare, job, source, filename, media_type, events, secrets, cipher)
        submission = await asyncio.to_thread(prepare) if len(source) > LARGE_BYTES else prepare()
        if replace or key is not None or job.spec.address:
            change = partial(take_over, submission=submission, may_replace=replace, key=key)
            return await self._ring.tried(lambda cipher: self._writer.run(partial(change, cipher=cipher)))
        return await self._writer.put(save.submit_all, submission)

    def _require_disk(self) -> None:
        """Raises Unavailable when the disk has no room for more jobs."""
        if self._reserve is not None and self._reserve.forbids_more():
            raise Unavailable(Text("The disk of the backend is full: no jobs are accepted."), hint=FREE_SPACE)

    async def request_stop(self, uid: JobUid, by: str, at: datetime, reason: str = "") -> Job:
        """Set ``desired`` to STOP unless final or already so; appends ``job.stop-requested``. Idempotent."""
        return await self._ring.tried(
            lambda cipher: self._writer.run(StopRequest(uid, by, at, reason, cipher)),
        )

    async def stop_overdue(self, uid: JobUid, attempt: int, at: datetime, reason: str, epoch: int) -> bool:
        """Write the wish that the job end because this attempt of it has run for as long as it may.

        False: it is over, asked to stop anyway, or in another attempt. Raises NoSuchJob, Fenced.
        """
        return await self._ring.tried(
            lambda cipher: self._writer.run(TimeIsUp(uid, attempt, at, reason, epoch, cipher)),
        )

    async def request_restart(self, uid: JobUid, by: str, at: datetime) -> Job:
        """Let a job that has ended run again under its uid and names; appends ``job.restart-requested``.

        Idempotent: a job that goes on is left alone. Raises NoSuchJob, ReadOnlyJob (it is being stopped or deleted),
        Unavailable (the disk is full).
        """
        self._require_disk()
        return await self._ring.tried(
            lambda cipher: self._writer.run(RestartRequest(uid, by, at, cipher)),
        )

    async def request_release(
        self, uid: JobUid, names: Collection[str] | None, by: str, at: datetime
    ) -> tuple[Task, ...]:
        """Release kept tasks (``role-index``; None: all), returns which; appends ``job.release-requested``.

        Idempotent: what is not kept is left alone. Raises NoSuchJob.
        """
        return await self._ring.tried(
            lambda cipher: self._writer.run(ReleaseRequest(uid, names, by, at, cipher)),
        )

    async def request_move(self, move: Move, by: str, at: datetime, *, shared: bool) -> tuple[Moved, ...]:
        """Change places in the queue of waiting jobs, returns the turns that this changes; each has a ``job.moved``.

        ``shared``: all virtual clusters wait for the same cells. All or nothing; idempotent. Raises NoSuchJob,
        NotWaiting, Forbidden, OtherQueue.
        """
        from pai_backend.store.move import MoveRequest  # with the scheduler, which gateways and agents do without

        return await self._ring.tried(
            lambda cipher: self._writer.run(MoveRequest(move, by, at, shared, cipher)),
        )

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
        """Write a controller's decision in one transaction and return it with its new version.

        Writes only tasks that differ from ``seen`` (tasks of earlier attempts stay as history), leases
        and releases ports (``release`` names owners), clears the dirty mark. All or nothing.
        Raises Conflict (``seen.version`` is stale), Fenced, PortTaken.
        """
        decision = save.Decision(job, seen, epoch, events, at, lease, release)
        return await self._writer.put(save.save_all, decision)

    async def unfinished(self) -> list[Job]:
        """Every job that is not final or still has a task not forgotten, for recovery."""
        return await self._parsed(await self._database.read(lookup.unfinished))

    async def dirty(self) -> list[Job]:
        """Jobs with intents the controller has not seen yet (new, or stop requested), oldest first."""
        return await self._parsed(await self._database.read(lookup.dirty))

    async def get(self, uid: JobUid) -> Job:
        """Raises NoSuchJob."""
        return await self._read_opened(partial(lookup.job, uid=uid))

    async def find(self, name: str, user: str | None = None) -> Job:
        """By ``user~name``, alias, uid, or bare name of ``user``. Raises NoSuchJob."""
        return await self._read_opened(partial(lookup.find, name=name, user=user))

    async def by_alias(self, alias: str, user: str = "") -> Job | None:
        """The job that holds that workspace name of ``user``, or else has that alias."""
        return await self._read_opened(partial(lookup.by_alias, alias=alias, user=user))

    async def page(self, which: JobFilter) -> tuple[list[JobSummary], int]:
        """A page and the total count that match (see ``JobFilter.count``)."""
        rows, total = await self._database.read(partial(listing.listed, which=which, findings=self._findings))
        return rows, total if which.count else which.offset + len(rows)

    async def counts(self) -> dict[str, int]:
        """State -> number of jobs, for metrics."""
        return await self._database.read(tally.counts)

    async def tag(self, uid: JobUid, tag: str) -> None:
        """Give the job a tag. Idempotent. Raises NoSuchJob, InvalidParameters when it has too many."""
        await self._writer.run(partial(tagging.tag, uid=uid, tag=tag))

    async def untag(self, uid: JobUid, tag: str) -> None:
        """Take a tag away. Raises NoSuchJob, NoSuchTag."""
        await self._writer.run(partial(tagging.untag, uid=uid, tag=tag))

    async def document(self, uid: JobUid) -> tuple[bytes, str, str]:
        """The submitted bytes, file name and media type, exactly as they came."""
        source, filename, media_type = await self._database.read(partial(lookup.document, uid=uid))
        return await self._ring.open(source), filename, media_type

    async def secrets(self, uid: JobUid) -> Mapping[str, Any]:
        """Names and values of the secrets of a job's document; empty when it has none. Raises NoSuchJob."""
        kept = await self._database.read(partial(lookup.secrets, uid=uid))
        values: dict[str, Any] = {} if kept is None else json.loads(await self._ring.open(kept))
        return values

    async def past_tasks(self, uid: JobUid) -> list[dict[str, object]]:
        """Tasks of all attempts as stored (``Task`` in JSON form), oldest first."""
        return await self._database.read(partial(lookup.past_tasks, uid=uid))

    async def _read_opened(self, query: _Opening[T]) -> T:
        """What a query makes of sealed rows, where the database's work is done: it may parse much."""
        return await self._ring.tried(lambda cipher: self._database.read(lambda conn: query(conn, cipher=cipher)))

    async def _parsed(self, stored: Sequence[lookup.StoredJob]) -> list[Job]:
        return await self._ring.tried(lambda cipher: lookup.parsed(stored, cipher))
