"""A job's history: what has happened, and what happens now."""

from __future__ import annotations

from collections.abc import AsyncIterator

from pai_backend.api.context import ApiContext
from pai_backend.api.openpai import events as openpai_events
from pai_backend.api.openpai.wire import JobEvents
from pai_backend.api.services.jobs import JobService
from pai_backend.api.wire import EventList, PlacedEvent
from pai_backend.auth.policy import sight_of
from pai_backend.auth.users import User
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Event

PAGE = 1000


class HistoryService:
    """Reads the event log."""

    def __init__(self, ctx: ApiContext) -> None:
        self._ctx = ctx
        self._jobs = JobService(ctx)

    async def read(self, user: User, name: str, after: int) -> EventList:
        """Every event with a greater ``seq``, in order. Raises NoSuchJob."""
        job = await self._jobs.find(user, name)
        events: list[Event] = []
        while page := await self._ctx.store.events.of_job(job.uid, after, PAGE):
            events += page
            after = page[-1].seq
        return EventList(data=tuple(events))

    async def read_openpai(self, user: User, name: str, after: int, type_: str) -> JobEvents:
        """The same in OpenPAI's shape, the latest first; of one type only, when it is given. Raises NoSuchJob."""
        job = await self._jobs.find(user, name)
        found = [openpai_events.shown(event, job) for event in (await self.read(user, name, after)).data]
        wanted = [event for event in reversed(found) if type_ in ("", event.type)]
        return JobEvents(total_count=len(wanted), data=tuple(wanted))

    async def follow(self, uid: JobUid, after: int) -> AsyncIterator[Event]:
        """Every event with a greater ``seq`` as it comes; ends after the last one of a job that has ended."""
        with self._ctx.changes.of_job(uid) as news:
            while True:
                news.take_note()
                more = True
                while more:
                    page, ended = await self._ctx.store.events.news(uid, after, PAGE)
                    for event in page:
                        yield event
                    if ended:
                        return
                    after = page[-1].seq if page else after
                    more = len(page) == PAGE
                await news.wait()

    async def follow_all(self, user: User, position: str | None) -> AsyncIterator[PlacedEvent]:
        """Events of all jobs that the user may see, from a position on or from now; never ends by itself."""
        while True:
            seen = self._ctx.changes.number
            events, position = await self._ctx.store.events.recent(position, sight_of(user), PAGE)
            for event in events:
                yield PlacedEvent(position=position, event=event)
            if not events:
                await self._ctx.changes.wait(seen)
