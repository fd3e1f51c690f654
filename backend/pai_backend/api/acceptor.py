"""Taking connections from strangers without running out of descriptors.

Connections are bounded below the limit of the process, so that the store, the engine and logs always have some. Where
there are too many, those that have waited longest without a request are closed for new ones: to hold connections
open costs a stranger nothing, and must not keep others out.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import weakref
from collections import OrderedDict
from collections.abc import Awaitable, Sequence
from ipaddress import IPv4Network, IPv6Network
from typing import Any

from tornado.http1connection import HTTP1ServerConnection
from tornado.httpserver import HTTPServer
from tornado.httputil import (
    HTTPConnection,
    HTTPHeaders,
    HTTPMessageDelegate,
    HTTPServerConnectionDelegate,
    RequestStartLine,
    ResponseStartLine,
)
from tornado.iostream import IOStream

from pai_backend.access.proxy import BranchingStream, Entrance
from pai_backend.access.proxy.client import ServiceClient
from pai_backend.api.forwarded import is_among, source
from pai_backend.api.tls import SOCKETS, ServerCertificate, TlsFront

log = logging.getLogger(__name__)

AT_ONCE = 16
"""Connections accepted before others have the loop: each takes a third of a millisecond."""
SHED = 128
"""Connections that are closed when no descriptor is free."""
SHED_SHARE = 100
"""At the bound, one in so many is closed: counting those that are open takes time in proportion to their number."""
PAUSE_S = 0.1
_KEPT_PART, _KEPT_LEAST = 4, 48


def most_connections(descriptors: int) -> int:
    """How many connections a process may have of which a quarter of all descriptors is for other things."""
    return max(8, descriptors - max(descriptors // _KEPT_PART, _KEPT_LEAST))


class WaitingConnections(HTTPServerConnectionDelegate):
    """The server's delegate: passes requests on, and knows which connections wait for one, and who asks."""

    def __init__(self, target: HTTPServerConnectionDelegate, proxies: Sequence[IPv4Network | IPv6Network] = ()) -> None:
        """``proxies`` are believed when they say for whom they ask; other clients are not."""
        self._target = target
        self._proxies = proxies
        self._waiting: OrderedDict[object, None] = OrderedDict()  # those that wait longest come first

    def start_request(self, server_conn: object, request_conn: HTTPConnection) -> HTTPMessageDelegate:
        """Called by tornado before it reads the header of each request."""
        self._waiting[server_conn] = None
        self._waiting.move_to_end(server_conn)
        return _Begun(self._target.start_request(server_conn, request_conn), self, server_conn, request_conn)

    def on_close(self, server_conn: object) -> None:
        """Called by tornado when a connection has ended."""
        self.begun(server_conn)
        self._target.on_close(server_conn)

    def name_source(self, request_conn: HTTPConnection, headers: HTTPHeaders) -> None:
        """Have the request's ``remote_ip`` be the client's, or whom a proxy of ours asks for."""
        context: Any = getattr(request_conn, "context", None)
        if context is not None and isinstance(context.address, tuple) and context.address:
            context.remote_ip = self.source(context.address[0], headers.get_list("X-Forwarded-For"))

    def source(self, peer: str, forwarded_for: Sequence[str]) -> str:
        """Whom a proxy of ours asks for, else ``peer``."""
        return source(peer, forwarded_for, self._proxies) if self._proxies else peer

    def is_proxy(self, peer: str) -> bool:
        """Whether it is the address of a proxy of ours."""
        return is_among(peer, self._proxies)

    def waits(self, client: ServiceClient) -> None:
        """A connection that asks for services waits for a request."""
        self._waiting[client] = None

    def begun(self, server_conn: object) -> None:
        """The connection has a request."""
        self._waiting.pop(server_conn, None)

    def close_longest(self) -> bool:
        """Close the connection that has waited longest for a request; False when none waits."""
        while self._waiting:
            connection, _ = self._waiting.popitem(last=False)
            if isinstance(connection, ServiceClient):
                connection.close()
                return True
            assert isinstance(connection, HTTP1ServerConnection)  # the one kind that tornado's server has
            if not connection.stream.closed():
                connection.stream.close()
                return True
        return False


class _Begun(HTTPMessageDelegate):
    """One request; notes that its header has come."""

    def __init__(
        self, inner: HTTPMessageDelegate, waiting: WaitingConnections, connection: object, request_conn: HTTPConnection
    ) -> None:
        self._inner, self._waiting, self._connection, self._request_conn = inner, waiting, connection, request_conn

    def headers_received(
        self, start_line: RequestStartLine | ResponseStartLine, headers: HTTPHeaders
    ) -> Awaitable[None] | None:
        """Called by tornado with the header."""
        self._waiting.begun(self._connection)
        self._waiting.name_source(self._request_conn, headers)
        return self._inner.headers_received(start_line, headers)

    def data_received(self, chunk: bytes) -> Awaitable[None] | None:
        """Called by tornado with each part of the body."""
        return self._inner.data_received(chunk)

    def finish(self) -> None:
        """Called by tornado after the whole request."""
        self._inner.finish()

    def on_connection_close(self) -> None:
        """Called by tornado when the client has gone."""
        self._inner.on_connection_close()


class Acceptor:
    """Accepts connections at one listener for a server."""

    def __init__(
        self,
        listener: socket.socket,
        server: HTTPServer,
        waiting: WaitingConnections,
        most: int,
        certificate: ServerCertificate | None = None,
    ) -> None:
        """``certificate``: connections are by TLS alone."""
        self._listener, self._server, self._waiting = listener, server, waiting
        self._tls = TlsFront(certificate, self.adopt) if certificate is not None else None
        self.scheme = "http" if certificate is None else "https"
        """How clients reach it."""
        if certificate is not None:
            most = max(8, most // SOCKETS)
        self.entrance: Entrance | None = None
        """Where requests for services go; None while there is no database."""
        self.most = most
        self._room = most
        self._streams: weakref.WeakSet[IOStream] = weakref.WeakSet()
        self._loop = asyncio.get_running_loop()
        self._again: asyncio.TimerHandle | None = None
        listener.setblocking(False)
        self._loop.add_reader(listener, self._accept)

    @property
    def open(self) -> int:
        """Connections that are open, tunnels and streams among them."""
        there = len(self.entrance) if self.entrance is not None else 0
        there += self._tls.shaking if self._tls is not None else 0
        return there + sum(not stream.closed() for stream in list(self._streams))

    def waits(self, client: ServiceClient) -> None:
        """A connection of the entrance waits for a request."""
        self._waiting.waits(client)

    def works(self, client: ServiceClient) -> None:
        """It waits no longer."""
        self._waiting.begun(client)

    def source(self, peer: str, forwarded_for: Sequence[str]) -> str:
        """Whom a proxy of ours asks for, else ``peer``."""
        return self._waiting.source(peer, forwarded_for)

    def is_proxy(self, peer: str) -> bool:
        """Whether it is the address of a proxy of ours."""
        return self._waiting.is_proxy(peer)

    def adopt(self, connection: socket.socket, address: tuple[object, ...], data: bytes = b"") -> None:
        """Serve a connection, of which ``data`` has been read."""
        stream = BranchingStream(connection, address, lambda: self.entrance, data)
        stream.set_nodelay(True)  # once, not for each answer: pieces of a stream must not wait for each other
        self._streams.add(stream)
        self._server.handle_stream(stream, address)

    def close(self) -> None:
        """Stop accepting connections."""
        if self._again is not None:
            self._again.cancel()
        self._loop.remove_reader(self._listener)
        self._listener.close()

    def end(self) -> None:
        """End the connections by TLS that are left."""
        if self._tls is not None:
            self._tls.close()

    def _accept(self) -> None:
        for _ in range(AT_ONCE):
            try:
                connection, address = self._listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as error:  # no descriptor is free, in this process or the system, or no memory
                log.warning("connections cannot be accepted: %s", error.strerror)
                for _ in range(SHED):
                    self._waiting.close_longest()
                self._pause()
                return
            if self._room <= 0:
                self._make_room()
            if self._room <= 0:
                connection.close()  # all are at work
                continue
            self._room -= 1
            if self._tls is not None:
                self._tls.take(connection, address)
            else:
                self.adopt(connection, address)

    def _make_room(self) -> None:
        """Count what is open, which may be less than was accepted, and close those that have waited longest."""
        self._room = self.most - self.open
        if self._room <= 0:
            self._room += sum(self._waiting.close_longest() for _ in range(max(1, self.most // SHED_SHARE)))

    def _pause(self) -> None:
        """Wait before trying again: the listener stays readable, and asking at once would keep the loop busy."""
        self._loop.remove_reader(self._listener)
        self._again = self._loop.call_later(PAUSE_S, self._loop.add_reader, self._listener, self._accept)
