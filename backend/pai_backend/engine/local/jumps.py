"""Clients' own SSH through the gateway (jumps): a server of the task for one connection and one key.

The counterpart in a pod is ``backend/runtime/launcher/jumps.go``; the rules are in ``engine.jumps``.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from typing import cast

import asyncssh

from pai_backend.engine.jumps import MOST_LINE_BYTES
from pai_backend.engine.local.forwarding import Forwarder

_log = logging.getLogger(__name__)

FIRST_LINE_S = 30.0

MakeServer = Callable[[str], Awaitable[asyncio.BaseProtocol]]
"""Makes the server's end of a connection that accepts this line of authorized_keys alone. Raises ValueError."""


async def jump_session(make: MakeServer, tasks: set[asyncio.Task[None]]) -> asyncssh.SSHUNIXSession[bytes]:
    """A session whose bytes, after the first line, go to a server of their own. ``tasks`` keeps what serves it."""
    near, far = socket.socketpair()
    for end in (near, far):
        end.setblocking(False)
    serving = asyncio.create_task(_serve(far, make), name="jump")
    tasks.add(serving)
    serving.add_done_callback(tasks.discard)
    _, peer = await asyncio.get_running_loop().create_unix_connection(Forwarder, sock=near)
    return cast("asyncssh.SSHUNIXSession[bytes]", Forwarder(peer))


async def _serve(far: socket.socket, make: MakeServer) -> None:
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(FIRST_LINE_S):
            protocol = await make(await _first_line(far))
        await loop.connect_accepted_socket(lambda: protocol, far)
    except (OSError, ValueError, TimeoutError) as error:
        _log.warning("a jump was refused: %s", error)
        far.close()
    except BaseException:
        far.close()
        raise


async def _first_line(far: socket.socket) -> str:
    """What comes before the first line break, and not a byte of what follows. Raises ValueError, OSError."""
    loop, line = asyncio.get_running_loop(), bytearray()
    while len(line) < MOST_LINE_BYTES:
        byte = await loop.sock_recv(far, 1)
        if byte == b"\n":
            return line.decode("ascii")
        if not byte:
            raise ValueError("the line with its key ended early")
        line += byte
    raise ValueError("the line with its key is too long")
