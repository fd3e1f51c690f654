"""The HTTP face of a backend, of its own parts: connections of the api, and of services."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPServerConnectionDelegate

from pai_backend.access.proxy import Entrance, ServiceProxy
from pai_backend.api.acceptor import Acceptor, WaitingConnections


@asynccontextmanager
async def serving(
    listener: socket.socket, api: HTTPServerConnectionDelegate, proxy: ServiceProxy, most: int = 1_000
) -> AsyncIterator[Acceptor]:
    """A listener that takes connections until the end of the block."""
    waiting = WaitingConnections(api)
    server = HTTPServer(waiting)
    acceptor = Acceptor(listener, server, waiting, most)
    acceptor.entrance = Entrance(proxy, acceptor)
    try:
        yield acceptor
    finally:
        acceptor.close()
        await proxy.aclose()
        acceptor.entrance.close()
        await server.close_all_connections()
