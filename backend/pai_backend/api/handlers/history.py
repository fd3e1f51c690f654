"""Events and logs, as they are and as they come."""

from __future__ import annotations

from pai_backend.api.base import ApiHandler
from pai_backend.api.log_queries import FollowQuery, LogQuery, LogSearchQuery, LogTimesQuery
from pai_backend.api.log_wire import LogMatches, LogTimes
from pai_backend.api.openpai.wire import JobEvents
from pai_backend.api.operation import Operation, operation
from pai_backend.api.queries import AllEventsQuery, EventsQuery, EventsStreamQuery
from pai_backend.api.services.history import HistoryService
from pai_backend.api.services.jobs import JobService
from pai_backend.api.services.logs import LogService
from pai_backend.api.streams import PushHandler
from pai_backend.api.wire import EventList, PlacedEvent
from pai_backend.model.errors import NoSuchJob, NoSuchTask
from pai_backend.model.job import Event


class EventsHandler(ApiHandler):
    """``/api/v2/jobs/{job}/events``."""

    @operation(Operation("A job's history.", query=EventsQuery, answer=JobEvents, ours=EventList, raises=(NoSuchJob,)))
    async def get(self, job: str, query: EventsQuery) -> EventList | JobEvents:
        """The events after a sequence number."""
        history = HistoryService(self.ctx)
        if self.wants_ours():
            return await history.read(self.user, job, query.after)
        return await history.read_openpai(self.user, job, query.after, query.type)


class EventStreamHandler(PushHandler):
    """``/api/v2/jobs/{job}/events/stream``."""

    @operation(
        Operation(
            "A job's history, pushed; closes after the last event.",
            query=EventsStreamQuery,
            answer=Event,
            stream="text",
            raises=(NoSuchJob,),
        )
    )
    async def get(self, job: str, query: EventsStreamQuery) -> None:
        """One event a message."""
        found = await JobService(self.ctx).find(self.user, job)
        events = HistoryService(self.ctx).follow(found.uid, query.after)
        await self.push((event.model_dump_json(by_alias=True) async for event in events), query.heartbeat)


class AllEventsHandler(PushHandler):
    """``/api/v2/events/stream``."""

    @operation(
        Operation(
            "Events of all jobs the caller may see, pushed.", query=AllEventsQuery, answer=PlacedEvent, stream="text"
        )
    )
    async def get(self, query: AllEventsQuery) -> None:
        """One event with its position a message."""
        events = HistoryService(self.ctx).follow_all(self.user, query.position)
        await self.push((placed.model_dump_json(by_alias=True) async for placed in events), query.heartbeat)


class LogsHandler(ApiHandler):
    """``/api/v2/jobs/{job}/logs``."""

    @operation(
        Operation(
            "Part of a task's log; the headers X-Pai-Offset and X-Pai-Next say which.",
            query=LogQuery,
            media_type="text/plain; charset=utf-8",
            raises=(NoSuchJob, NoSuchTask),
        )
    )
    async def get(self, job: str, query: LogQuery) -> None:
        """The bytes as they were printed."""
        logs = LogService(self.ctx)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        if query.download:
            pieces = await logs.whole(self.user, job, query)
            self.set_header("Content-Disposition", "attachment; filename=log.txt")
            async for piece in pieces:
                self.write(piece)
                await self.flush()
            return
        part = await logs.read(self.user, job, query, query.limit)
        self.set_header("X-Pai-Offset", str(part.first))
        self.set_header("X-Pai-Next", str(part.next))
        self.write(part.data)


class LogSearchHandler(ApiHandler):
    """``/api/v2/jobs/{job}/logs/search``."""

    @operation(
        Operation(
            "Lines of a task's log that match a regular expression, part by part.",
            query=LogSearchQuery,
            answer=LogMatches,
            raises=(NoSuchJob, NoSuchTask),
        )
    )
    async def get(self, job: str, query: LogSearchQuery) -> LogMatches:
        """The lines of the next part."""
        return await LogService(self.ctx).search(self.user, job, query)


class LogTimesHandler(ApiHandler):
    """``/api/v2/jobs/{job}/logs/times``."""

    @operation(
        Operation(
            "When the bytes of a part of a task's log came.",
            query=LogTimesQuery,
            answer=LogTimes,
            raises=(NoSuchJob, NoSuchTask),
        )
    )
    async def get(self, job: str, query: LogTimesQuery) -> LogTimes:
        """One time a second at most."""
        return await LogService(self.ctx).times(self.user, job, query)


class LogStreamHandler(PushHandler):
    """``/api/v2/jobs/{job}/logs/stream``."""

    @operation(
        Operation(
            "A task's log, followed; closes when the task has ended and all is sent.",
            query=FollowQuery,
            stream="binary",
            raises=(NoSuchJob, NoSuchTask),
        )
    )
    async def get(self, job: str, query: FollowQuery) -> None:
        """The bytes as they come."""
        await self.push(await LogService(self.ctx).follow(self.user, job, query), query.heartbeat)
