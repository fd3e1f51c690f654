"""Bytes of a container's output from the API server, as they come."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import aiohttp

from pai_backend.engine.kubernetes.client import CONNECT_S, ERROR_MAX, Client, Query
from pai_backend.engine.kubernetes.failures import Request, Unreachable, refusal

CHUNK = 65536


@asynccontextmanager
async def download(client: Client, path: str, query: Query) -> AsyncIterator[AsyncIterator[bytes]]:
    """The chunks of an answer that may go on. Raises Refused and Unreachable, also while it is read."""
    request = Request("read", path)
    headers = await client.authorization()
    proxy, server_hostname = client.route
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S)
    try:
        response = await client.session.get(
            client.server + path,
            params=list(query),
            headers=headers,
            timeout=timeout,
            proxy=proxy,
            server_hostname=server_hostname,
        )
        if not response.ok:
            async with response:
                body = await response.content.read(ERROR_MAX)
            raise refusal(request, response.status, body, response.headers.get("Retry-After"), datetime.now(UTC))
    except (aiohttp.ClientError, OSError) as error:
        raise _cut(request, error) from None
    try:
        yield _chunks(response, request)
    finally:
        response.close()  # not back into the pool: the server may go on writing


async def _chunks(response: aiohttp.ClientResponse, request: Request) -> AsyncIterator[bytes]:
    try:
        async for chunk in response.content.iter_any():
            yield chunk
    except (aiohttp.ClientError, OSError) as error:
        raise _cut(request, error) from None


def _cut(request: Request, error: Exception) -> Unreachable:
    """In our own words: those of aiohttp may hold a proxy's URL with its password."""
    return Unreachable(f"{request}: the connection to the API server failed ({type(error).__name__})", sent=True)
