"""The HTTP face of a backend, of its own parts: connections of the api, and of services."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from ipaddress import IPv4Network, IPv6Network

from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPServerConnectionDelegate

from pai_backend.access.proxy import Entrance, ServiceProxy
from pai_backend.api.acceptor import Acceptor, WaitingConnections

MOST = 1_000


@asynccontextmanager
async def serving(
    listener: socket.socket,
    api: HTTPServerConnectionDelegate,
    proxy: ServiceProxy,
    proxies: Sequence[IPv4Network | IPv6Network] = (),
) -> AsyncIterator[Acceptor]:
    """A listener that takes connections until the end of the block."""
    waiting = WaitingConnections(api, proxies)
    server = HTTPServer(waiting)
    acceptor = Acceptor(listener, server, waiting, MOST)
    acceptor.entrance = Entrance(proxy, acceptor)
    try:
        yield acceptor
    finally:
        acceptor.close()
        await proxy.aclose()
        acceptor.entrance.close()
        await server.close_all_connections()
