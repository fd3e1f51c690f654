"""WebSockets to the API server that pass on to a pod: frames whose first byte says which stream they are of.

Source: Kubernetes documentation, "WebSockets" of the API concepts; the subprotocols of v1.34 as tests/kubernetes sees
them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import aiohttp

from pai_backend.engine.kubernetes.client import ApiClient, Query
from pai_backend.engine.kubernetes.failures import FailedRequest, Malformed, Unreachable, refusal
from pai_backend.engine.kubernetes.status.view import items, part

OPEN_S = 10.0
EXEC = "v5.channel.k8s.io"
STDOUT, STDERR, RESULT = 1, 2, 3
OUTPUT_MAX = 65536  # bytes of an answer that is read; what we ask for is far smaller


@asynccontextmanager
async def channel(
    client: ApiClient, request: FailedRequest, query: Query, protocol: str
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    """An open WebSocket. Raises Refused with the server's answer, Unreachable, AccessError."""
    url = client.server + request.path
    headers = await client.authorization()
    proxy, server_hostname = client.route
    try:
        async with asyncio.timeout(OPEN_S):
            socket = await client.session.ws_connect(
                url,
                params=list(query),
                headers=headers,
                protocols=(protocol,),
                proxy=proxy,
                server_hostname=server_hostname,
                max_msg_size=0,  # the server's messages are as long as what the pod writes at once
            )
    except aiohttp.WSServerHandshakeError as error:
        raise refusal(request, error.status, b"", None, datetime.now(UTC)) from None
    except (aiohttp.ClientError, OSError) as error:
        words = "it did not answer in time" if isinstance(error, TimeoutError) else type(error).__name__
        raise Unreachable(f"{request}: the API server cannot be reached: {words}", sent=False) from None
    async with socket:
        yield socket


@dataclass(frozen=True)
class CommandExit:
    """How a command in a container ended. ``code``: None when the container's runtime could not run it."""

    code: int | None
    output: str


async def execute(
    client: ApiClient, pod_path: str, container: str, command: Sequence[str], limit_s: float
) -> CommandExit:
    """How a short command in a container of the pod ended, and what it printed on standard output.

    Raises ClusterErrors, Unreachable also when it takes longer than ``limit_s``, and Malformed for too much output.
    """
    request = FailedRequest("exec", f"{pod_path}/exec")
    asked = [("container", container), ("stdout", "1"), ("stderr", "0"), *(("command", word) for word in command)]
    output = bytearray()
    try:
        async with asyncio.timeout(limit_s), channel(client, request, asked, EXEC) as socket:
            async for message in socket:
                if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
                    continue
                number, data = message.data[0], message.data[1:]
                if number == STDOUT:
                    output += data
                    if len(output) > OUTPUT_MAX:
                        raise Malformed(f"{request}: it answers more than {OUTPUT_MAX} bytes")
                elif number == RESULT:
                    return CommandExit(_code(data), output.decode("utf-8", "replace"))
    except TimeoutError:
        raise Unreachable(f"{request}: it did not answer within {limit_s:.0f} s", sent=True) from None
    # The server closes with 1006 in any case: only the result tells that the command has ended.
    raise Unreachable(f"{request}: the connection was cut", sent=True)


def _code(result: bytes) -> int | None:
    """The exit code in a ``Status`` of the API; None when it tells of something else."""
    try:
        found = json.loads(result)
    except ValueError:
        return None
    if not isinstance(found, dict):
        return None
    if found.get("status") == "Success":
        return 0
    causes = [each for each in items(part(found, "details"), "causes") if each.get("reason") == "ExitCode"]
    code = str(causes[0].get("message")) if causes else ""
    return int(code) if code.isascii() and code.isdigit() and len(code) <= 3 else None
