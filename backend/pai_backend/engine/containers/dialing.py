"""Connections to 127.0.0.1, or ::1, inside a container, made from outside.

A thread of its own enters the container's network for the moment of one connect; the socket then works everywhere.
Source: setns(2), network_namespaces(7). Root only.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import socket
import threading
from pathlib import Path
from typing import Final

from pai_backend.engine.base import Connection, EngineError
from pai_backend.engine.local import layout, processes
from pai_backend.engine.local.shim import container_folder as folder

_CLONE_NEWNET: Final = 0x40000000  # linux/sched.h; os.setns is there from Python 3.12 on
CONNECT_S: Final = 10.0


async def dial(directory: Path, port: int) -> Connection:
    """A byte stream to the port in the container of the task with this directory. Raises EngineError."""
    loop = asyncio.get_running_loop()
    made: asyncio.Future[socket.socket] = loop.create_future()

    def tell(result: socket.socket | OSError) -> None:
        if made.cancelled():
            if isinstance(result, socket.socket):
                result.close()
        elif isinstance(result, OSError):
            made.set_exception(result)
        else:
            made.set_result(result)

    def connect() -> None:
        try:
            result: socket.socket | OSError = _connected(directory, port)
        except OSError as error:
            result = error
        except ValueError:  # the container is just being made
            result = ProcessLookupError(0, "its container does not run yet")
        loop.call_soon_threadsafe(tell, result)

    # Not one of a pool: it does not come back from where it goes.
    threading.Thread(target=connect, name="pai-dial", daemon=True).start()
    try:
        connection = await made
        reader, writer = await asyncio.open_connection(sock=connection)
    except OSError as error:
        raise EngineError(
            f"nothing answers on port {port} of task {directory.name}: {error.strerror or error}"
        ) from error
    return Connection(reader, writer)


def _connected(directory: Path, port: int) -> socket.socket:
    start = (directory / layout.CONTAINER / folder.BEGAN).read_text("ascii")  # written when INIT is whole
    pid = int((directory / layout.CONTAINER / folder.INIT).read_text("ascii"))
    network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    try:
        if not start or processes.start_time(pid) != start:  # after it was opened: so it is that one's
            raise ProcessLookupError(0, "its container has ended")
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(network, _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    finally:
        os.close(network)
    try:
        made = socket.create_connection((layout.LOOPBACK, port), CONNECT_S)
    except ConnectionRefusedError as refused:
        try:
            made = socket.create_connection((layout.LOOPBACK_6, port), CONNECT_S)
        except OSError:
            raise refused from None
    made.setblocking(False)
    return made
