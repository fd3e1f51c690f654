"""Requests to the API server with bounds: so many at once, each with its time, repeated while that is safe.

A request is repeated after 429, 5xx and connection errors, with pauses of full jitter that respect ``Retry-After``,
until its deadline; once more at once after a 401, with new credentials. A creation is safe to repeat because its name
is fixed by the caller: when an earlier try may have been carried out, a name that is taken was taken by us.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol
from urllib.parse import quote

from pydantic_core import from_json

from pai_backend.engine.kubernetes.client import Ask, LineStream, Query
from pai_backend.engine.kubernetes.cluster_time import ClusterTime
from pai_backend.engine.kubernetes.failures import (
    AlreadyExists,
    ApiConflict,
    ApiNotFound,
    ApiUnauthorized,
    ClusterError,
    FailedRequest,
    Malformed,
    RequestRefused,
    Unreachable,
)
from pai_backend.engine.kubernetes.objects import Object, metadata
from pai_backend.engine.kubernetes.retrying import Backoff, open_outcome, passing

PARALLEL = 32  # requests under way at once, watches apart. Source: testbed, 32 connections make 260-560 pods a second
DEADLINE_S = 60.0  # a request with all its repetitions; the caller may say otherwise
PAGE = 500  # objects of a page: what client-go asks for, about 2 MiB of pods
_TIMEOUT_S = {"get": 10.0, "list": 60.0, "create": 30.0, "patch": 30.0, "delete": 30.0}


class Patch(StrEnum):
    """How a patch is written, by its content type. JSON patches are not repeated once they may have been applied."""

    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"
    JSON = "application/json-patch+json"


class Transport(Protocol):
    """What carries single requests: :class:`~pai_backend.engine.kubernetes.client.ApiClient`."""

    @property
    def time(self) -> ClusterTime:
        """What its answers say of the time."""
        ...

    async def send(self, ask: Ask) -> bytes:
        """The whole answer, or a typed error."""
        ...

    def stream(self, ask: Ask) -> AbstractAsyncContextManager[LineStream]:
        """An answer that goes on."""
        ...

    async def renew_credentials(self) -> bool:
        """New credentials after a 401; False when that makes no sense now."""
        ...


@dataclass
class _Tries:
    """What became of the tries of one request so far."""

    failed: int = 0
    renewed: bool = False
    open: bool = False  # one of them may have been carried out
    last: ClusterError | None = None


class Calls:
    """The requests of one process to one cluster."""

    def __init__(
        self,
        transport: Transport,
        *,
        parallel: int = PARALLEL,
        backoff: Backoff = Backoff(),  # noqa: B008 - frozen
        chance: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._transport = transport
        self._room = asyncio.Semaphore(parallel)
        self._backoff = backoff
        self._chance = chance
        self._clock = clock
        self._pause = pause

    def now(self) -> datetime:
        """The time in the cluster, in which pods and nodes say since when they are as they are."""
        return self._transport.time.now()

    async def get(self, path: str, *, query: Query = (), deadline_s: float = DEADLINE_S) -> Object:
        """One object. Raises ApiNotFound and other ClusterErrors."""
        return _object(await self._ask(_ask("get", "GET", path, query), deadline_s=deadline_s))

    async def page(self, path: str, *, query: Query = (), rest: str = "", deadline_s: float = DEADLINE_S) -> Object:
        """A page of a list; ``rest`` is where the one before says that it goes on.

        Raises Gone when the rest is no longer kept (the list must start over), and other ClusterErrors.
        """
        asked = [*query, ("limit", str(PAGE)), *([("continue", rest)] if rest else [])]
        return _object(await self._ask(_ask("list", "GET", path, asked), deadline_s=deadline_s))

    async def list(self, path: str, *, query: Query = (), deadline_s: float = DEADLINE_S) -> AsyncIterator[Object]:
        """All objects, page by page. Raises as :meth:`page`."""
        rest = ""
        while True:
            document = await self.page(path, query=query, rest=rest, deadline_s=deadline_s)
            for obj in document.get("items") or []:
                yield obj
            rest = str(metadata(document).get("continue") or "")
            if not rest:
                return

    async def create(self, path: str, body: Object, *, deadline_s: float = DEADLINE_S) -> Object:
        """Create an object whose name is fixed; ``path`` is the collection's. Returns it as it is on the server.

        Raises AlreadyExists when the name was taken before the first try, ValueError for a body without a name.
        """
        name = metadata(body).get("name")
        if not name:
            raise ValueError("only objects with a name of their own can be created safely")
        tries = _Tries()
        try:
            return _object(await self._ask(_ask("create", "POST", path, body=body), tries=tries, deadline_s=deadline_s))
        except AlreadyExists:
            if not tries.open:
                raise
            return await self.get(f"{path}/{quote(str(name), safe='')}", deadline_s=deadline_s)

    async def make(self, path: str, body: Object, *, deadline_s: float = DEADLINE_S) -> None:
        """As :meth:`create`, of a name that no one else takes: what was made is not looked at, which needs no right.

        Raises ClusterErrors.
        """
        with contextlib.suppress(AlreadyExists):
            await self._ask(_ask("create", "POST", path, body=body), deadline_s=deadline_s)

    async def patch(
        self,
        path: str,
        body: Mapping[str, Any] | Sequence[Any],
        kind: Patch,
        *,
        query: Query = (),
        deadline_s: float = DEADLINE_S,
    ) -> Object:
        """Change an object; a server-side apply names its ``fieldManager`` in the query. Returns it as it is then.

        Raises ApiNotFound, ApiConflict, Invalid and other ClusterErrors.
        """
        ask = replace(_ask("patch", "PATCH", path, query, body), content_type=kind.value)
        return _object(await self._ask(ask, once=kind is Patch.JSON, deadline_s=deadline_s))

    async def delete(
        self, path: str, *, uid: str | None = None, grace_s: int | None = None, deadline_s: float = DEADLINE_S
    ) -> Object | None:
        """Delete an object and, later, what it owns; of that uid only, when one is given. Idempotent.

        Returns the server's answer, for most kinds the object as it is now; None when it is not there, or when another
        object has its name by now. Raises ClusterErrors.
        """
        body: Object = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
        if uid is not None:
            body["preconditions"] = {"uid": uid}
        if grace_s is not None:
            body["gracePeriodSeconds"] = grace_s
        try:
            return _object(await self._ask(_ask("delete", "DELETE", path, body=body), deadline_s=deadline_s))
        except ApiNotFound:
            return None
        except ApiConflict:
            if uid is None:
                raise
            return None  # the one that was meant is gone

    def watch(self, path: str, query: Query) -> AbstractAsyncContextManager[LineStream]:
        """A stream of events, neither repeated nor counted among those at once. Raises as the client's."""
        return self._transport.stream(_ask("watch", "GET", path, query))

    async def renew_credentials(self) -> bool:
        """As the client; for callers that open streams."""
        return await self._transport.renew_credentials()

    async def _ask(self, ask: Ask, *, deadline_s: float, once: bool = False, tries: _Tries | None = None) -> bytes:
        """Send, and repeat as the module says. ``once``: not after a try that may have been carried out."""
        tries = tries or _Tries()
        until = self._clock() + deadline_s
        while True:
            try:
                async with self._room:
                    left_s = until - self._clock()
                    if left_s <= 0:
                        raise tries.last or Unreachable(
                            f"{ask.request}: no free slot within {deadline_s:.0f} s", sent=False
                        )
                    return await self._transport.send(replace(ask, timeout_s=min(ask.timeout_s, left_s)))
            except ClusterError as error:
                pause_s = await self._before_next(error, tries, once=once)
                if pause_s is None or self._clock() + pause_s >= until:
                    raise
            await self._pause(pause_s)

    async def _before_next(self, error: ClusterError, tries: _Tries, *, once: bool) -> float | None:
        """Note a failed try. The pause before the next one in seconds; None when there must be none."""
        if isinstance(error, ApiUnauthorized) and not tries.renewed:
            tries.renewed = True
            return 0.0 if await self._transport.renew_credentials() else None
        tries.failed += 1
        tries.last = error
        tries.open = tries.open or open_outcome(error)
        if not passing(error) or (once and tries.open):
            return None
        wait = error.retry_after_s if isinstance(error, RequestRefused) else None
        return self._backoff.pause_s(tries.failed, self._chance(), wait)


def _ask(verb: str, method: str, path: str, query: Query = (), body: Any = None) -> Ask:
    return Ask(FailedRequest(verb, path), method, query, body, timeout_s=_TIMEOUT_S.get(verb, 30.0))


def _object(answer: bytes) -> Object:
    try:
        found = from_json(answer, cache_strings="all")  # as in a mirror, which is made of lists too
    except ValueError:
        raise Malformed("the API server's answer is not JSON") from None
    if not isinstance(found, dict):
        raise Malformed("the API server's answer is not an object")
    return found
