"""Where requests for services branch off from those for the api, on the same connections.

A connection begins with the api. When a request on it is for a service, a ``ServiceClient`` takes it over with what
was read of it; when one on that is not, the api gets it back. So a browser that goes from one to the other, or a proxy
in front that mixes requests of all users, is served on one connection, and each request is read once.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from socket import socket
from typing import Protocol

from pai_backend.access.proxy.address import read_address
from pai_backend.access.proxy.client import ServiceClient
from pai_backend.access.proxy.exchange import Exchange
from pai_backend.access.proxy.forwarding import AUTHORIZE
from pai_backend.access.proxy.http1 import RequestReader
from pai_backend.access.proxy.service import ServiceProxy
from pai_backend.access.proxy.visitor import Incoming

IDLE_S = 60.0
"""How long a connection may wait for the whole header of a request, its first or the next."""
_SWEEPS = 8  # in that time
_HOST = re.compile(rb"\r?\nhost:[ \t]*([^\r\n]*)", re.I)


class ConnectionSource(Protocol):
    """Where a connection comes from, and goes back to."""

    scheme: str
    """How clients reach it: ``http`` or ``https``."""

    def waits(self, client: ServiceClient) -> None:
        """It waits for a request, and is closed when there are too many."""
        ...

    def works(self, client: ServiceClient) -> None:
        """It waits no longer."""
        ...

    def source(self, peer: str, forwarded_for: Sequence[str]) -> str:
        """Whom a proxy of ours asks for, else ``peer``."""
        ...

    def is_proxy(self, peer: str) -> bool:
        """Whether it is the address of a proxy of ours."""
        ...

    def adopt(self, connection: socket, address: tuple[object, ...], data: bytes) -> None:
        """Go on with a connection of which that has been read."""
        ...


class Entrance:
    """Takes connections over whose next request is for a service."""

    def __init__(self, proxy: ServiceProxy, others: ConnectionSource) -> None:
        self._proxy, self._others = proxy, others
        self._clients: set[ServiceClient] = set()
        self._idle: dict[ServiceClient, float] = {}  # in the order in which they began to wait
        self._taking: set[asyncio.Task[object]] = set()
        self._sweep: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        """Connections that are open here."""
        return len(self._clients) + len(self._taking)

    def is_for_service(self, head: bytes) -> bool:
        """Whether a request is for a service, by its first host and its target."""
        _, _, line = head.partition(b" ")
        target, host = line.partition(b" ")[0], _HOST.search(head)
        name = host[1].rstrip(b" \t").decode("latin-1") if host is not None else ""
        return read_address(name, target.decode("latin-1"), self._proxy.domain) is not None

    def take(self, connection: socket, address: tuple[object, ...], data: bytes) -> None:
        """Go on with a connection of which that has been read."""

        def made() -> ServiceClient:
            client = ServiceClient(self, address, data)
            self._clients.add(client)
            return client

        taking = asyncio.ensure_future(asyncio.get_running_loop().connect_accepted_socket(made, connection))
        self._taking.add(taking)
        taking.add_done_callback(self._taking.discard)

    def begin(self, client: ServiceClient, request: RequestReader) -> asyncio.Task[None]:
        """Answer a request, in a task. Called by a connection."""
        address = read_address(request.host, request.target, self._proxy.domain)
        assert address is not None  # as ``is_for_service`` has found
        peer = str(client.address[0])
        incoming = Incoming(
            method=request.method,
            address=address,
            headers=request.headers,
            host=request.host,
            scheme=self._others.scheme,
            remote_ip=self._others.source(peer, request.headers.get_list("X-Forwarded-For")),
            has_body=request.has_body,
            is_from_proxy=address.path == AUTHORIZE and self._others.is_proxy(peer),
        )
        exchange = Exchange(self._proxy, client, request, self._proxy.seen_by_sender(incoming))
        return asyncio.create_task(exchange.run())

    def waits(self, client: ServiceClient) -> None:
        """It waits for a request. Called by a connection, also when a part of a header has come."""
        if client not in self._idle:
            self._idle[client] = asyncio.get_running_loop().time()
            self._others.waits(client)
        if self._sweep is None:
            self._sweep = asyncio.get_running_loop().call_later(IDLE_S / _SWEEPS, self._close_idle)

    def works(self, client: ServiceClient) -> None:
        """It waits no longer. Called by a connection."""
        if self._idle.pop(client, None) is not None:
            self._others.works(client)

    def left(self, client: ServiceClient) -> None:
        """It has ended, or is another's. Called by a connection."""
        self.works(client)
        self._clients.discard(client)

    def hand_over(self, connection: socket, address: tuple[object, ...], data: bytes) -> None:
        """Give a connection back. Called by it."""
        self._others.adopt(connection, address, data)

    def close(self) -> None:
        """Cut all connections."""
        if self._sweep is not None:
            self._sweep.cancel()
        for taking in self._taking:
            taking.cancel()
        for client in list(self._clients):
            client.cut()

    def _close_idle(self) -> None:
        self._sweep = None
        long_ago = asyncio.get_running_loop().time() - IDLE_S
        for client, since in list(self._idle.items()):
            if since > long_ago:
                break
            client.close()
        if self._idle:
            self._sweep = asyncio.get_running_loop().call_later(IDLE_S / _SWEEPS, self._close_idle)


Branch = Callable[[], Entrance | None]
