"""What tasks print: a part of it, or all of it as it comes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from urllib.parse import quote, urlencode

from pai_backend.api.context import ApiContext
from pai_backend.api.line_search import matching_lines
from pai_backend.api.log_queries import FollowQuery, LogPosition, LogSearchQuery, LogTimesQuery
from pai_backend.api.log_wire import LogLocation, LogLocations, LogMatch, LogMatches, LogTimes, LogTimeWire
from pai_backend.api.passages import LogPassage, read_passage
from pai_backend.api.services.attempts import AttemptService
from pai_backend.api.services.jobs import JobService
from pai_backend.auth.users import User
from pai_backend.engine.base import LogStream, LogTime
from pai_backend.model.errors import NoSuchTask, Unavailable
from pai_backend.model.ids import JobUid, TaskUid, slot_of, task_uid
from pai_backend.model.job import Job
from pai_backend.model.scrub import Scrubber
from pai_backend.model.text import Text

SEARCHED_BYTES = 8_388_608
MAX_MATCHES = 500
TAIL_BYTES = 16_384  # what OpenPAI's portal shows of a log's end


@dataclass(frozen=True)
class LogPart:
    """Bytes of a log; ``first`` is the offset of the first of them."""

    first: int
    data: bytes

    @property
    def next(self) -> int:
        """The offset to go on from."""
        return self.first + len(self.data)


class LogService:
    """Reads logs from the engine."""

    def __init__(self, ctx: ApiContext) -> None:
        self._ctx = ctx
        self._jobs = JobService(ctx)

    async def read(self, user: User, name: str, query: LogPosition, limit: int) -> LogPart:
        """At most ``limit`` bytes from ``query.offset``; empty for a task that has not started.

        Raises NoSuchJob, NoSuchTask.
        """
        job = await self._jobs.find(user, name)
        passage = self._passage(job, query)
        scrubber = await self._scrubber(job, passage)
        first, data = max(query.offset, 0), bytearray()
        try:
            async with aclosing(read_passage(self._ctx.engine, passage, scrubber)) as pieces:
                first, _ = await anext(pieces)
                async for _at, piece in pieces:
                    data += piece
                    if len(data) >= limit:
                        break
        except KeyError:
            await self._require_here(job, passage)
            return LogPart(first, b"")
        if not data and passage.over and not await self._has_any(passage):
            await self._require_here(job, passage)
        return LogPart(first, bytes(data[:limit]))

    async def search(self, user: User, name: str, query: LogSearchQuery) -> LogMatches:
        """Lines that match, from ``offset`` on: in the next 8 MiB, or less when there are many.

        Raises NoSuchJob, NoSuchTask, InvalidParameters for an expression that is invalid or takes too long.
        """
        part = await self.read(user, name, query, SEARCHED_BYTES + 1)
        complete = len(part.data) <= SEARCHED_BYTES
        data = part.data if complete else part.data[: part.data.rfind(b"\n", 0, SEARCHED_BYTES) + 1 or SEARCHED_BYTES]
        found = await matching_lines(query.pattern, query.ignore_case, data, MAX_MATCHES)
        full = len(found) == MAX_MATCHES
        return LogMatches(
            matches=tuple(LogMatch(offset=part.first + each.offset, text=each.text) for each in found),
            next=part.first + (found[-1].end if full else len(data)),
            complete=complete and not full,
        )

    async def times(self, user: User, name: str, query: LogTimesQuery) -> LogTimes:
        """When ``limit`` bytes from ``offset`` on came; nothing of a task that has not started.

        Raises NoSuchJob, NoSuchTask.
        """
        job = await self._jobs.find(user, name)
        passage = self._passage(job, query)
        try:
            oldest, end = await self._ctx.engine.log_extent(passage.uid, passage.stream)
        except KeyError:
            return LogTimes(times=())
        start = max(oldest, query.offset if query.offset >= 0 else end + query.offset)
        return await self._times(passage, start, min(end, start + query.limit))

    async def _times(self, passage: LogPassage, start: int, end: int) -> LogTimes:
        """Nothing of a task that the engine does not know any more: its output may have been read just before."""
        found: Sequence[LogTime] = ()
        with suppress(KeyError):
            found = await self._ctx.engine.log_times(passage.uid, passage.stream, start, end)
        return LogTimes(times=tuple(LogTimeWire(offset=each.offset, at=each.at) for each in found))

    async def whole(self, user: User, name: str, query: LogPosition) -> AsyncIterator[bytes]:
        """All that there is from ``offset`` on. Raises NoSuchJob, NoSuchTask before the first byte is asked for."""
        job = await self._jobs.find(user, name)
        passage = self._passage(job, query)
        scrubber = await self._scrubber(job, passage)
        return self._whole(job, passage, scrubber)

    async def _whole(self, job: Job, passage: LogPassage, scrubber: Scrubber) -> AsyncIterator[bytes]:
        try:
            async with aclosing(read_passage(self._ctx.engine, passage, scrubber)) as pieces:
                async for _at, piece in pieces:
                    if piece:
                        yield piece
        except KeyError:
            await self._require_here(job, passage)

    async def follow(self, user: User, name: str, query: FollowQuery) -> AsyncIterator[str | bytes]:
        """The task's output from ``offset`` on until it has ended and all is read.

        With ``timestamps`` a text, LogTimes, comes before each piece.

        Waits for a task that has not started; ends at once for one that never will. Raises NoSuchJob, NoSuchTask
        before the first byte is asked for.
        """
        job = await self._jobs.find(user, name)
        find_task(job, query)
        return self._follow(job.uid, query)

    def _passage(self, job: Job, query: LogPosition) -> LogPassage:
        """What is asked for. A task that is no longer the job's is over."""
        uid = find_task(job, query)
        task = job.task(uid)
        over = job.state.final or task is None or task.is_over
        return LogPassage(uid, query.stream, query.offset, over=over)

    async def _has_any(self, passage: LogPassage) -> bool:
        """Whether this process has any output of the task."""
        try:
            return (await self._ctx.engine.log_extent(passage.uid, LogStream.ALL)) != (0, 0)
        except KeyError:
            return False

    async def _require_here(self, job: Job, passage: LogPassage) -> None:
        """Raises Unavailable for a task that ran, and of which another process may have the log."""
        task, place = job.task(passage.uid), self._ctx.log_place
        began = task is None or task.started_at is not None
        if place is not None and began and await place.is_elsewhere(self._ctx.store.recovery.log_places):
            raise Unavailable(
                Text(
                    "The log of this task is not in the log directory of the api process that was asked: "
                    "logs of this backend are written to another one."
                ),
                hint=Text(
                    "Ask an administrator to let all api and controller processes share one log directory "
                    "(docs/operations.md, Logs and files of several replicas)."
                ),
            )

    async def _scrubber(self, job: Job, passage: LogPassage) -> Scrubber:
        return await self._ctx.secrets.scrubber(job, slot_of(passage.uid))

    async def _follow(self, job_uid: JobUid, query: FollowQuery) -> AsyncIterator[str | bytes]:
        with self._ctx.changes.of_job(job_uid) as news:
            while True:
                news.take_note()
                job = await self._ctx.store.jobs.get(job_uid)
                passage = replace(self._passage(job, query), follow=True)
                scrubber = await self._scrubber(job, passage)
                try:
                    async with aclosing(read_passage(self._ctx.engine, passage, scrubber)) as pieces:
                        async for at, piece in pieces:
                            if piece and query.timestamps:
                                yield (await self._times(passage, at, at + len(piece))).model_dump_json()
                            if piece:
                                yield piece
                    return
                except KeyError:
                    await self._require_here(job, passage)
                    if passage.over:
                        return
                await news.wait()

    async def locations(
        self, user: User, name: str, attempt: int, role: str, index: int, run: int, *, tail: bool = False
    ) -> LogLocations:
        """OpenPAI's list of the logs of a task's run in an attempt of its job; with ``tail`` of their ends alone.

        Raises NoSuchJob, NoSuchTask.
        """
        job = await self._jobs.find(user, name)
        runs = (await AttemptService(self._ctx).task(user, name, attempt, role, index)).attempts
        uid = next((each.uid for each in runs if each.attempt_id == run), None)
        if uid is None:
            raise NoSuchTask(
                Text("The task {role}-{index} has no run {run}.", role=role, index=index, run=run),
                hint=Text("It has 0 to {count}.", count=len(runs) - 1),
            )
        query: dict[str, str | int] = {"role": role, "index": index, "attempt": int(uid.rpartition("-")[2])}
        if tail:
            query["offset"] = -TAIL_BYTES
        base = f"/api/v2/jobs/{quote(job.id, safe='~')}/logs"
        return LogLocations(
            locations=tuple(
                LogLocation(name=stream.value, uri=f"{base}?{urlencode({**query, 'stream': stream.value})}")
                for stream in LogStream
            )
        )


def find_task(job: Job, query: LogPosition) -> TaskUid:
    """The uid of the task that is meant. Raises NoSuchTask naming those that exist."""
    roles = [role.name for role in job.spec.task_roles]
    name = query.role if query.role is not None else roles[0]
    if name not in roles:
        raise NoSuchTask(
            Text("The job {id} has no task role {name}.", id=job.id, name=name),
            hint=Text("It has: {roles}.", roles=", ".join(roles)),
        )
    count = job.spec.role(name).instances
    if query.index >= count:
        raise NoSuchTask(
            Text("The task role {name} has no task {index}.", name=name, index=query.index),
            hint=Text("It has 0 to {count}.", count=count - 1),
        )
    current = next(task.attempt for task in job.tasks if (task.role, task.index) == (name, query.index))
    attempt = query.attempt if query.attempt is not None else current
    if attempt > current:
        raise NoSuchTask(
            Text("The task {name}-{index} has no attempt {attempt}.", name=name, index=query.index, attempt=attempt),
            hint=Text("It has 0 to {current}.", current=current),
        )
    return task_uid(JobUid(job.uid), roles.index(name), query.index, attempt)
