"""Passes one HTTP exchange or WebSocket from a handler to the backend and back.

Answers are streamed piece by piece with back-pressure; request bodies are as Jupyter's server gives
them, whole and within its ``max_body_size``.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlsplit

from jupyter_server.base.handlers import JupyterHandler
from tornado.http1connection import HTTP1Connection
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.httputil import HTTPHeaders, parse_response_start_line
from tornado.iostream import StreamClosedError
from tornado.simple_httpclient import SimpleAsyncHTTPClient
from tornado.web import RequestHandler
from tornado.websocket import (
    WebSocketClientConnection,
    WebSocketClosedError,
    WebSocketError,
    WebSocketHandler,
    websocket_connect,
)

from jupyter_pai import relay, streams
from jupyter_pai.backend_link import BackendLink
from jupyter_pai.client import CONNECT_TIMEOUT_S, AsyncClient, away
from jupyter_pai.errors import from_wire
from pai_backend.model import relayed_by
from pai_backend.model.shared_origin import OF_ORIGIN

NO_ANSWER = 599  # tornado's own status for "there was none"
MAX_ANSWER_BYTES = 1 << 40  # answers are streamed, so their length needs no limit of ours
MAX_MESSAGE_BYTES = 100 * 1024 * 1024  # kernels send images and tables as one message
_SENDABLE_CLOSE_CODES = frozenset({1000, 1001, 1002, 1003, *range(1007, 1015), *range(3000, 5000)})


def _as_it_is(name: str, value: str) -> str:
    return value


@dataclass(frozen=True)
class Hop:
    """Where a request goes: the path with query at the backend, and what its headers become on the way."""

    target: str
    service: bool
    headers: Callable[[str], HTTPHeaders]
    """Those of the request, given the token that lets in at the backend."""
    shown: Callable[[str, str], str] = _as_it_is
    """The value of a header of the answer, by its name in lower case, as the browser gets it."""


def _target(handler: JupyterHandler) -> tuple[str, str]:
    """(prefix from outside, path and query below it), with every byte of the path as the client sent it."""
    prefix = handler.base_url.rstrip("/") + "/pai"
    path = (handler.request.path or "")[len(prefix) :]
    query = relay.without_token(handler.request.query)
    return prefix, f"{path}?{query}" if query else path


def api_hop(handler: JupyterHandler) -> Hop:
    """For ``…/pai/api/…``."""
    headers = partial(relay.request_headers, handler.request.headers, keep_browser=False)
    return Hop(_target(handler)[1], service=False, headers=headers)


def service_hop(handler: JupyterHandler) -> Hop:
    """For ``…/pai/s/…``."""
    prefix, target = _target(handler)

    def headers(token: str) -> HTTPHeaders:
        passed = relay.request_headers(handler.request.headers, token, keep_browser=True)
        # The backend writes redirects, cookies and Jupyters' pages for the address that the browser has.
        passed[relayed_by.PREFIX] = prefix
        passed[relayed_by.SCHEME] = handler.request.protocol
        passed[relayed_by.HOST] = handler.request.host
        login = handler.identity_provider.get_cookie_name(handler)
        relay.keep_service_cookies(passed, "; ".join(handler.request.headers.get_list("Cookie")), {login})
        return passed

    return Hop(target, service=True, headers=headers)


class _Answer:
    """Writes the backend's answer to the browser as it arrives."""

    def __init__(self, handler: RequestHandler, hop: Hop) -> None:
        self.begun = False
        self._handler = handler
        self._hop = hop
        self._headers = HTTPHeaders()

    def header_line(self, line: str) -> None:
        """One line of the head, beginning with the status line; an empty one ends it."""
        line = line.rstrip("\r\n")
        if line.startswith("HTTP/"):
            start = parse_response_start_line(line)
            self._headers = HTTPHeaders()
            self._handler.set_status(start.code, start.reason)
        elif line:
            self._headers.parse_line(line)
        else:
            self._head()

    def _head(self) -> None:
        self.begun = True
        if self._hop.service:
            self._handler.clear_header("Content-Type")
        # Jupyter's own policy stands on its origin; a browser holds a page to that and to the service's.
        single = {"content-security-policy"} if self._hop.service else set()
        for name, value in relay.response_headers(self._headers):
            if self._hop.service and name.lower() in OF_ORIGIN:
                continue
            value = self._hop.shown(name.lower(), value)
            if name.lower() in single:
                self._handler.add_header(name, value)
            else:
                self._handler.set_header(name, value)  # replaces what Jupyter set by default
            single.add(name.lower())

    async def piece(self, data: bytes) -> None:
        """A part of the body; returns when the browser has room for more."""
        self._handler.write(data)
        await self._handler.flush()


async def http(handler: RequestHandler, link: BackendLink, hop: Hop) -> None:
    """One exchange. Raises BackendAway without an answer when nothing has been written yet."""
    client = await link.client()
    answer = _Answer(handler, hop)
    request = HTTPRequest(
        client.endpoint.url + hop.target,
        method=handler.request.method or "GET",
        headers=hop.headers(client.endpoint.token),
        body=handler.request.body
        if handler.request.body or handler.request.method in ("POST", "PUT", "PATCH")
        else None,
        allow_nonstandard_methods=True,
        follow_redirects=False,
        decompress_response=False,
        connect_timeout=CONNECT_TIMEOUT_S,
        request_timeout=0,
        header_callback=answer.header_line,
        streaming_callback=answer.piece,
    )
    # A client of its own: it may live as long as a stream of server-sent events, and ends with the browser.
    fetcher = SimpleAsyncHTTPClient(force_instance=True, max_clients=1, max_body_size=MAX_ANSWER_BYTES)
    broken: BaseException | None = None
    try:
        response = await fetcher.fetch(request, raise_error=False)
        if response.code == NO_ANSWER:
            broken = response.error or StreamClosedError()
    except (OSError, HTTPClientError) as error:
        broken = error
    finally:
        fetcher.close()
    if broken is not None:
        _broken(handler, answer, client, link, broken)
        return
    with contextlib.suppress(StreamClosedError):  # the browser has all it wants and left
        await handler.flush()
    handler.finish()


def _broken(
    handler: RequestHandler, answer: _Answer, client: AsyncClient, link: BackendLink, error: BaseException
) -> None:
    """The exchange ended early: raises BackendAway while that can still be said, else cuts the answer off."""
    connection = handler.request.connection
    assert isinstance(connection, HTTP1Connection)
    if connection.stream.closed():
        return  # it was the browser that left
    if answer.begun:
        connection.close()  # finishing it would make half an answer look whole
        return
    link.lost(client)
    raise away(client.endpoint, streams.reason_of(error)) from error


class WebSocketPair:
    """Two open WebSockets, the browser's and the backend's, with messages passed both ways in order."""

    def __init__(self, handler: WebSocketHandler, upstream: WebSocketClientConnection) -> None:
        self._handler = handler
        self._upstream = upstream
        self._pump: asyncio.Task[None] | None = None

    @property
    def subprotocol(self) -> str | None:
        """What the backend's side chose."""
        return self._upstream.selected_subprotocol

    def start(self) -> None:
        """Begin passing messages to the browser."""
        self._pump = asyncio.create_task(self._to_browser())

    async def _to_browser(self) -> None:
        try:
            while (message := await self._upstream.read_message()) is not None:
                await self._handler.write_message(message, binary=isinstance(message, bytes))
        except WebSocketClosedError:
            return  # the browser left; on_close does the rest
        code = self._upstream.close_code
        if code in _SENDABLE_CLOSE_CODES:
            self._handler.close(code, self._upstream.close_reason)
        else:
            self._handler.close(1011 if code is not None else 1001, "the backend's connection broke")

    async def send(self, message: str | bytes) -> None:
        """A message of the browser, to the backend; dropped when that side is closing, as TCP would."""
        try:
            await self._upstream.write_message(message, binary=isinstance(message, bytes))
        except WebSocketClosedError:
            self._handler.close(1001, "the backend's connection is closed")

    def close(self) -> None:
        """The browser's side is closed."""
        code = self._handler.close_code
        self._upstream.close(code if code in _SENDABLE_CLOSE_CODES else None, self._handler.close_reason)


async def websocket(handler: WebSocketHandler, link: BackendLink, hop: Hop) -> WebSocketPair:
    """Open the backend's side. Raises BackendAway, or the error that the backend refused with."""
    client = await link.client()
    offered = [
        item.strip() for item in handler.request.headers.get("Sec-WebSocket-Protocol", "").split(",") if item.strip()
    ]
    base = urlsplit(client.endpoint.url)
    scheme = "wss" if base.scheme == "https" else "ws"
    request = HTTPRequest(
        f"{scheme}://{base.netloc}{base.path}{hop.target}",
        headers=hop.headers(client.endpoint.token),
        connect_timeout=CONNECT_TIMEOUT_S,
        request_timeout=CONNECT_TIMEOUT_S,
    )
    try:
        upstream = await websocket_connect(request, subprotocols=offered or None, max_message_size=MAX_MESSAGE_BYTES)
    except HTTPClientError as error:
        if error.code == NO_ANSWER or error.response is None:
            link.lost(client)
            raise away(client.endpoint, streams.reason_of(error)) from error
        raise from_wire(error.code, streams.decoded(error.response.body)) from error
    except (OSError, WebSocketError) as error:
        link.lost(client)
        raise away(client.endpoint, streams.reason_of(error)) from error
    return WebSocketPair(handler, upstream)
