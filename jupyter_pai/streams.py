"""Pushed streams over WebSocket that survive a broken connection.

A stream remembers how far it got (event sequence, log offset) and asks for the rest when it connects
again, so nothing is lost and nothing comes twice. A normal close (1000, RFC 6455 §7.4.1) is the end.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar, cast

from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import WebSocketClientConnection, WebSocketError, websocket_connect

from jupyter_pai.errors import BackendAway, ClientError, from_wire
from jupyter_pai.wire_types import Event, LogTimes, PlacedEvent
from pai_backend.model.text import Text

if TYPE_CHECKING:
    from jupyter_pai.client import AsyncClient, Query
    from jupyter_pai.log_times import TimedLines

T = TypeVar("T")

COMPLETE = (1000, "complete")
"""How the backend closes a stream whose last message is sent. Servers whose ping timed out say 1000 too."""
PATIENCE_S = 60.0  # a restarting backend is back within seconds; a minute also bears a busy machine
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 5.0
CONNECT_TIMEOUT_S = 5.0
PING_INTERVAL_S = 30.0


def decoded(body: bytes) -> object:
    """A JSON body, or None when it is empty or no JSON."""
    try:
        return json.loads(body) if body else None
    except ValueError:
        return None


def reason_of(error: BaseException | None) -> str:
    """An error of the network in a few words."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


async def connect(client: AsyncClient, path: str, query: Query) -> WebSocketClientConnection:
    """Open a stream. Raises BackendAway without an answer, another ClientError when it is refused."""
    from jupyter_pai.client import away, target

    request = HTTPRequest(
        "ws" + client.endpoint.url.removeprefix("http") + target(path, query),
        headers={"Authorization": f"Bearer {client.endpoint.token}"},
        connect_timeout=CONNECT_TIMEOUT_S,
        request_timeout=CONNECT_TIMEOUT_S,
    )
    try:
        return await websocket_connect(request, ping_interval=PING_INTERVAL_S)
    except HTTPClientError as error:
        if error.code == 599 or error.response is None:
            raise away(client.endpoint, reason_of(error)) from error
        raise from_wire(error.code, decoded(error.response.body)) from error
    except (OSError, WebSocketError) as error:
        raise away(client.endpoint, reason_of(error)) from error


class StreamBackoff:
    """Growing pauses between tries, and an end to them; progress makes it new."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Something arrived."""
        self._pause_s = FIRST_PAUSE_S
        self._deadline: float | None = None

    async def wait(self, error: ClientError) -> None:
        """Pause before the next try; raises ``error`` when it has been away for PATIENCE_S."""
        now = asyncio.get_running_loop().time()
        if self._deadline is None:
            self._deadline = now + PATIENCE_S
        elif now > self._deadline:
            raise error
        await asyncio.sleep(self._pause_s)
        self._pause_s = min(self._pause_s * 2, LONGEST_PAUSE_S)


async def patiently(ask: Callable[[], Awaitable[T]]) -> T:
    """What a question is answered with that changes nothing, asked again while the backend is away."""
    patience = StreamBackoff()
    while True:
        try:
            return await ask()
        except BackendAway as error:
            await patience.wait(error)


async def _one_connection(client: AsyncClient, path: str, query: Query) -> AsyncIterator[str | bytes]:
    """Messages of one connection; returns at the normal end, raises BackendAway when it breaks."""
    connection = await connect(client, path, query)
    try:
        while True:
            message = await connection.read_message()
            if message is None:
                break
            yield message
    finally:
        connection.close()
    if (connection.close_code, connection.close_reason) != COMPLETE:
        raise BackendAway(
            Text(
                "The stream from {url} broke off (close code {close_code}).",
                url=client.endpoint.url,
                close_code=connection.close_code,
            )
        )


async def job_events(client: AsyncClient, path: str, after: int) -> AsyncIterator[Event]:
    """Events behind ``after``, once each and in order, until the final one."""
    seen, patience = after, StreamBackoff()
    while True:
        try:
            async for message in _one_connection(client, path, {"after": seen}):
                patience.renew()
                event = cast(Event, json.loads(message))
                if event["seq"] > seen:
                    seen = event["seq"]
                    yield event
        except BackendAway as error:
            await patience.wait(error)
        else:
            return


async def all_events(client: AsyncClient, path: str, position: str | None) -> AsyncIterator[PlacedEvent]:
    """Events of all jobs from ``position`` on (None: from now), across reconnects; ends only by an error."""
    patience = StreamBackoff()
    while True:
        try:
            async for message in _one_connection(client, path, {"position": position}):
                patience.renew()
                item = cast(PlacedEvent, json.loads(message))
                position = item["position"]
                yield item
        except BackendAway as error:
            await patience.wait(error)


async def log(
    client: AsyncClient,
    job: str,
    *,
    role: str | None,
    index: int | None,
    stream: str,
    offset: int,
    lines: TimedLines | None = None,
) -> AsyncIterator[bytes]:
    """Bytes of a log from ``offset`` on until the task has ended; with ``lines`` they are stamped."""
    from jupyter_pai.client import job_path

    place: Query = {"role": role, "index": index, "stream": stream, "timestamps": "true" if lines else None}
    patience = StreamBackoff()
    while True:
        try:
            # Only the plain answer says where a negative or rotated-away offset really starts.
            chunk = await client.log(job, role=role, index=index, stream=stream, offset=offset, lines=lines)
            offset = chunk.next
            if chunk.data:
                patience.renew()
                yield chunk.data
            async for message in _one_connection(client, job_path(job, "/logs/stream"), {**place, "offset": offset}):
                patience.renew()
                if isinstance(message, bytes):
                    first, offset = offset, offset + len(message)
                    yield lines.stamped(message, first) if lines is not None else message
                elif lines is not None:
                    lines.learn(cast(LogTimes, json.loads(message))["times"], offset)
        except BackendAway as error:
            await patience.wait(error)
        else:
            return
