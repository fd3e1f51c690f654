"""Byte streams to ports of tasks: straight to the pod's address inside the cluster, through the API server outside.

Source: Kubernetes documentation, "Use Port Forwarding"; the frames of ``v4.channel.k8s.io`` as tests/kubernetes sees
them: the first of each stream has the port's number, then stream 0 has data and stream 1 the reason when it fails.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from typing import Final

import aiohttp

from pai_backend.engine.base import Connection, EngineError
from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.calls import Calls
from pai_backend.engine.kubernetes.channels import channel
from pai_backend.engine.kubernetes.client import ApiClient
from pai_backend.engine.kubernetes.ending import find
from pai_backend.engine.kubernetes.failures import FailedRequest
from pai_backend.engine.kubernetes.namespaces import Find
from pai_backend.engine.kubernetes.places import ResourceKind
from pai_backend.engine.kubernetes.status.view import part, words
from pai_backend.model.ids import TaskUid

_log = logging.getLogger(__name__)

FORWARD: Final = "v4.channel.k8s.io"
DATA, FAULT = 0, 1
DIAL_S: Final = 10.0
SETTLE_S: Final = 0.1  # a kubelet says when a port is closed, and nothing when it is open: silence so long means open
CHUNK: Final = 65536
INSIDE: Final = "KUBERNETES_SERVICE_HOST"  # set by the kubelet in every pod


class PodDialer:
    """Connects to ports of tasks."""

    def __init__(self, client: ApiClient, calls: Calls, places: Find) -> None:
        self._client = client
        self._calls = calls
        self._places = places
        self._addresses: dict[TaskUid, str] = {}
        self._pumps: set[asyncio.Task[None]] = set()

    async def dial(self, uid: TaskUid, port: int) -> Connection:
        """A byte stream to the port. Raises EngineError when nothing answers."""
        try:
            async with asyncio.timeout(DIAL_S):
                return await (self._straight(uid, port) if INSIDE in os.environ else self._forwarded(uid, port))
        except (OSError, EngineError) as error:  # a time-out is an OSError
            self._addresses.pop(uid, None)
            why = "it took too long" if isinstance(error, TimeoutError) else words(str(error))
            raise EngineError(f"nothing answers on port {port} of task {uid}: {why}") from None

    async def aclose(self) -> None:
        """Cut all streams that go through the API server."""
        for pump in self._pumps:
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    async def _straight(self, uid: TaskUid, port: int) -> Connection:
        address = self._addresses.get(uid) or await self._address(uid)
        reader, writer = await asyncio.open_connection(address, port)
        self._addresses[uid] = address
        return Connection(reader, writer)

    async def _address(self, uid: TaskUid) -> str:
        pod = await find(self._calls, (await self._places(uid)).one(ResourceKind.POD, naming.task_name(uid)))
        address = part(pod, "status").get("podIP") if pod is not None else None
        if not isinstance(address, str):
            raise EngineError("its pod has no address")
        return address

    async def _forwarded(self, uid: TaskUid, port: int) -> Connection:
        """Through the API server and the kubelet: a pair of sockets, of which we pass on what comes to the other."""
        ours, theirs = socket.socketpair()
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        pump = asyncio.create_task(self._pump(uid, port, ours, opened))
        self._pumps.add(pump)
        pump.add_done_callback(self._pumps.discard)
        try:
            await opened
            reader, writer = await asyncio.open_connection(sock=theirs)
        except BaseException:
            pump.cancel()
            theirs.close()
            raise
        return Connection(reader, writer)

    async def _pump(self, uid: TaskUid, port: int, end: socket.socket, opened: asyncio.Future[None]) -> None:
        """Pass bytes both ways until the task's side ends, or both of ours; ``opened`` has how it began."""
        places = await self._places(uid)
        path = f"{places.one(ResourceKind.POD, naming.task_name(uid))}/portforward"
        reader, writer = await asyncio.open_connection(sock=end)
        try:
            async with channel(self._client, FailedRequest("forward", path), [("ports", str(port))], FORWARD) as stream:
                first = await _opening(stream)
                if not opened.done():
                    opened.set_result(None)
                if first:
                    writer.write(first)
                upward = asyncio.create_task(_send(reader, stream))
                try:
                    await _receive(stream, writer)
                finally:
                    upward.cancel()
                    await asyncio.gather(upward, return_exceptions=True)
        except (EngineError, OSError, aiohttp.ClientError) as error:
            if not opened.done():
                opened.set_exception(error)
            else:
                _log.debug("port %d of task %s: %s", port, uid, type(error).__name__)
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
            if not opened.done():
                opened.cancel()


async def _opening(stream: aiohttp.ClientWebSocketResponse) -> bytes:
    """Read the streams' first frames, and wait until it is open; what came of data meanwhile. Raises EngineError."""
    headers = 0
    with contextlib.suppress(TimeoutError):
        while True:
            async with asyncio.timeout(SETTLE_S if headers == 2 else None):
                message = await stream.receive()
            if message.type is not aiohttp.WSMsgType.BINARY:
                raise EngineError("the connection was closed while it was being opened")
            number, data = message.data[0], message.data[1:]
            if headers < 2:
                headers += 1
            elif number == FAULT:
                raise EngineError(words(data.decode("utf-8", "replace")))
            elif data:
                return bytes(data)
    return b""


async def _receive(stream: aiohttp.ClientWebSocketResponse, writer: asyncio.StreamWriter) -> None:
    """Pass on what the task sends, until it ends or fails, which the reader sees as the end."""
    async for message in stream:
        if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
            continue
        if message.data[0] == FAULT:
            return
        writer.write(message.data[1:])
        await writer.drain()


async def _send(reader: asyncio.StreamReader, stream: aiohttp.ClientWebSocketResponse) -> None:
    """Pass on what the caller sends. Its half-close cannot be told: this protocol has none."""
    while chunk := await reader.read(CHUNK):
        await stream.send_bytes(bytes((DATA,)) + chunk)
