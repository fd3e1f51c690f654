"""Bytes of a container's output from the API server, as they come."""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import aiohttp

from pai_backend.engine.kubernetes.client import CONNECT_S, ERROR_MAX, ApiClient, Query
from pai_backend.engine.kubernetes.failures import FailedRequest, Unreachable, refusal

BUFFER = 65536  # bytes that wait for a slow reader, twice at most, before the connection is told to pause
ALIVE = ((("TCP_KEEPIDLE", "TCP_KEEPALIVE"), 30), (("TCP_KEEPINTVL",), 10), (("TCP_KEEPCNT",), 3))
"""Options of a connection, by their names on Linux and macOS: after a minute of silence it is known whether the other
side is there. A task may print nothing for days, and nothing else would tell."""


@asynccontextmanager
async def download(
    client: ApiClient, path: str, query: Query, silence_s: float | None
) -> AsyncIterator[AsyncGenerator[bytes, None]]:
    """The chunks of an answer that may go on. Raises Refused and Unreachable, also while it is read.

    ``silence_s``: how long nothing may come; None where that means nothing.
    """
    request = FailedRequest("read", path)
    headers = await client.authorization()
    proxy, server_hostname = client.route
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=silence_s)
    try:
        response = await client.session.get(
            client.server + path,
            params=list(query),
            headers=headers,
            timeout=timeout,
            proxy=proxy,
            server_hostname=server_hostname,
            read_bufsize=BUFFER,
        )
        if not response.ok:
            async with response:
                body = await response.content.read(ERROR_MAX)
            raise refusal(request, response.status, body, response.headers.get("Retry-After"), datetime.now(UTC))
    except (aiohttp.ClientError, OSError) as error:
        raise _cut(request, error) from None
    try:
        _keep_alive(response)
        yield _chunks(response, request)
    finally:
        response.close()  # not back into the pool: the server may go on writing


def _keep_alive(response: aiohttp.ClientResponse) -> None:
    transport = response.connection.transport if response.connection is not None else None
    connected = transport.get_extra_info("socket") if transport is not None else None
    if connected is None:  # all of the answer has come
        return
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for names, value in ALIVE:
        option = next((getattr(socket, name) for name in names if hasattr(socket, name)), None)
        if option is not None:
            connected.setsockopt(socket.IPPROTO_TCP, option, value)


async def _chunks(response: aiohttp.ClientResponse, request: FailedRequest) -> AsyncGenerator[bytes, None]:
    try:
        async for chunk in response.content.iter_any():
            yield chunk
    except (aiohttp.ClientError, OSError) as error:
        raise _cut(request, error) from None


def _cut(request: FailedRequest, error: Exception) -> Unreachable:
    """In our own words: those of aiohttp may hold a proxy's URL with its password."""
    return Unreachable(f"{request}: the connection to the API server failed ({type(error).__name__})", sent=True)
