"""Keeping a copy of one resource current: requests and clocks around :class:`~.reflection.Reflection`, which decides.

:meth:`Reflector.run` never ends by itself and survives whatever the server does; cancel it to stop it. News go to a
:class:`~.handover.Handover`, which several reflectors may share.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import NoReturn

from pydantic_core import from_json

from pai_backend.engine.kubernetes.calls import Calls
from pai_backend.engine.kubernetes.client import LineStream, LineTooLong, Query
from pai_backend.engine.kubernetes.counts import ReflectorHealth
from pai_backend.engine.kubernetes.failures import (
    AccessError,
    ApiUnauthorized,
    ClusterError,
    RequestRefused,
    Unreachable,
)
from pai_backend.engine.kubernetes.handover import Handover, ResourceListed
from pai_backend.engine.kubernetes.objects import Object, Slim, without_managed_fields
from pai_backend.engine.kubernetes.reflection import Closed, End, Full, Reflection, Silent, Step, StreamFault
from pai_backend.engine.kubernetes.retrying import Backoff

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Resource:
    """Which objects: a collection's path (``/api/v1/pods``) and its selectors, as query parameters."""

    name: str  # how changes, metrics and messages call it
    path: str
    query: Query = ()
    without: str = ""
    """What is missing without it, and the remedy: a help and no need, which counts as listed when it cannot be."""


@dataclass(frozen=True)
class Timing:
    """How patient a reflector is, in seconds."""

    # The server sends a bookmark a minute, jittered by a quarter: silence beyond that is a dead connection.
    silence_s: float = 100.0
    # The server ends a watch after between one and two times this, so that watches move to replicas that came back.
    watch_s: float = 300.0
    # A failure that is not the server's fault costs no more than this before the next try.
    backoff: Backoff = Backoff(base_s=0.25, cap_s=15.0)  # noqa: RUF009 - frozen
    list_s: float = 120.0  # for a page, with its repetitions


class Reflector:
    """A copy of one resource that follows the server's."""

    def __init__(
        self,
        calls: Calls,
        resource: Resource,
        handover: Handover,
        *,
        slim: Slim = without_managed_fields,
        streaming: bool = True,
        timing: Timing = Timing(),
        chance: Callable[[], float] = random.random,
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._calls = calls
        self._resource = resource
        self._handover = handover
        self._timing = timing
        self._chance = chance
        self._pause = pause
        self._reflection = Reflection(resource.name, streaming=streaming, slim=slim)
        self._current_at = -math.inf  # on the monotonic clock
        self._watching = False
        self._trouble = "the list is still to come"
        self._cut_off_at: float | None = None  # since when every try has failed, on the monotonic clock

    @property
    def objects(self) -> Mapping[str, Object]:
        """What is known, by uid; a hint, never a reason to destroy. Not to be changed."""
        return self._reflection.objects

    @property
    def health(self) -> ReflectorHealth:
        """How well the resource is known now."""
        return ReflectorHealth(
            resource=self._resource.name,
            listed=self._reflection.listed,
            watching=self._watching,
            age_s=time.monotonic() - self._current_at,
            objects=len(self.objects),
            trouble="" if self._watching else self._trouble,
            trouble_s=0.0 if self._watching or self._cut_off_at is None else time.monotonic() - self._cut_off_at,
        )

    async def run(self) -> NoReturn:
        """List, watch, and begin again whenever that is needed, until cancelled."""
        while True:
            await self._handover.room()
            self._reflection.open()
            end = await self._turn()
            if end is None:
                continue
            self._reflection.ended(end)
            if not isinstance(end, Full):
                self._tell(end)
                await self._pause(self._timing.backoff.pause_s(self._reflection.failures, self._chance(), _wish(end)))

    async def _turn(self) -> End | None:
        """One list in pages, or one watch; what it ended by, None for a complete list."""
        try:
            if self._reflection.step is not Step.LIST:
                return await self._watch()
            await self._list()
            return None
        except ApiUnauthorized as error:
            return await self._renewed(error)
        except (ClusterError, AccessError, StreamFault) as error:
            return error
        finally:
            self._watching = False

    async def _list(self) -> None:
        began = time.monotonic()
        while True:
            document = await self._calls.page(
                self._resource.path,
                query=self._resource.query,
                rest=self._reflection.rest,
                deadline_s=self._timing.list_s,
            )
            self._handover.put(self._reflection.page(document))
            if not self._reflection.rest:
                # The list is as of its first page.
                self._current_at = began
                self._cut_off_at = None
                return

    async def _watch(self) -> End:
        loop = asyncio.get_running_loop()
        async with self._calls.watch(self._resource.path, self._watch_query()) as stream:
            began = loop.time()
            self._watching = self._reflection.step is Step.WATCH
            self._cut_off_at = None if self._watching else self._cut_off_at
            try:
                async with asyncio.timeout(self._timing.silence_s) as patience:
                    if not await self._read(stream, patience):
                        return Full()
            except TimeoutError:
                return Silent()
            except Unreachable:
                pass  # a connection that broke is a watch that ended: how often that may be is counted by how it went
            return Closed(loop.time() - began)

    async def _read(self, stream: LineStream, patience: asyncio.Timeout) -> bool:
        """Read until the stream ends (True) or the consumer is behind (False). Raises StreamFault, Unreachable."""
        loop = asyncio.get_running_loop()
        try:
            async for batch in stream.batches():
                for line in batch:
                    self._handover.put(self._reflection.line(_event(line)))
                if batch:
                    patience.reschedule(loop.time() + self._timing.silence_s)
                    self._heard()
                if self._handover.full and self._reflection.step is Step.WATCH:
                    return False
        except LineTooLong as error:
            raise StreamFault(str(error)) from None
        return True

    def _heard(self) -> None:
        """Something came: what is known is current as of now, once a list is complete."""
        if self._reflection.step is not Step.WATCH:
            return
        self._current_at = time.monotonic()
        self._watching = True
        if self._trouble:
            _log.info("%s: %d objects are known and watched", self._resource.name, len(self.objects))
            self._trouble = ""
        self._cut_off_at = None

    def _tell(self, end: End) -> None:
        """Log why the resource is not watched: once for a reason, and not for a watch that just ended."""
        words = {Closed: "the watch is cut again and again", Silent: "nothing was heard, not even a bookmark"}
        if isinstance(end, Closed) and self._reflection.step is Step.WATCH:
            return
        if self._cut_off_at is None:
            self._cut_off_at = time.monotonic()
        trouble = words.get(type(end), str(end))
        if trouble != self._trouble:
            further = f". {self._resource.without}" if self._resource.without else ""
            _log.warning("%s cannot be watched: %s%s", self._resource.name, trouble, further)
            self._trouble = trouble
        if self._resource.without and not self._reflection.listed:
            self._handover.put([ResourceListed(self._resource.name)])

    async def _renewed(self, error: ApiUnauthorized) -> End:
        try:
            await self._calls.renew_credentials()
        except AccessError as access:
            return access
        return error

    def _watch_query(self) -> Query:
        seconds = int(self._timing.watch_s * (1 + self._chance()))
        query = [
            *self._resource.query,
            ("watch", "1"),
            ("allowWatchBookmarks", "true"),
            ("timeoutSeconds", str(max(1, seconds))),
        ]
        if self._reflection.step is Step.STREAM:
            return [*query, ("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan")]
        return [*query, ("resourceVersion", self._reflection.version)]


def _event(line: bytes) -> Object:
    try:
        event = from_json(line, cache_strings="all")  # texts that are alike are one: half of what a mirror takes
    except ValueError:
        event = None
    if not isinstance(event, dict):
        raise StreamFault("a line of the watch is not an event")
    return event


def _wish(end: End) -> float | None:
    """How long the server asked us to stay away."""
    return end.retry_after_s if isinstance(end, RequestRefused | StreamFault) else None
