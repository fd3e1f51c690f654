"""An origin of its own for a service, on this machine: requests go on over HTTP to wherever the backend is.

``pai open --local`` and the Jupyter server of the panel make one.

A browser asks ``<service alias>.localhost:PORT``; the service's path below the backend's address is put before what it
asks for, and the user's token beside it. So every application works, through a Jupyter server's address and any reverse
proxy, too. Only a browser that was given the key may come in, and no page of another origin.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPHeaders
from tornado.netutil import bind_sockets
from tornado.web import Application, HTTPError
from tornado.websocket import WebSocketHandler

from jupyter_pai import passing, relay
from jupyter_pai.addresses import REACHED
from jupyter_pai.backend_link import BackendLink
from jupyter_pai.endpoint import Endpoint
from jupyter_pai.errors import ClientError
from pai_backend.model import relayed_by

COOKIE = "pai-local"
SIGN_IN = "/.pai/local"
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class LocalService:
    """Listens at 127.0.0.1 from :meth:`listen` to :meth:`close`. ``find`` gives the backend, as for BackendLink.

    ``path`` is the service's below the backend's address, ``/s/<service alias>``.
    """

    def __init__(self, find: Callable[[], Endpoint], path: str) -> None:
        self.link = BackendLink(find)
        self.path = path
        self.key = secrets.token_urlsafe(32)
        self.session = secrets.token_urlsafe(32)
        self.proof = secrets.token_urlsafe(32)
        """What ``REACHED`` answers, to pages of any origin: it opens nothing."""
        self.host = ""
        self.is_entered = False
        """Whether a browser has signed in."""
        self._server = HTTPServer(Application([(r"/.*", _Handler, {"service": self})]))

    def listen(self, port: int) -> str:
        """Begin; returns the address that signs a browser in. Port 0 is any that is free. Raises OSError."""
        sockets = bind_sockets(port, "127.0.0.1")
        self._server.add_sockets(sockets)
        self.host = f"{self.path.rpartition('/')[2]}.localhost:{sockets[0].getsockname()[1]}"
        return f"http://{self.host}{SIGN_IN}?key={self.key}"

    async def close(self) -> None:
        """Stop, and cut what is open."""
        self._server.stop()
        await self._server.close_all_connections()
        self.link.close()

    def inner(self, target: str, base_path: str) -> str:
        """What to ask the backend for. A Jupyter names addresses with the path already before them."""
        whole = base_path + self.path
        if target.partition("?")[0] == whole or target.startswith(f"{whole}/"):
            return target[len(base_path) :]
        return self.path + target


class _Handler(WebSocketHandler):
    """Any request of the browser."""

    service: LocalService
    passage: passing.WebSocketPair | None

    def initialize(self, service: LocalService) -> None:
        """Called by tornado with the arguments of the route."""
        self.service = service
        self.passage = None

    def prepare(self) -> None:
        """Refuse all but the browser that was sent here, and other names of this machine (DNS rebinding)."""
        if self.request.headers.get("Host", "").lower() != self.service.host:
            raise HTTPError(403, "This port is of another address")
        if self.request.path == SIGN_IN:
            self._sign_in()
        elif self.request.path == REACHED:
            self.set_header("Access-Control-Allow-Origin", "*")
            self.finish(self.service.proof)
        elif not secrets.compare_digest(self._session().encode(), self.service.session.encode()):
            raise HTTPError(403, "Press Open in the panel, or open the address that `pai open --local` shows")
        elif not self._is_own():
            raise HTTPError(403, "A page of another site may not send this")

    def _sign_in(self) -> None:
        if not secrets.compare_digest(self.get_query_argument("key", "").encode(), self.service.key.encode()):
            raise HTTPError(403, "Press Open in the panel, or open the address that `pai open --local` shows")
        self.service.is_entered = True
        self.set_cookie(COOKIE, self.service.session, httponly=True, samesite="Lax")
        self.redirect("/")

    def _session(self) -> str:
        return self.get_cookie(COOKIE) or ""

    def _is_own(self) -> bool:
        is_safe = self.request.method in _SAFE_METHODS and not self._upgrades()
        return is_safe or relay.is_of_own_page(self.request.headers)

    def _upgrades(self) -> bool:
        return self.request.headers.get("Upgrade", "").lower() == "websocket"

    async def _hop(self) -> passing.Hop:
        base_path = urlsplit((await self.service.link.client()).endpoint.url).path.rstrip("/")

        def headers(token: str) -> HTTPHeaders:
            given = self.request.headers
            passed = relay.request_headers(given, token, keep_browser=False)
            if relay.XSRF_HEADER in given:
                passed[relay.XSRF_HEADER] = given[relay.XSRF_HEADER]
            passed[relayed_by.PREFIX] = base_path
            relay.keep_service_cookies(passed, "; ".join(given.get_list("Cookie")), {COOKIE})
            return passed

        def shown(name: str, value: str) -> str:
            return _own_cookie(value, base_path + self.service.path) if name == "set-cookie" else value

        target = self.service.inner(self.request.uri or "/", base_path)
        return passing.Hop(target, service=True, headers=headers, shown=shown)

    async def get(self, *args: Any, **kwargs: Any) -> None:
        """A page, or a WebSocket."""
        if not self._upgrades():
            await self._pass()
            return
        try:
            self.passage = await passing.websocket(self, self.service.link, await self._hop())
        except ClientError as error:
            raise HTTPError(error.status or 503, error.message) from error
        await super().get(*args, **kwargs)

    async def _pass(self, *_: Any) -> None:
        """Any other request."""
        try:
            await passing.http(self, self.service.link, await self._hop())
        except ClientError as error:
            raise HTTPError(error.status or 503, error.message) from error

    head = options = post = put = patch = delete = _pass

    def check_origin(self, origin: str) -> bool:
        """Called by tornado for a WebSocket. ``prepare`` has looked already."""
        return True

    def select_subprotocol(self, subprotocols: list[str]) -> str | None:
        """What the service chose."""
        return self.passage.subprotocol if self.passage is not None else None

    def open(self, *args: Any, **kwargs: Any) -> None:
        """The browser's side is open: begin to pass messages on."""
        assert self.passage is not None
        self.passage.start()

    async def on_message(self, message: str | bytes) -> None:
        """A message of the browser."""
        assert self.passage is not None
        await self.passage.send(message)

    def on_close(self) -> None:
        """The browser's side is closed; close the other."""
        if self.passage is not None:
            self.passage.close()


def _own_cookie(cookie: str, prefix: str) -> str:
    """A service's ``Set-Cookie`` with the path that it has here, where the service has the whole origin."""
    parts = [part.strip() for part in cookie.split(";")]
    return "; ".join(
        f"Path={part.partition('=')[2].removeprefix(prefix) or '/'}" if part.lower().startswith("path=") else part
        for part in parts
    )
