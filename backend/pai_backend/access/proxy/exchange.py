"""One request through the proxy, from its header to the last byte of its answer.

tornado reads the client's side and calls ``headers_received``, ``data_received`` for each piece of the body (waiting
until it is passed on), then ``finish``; or ``on_connection_close``. The answer comes back in a task of its own,
because a server may answer before it has read everything, and both directions may stream for hours.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import uuid
from collections.abc import Awaitable, Callable

import h11
from tornado.http1connection import HTTP1Connection
from tornado.httputil import (
    HTTPHeaders,
    HTTPMessageDelegate,
    HTTPServerRequest,
    RequestStartLine,
    ResponseStartLine,
)
from tornado.iostream import StreamClosedError

from pai_backend.access.proxy.address import read_address
from pai_backend.access.proxy.answer import Answer
from pai_backend.access.proxy.headers import request_fields, request_target
from pai_backend.access.proxy.pages import Reply, reply
from pai_backend.access.proxy.refusal import Notice, Refused
from pai_backend.access.proxy.service import Passage, ServiceProxy
from pai_backend.access.proxy.upstream import UpstreamRequest
from pai_backend.access.proxy.visitor import Incoming
from pai_backend.model.digits import whole_number
from pai_backend.model.errors import LockedOut, PaiError, Unavailable

log = logging.getLogger(__name__)

# A refused request with a small body is read to its end, so that its connection can go on; a larger one is
# answered at once and cut off.
READ_ANYWAY_BYTES = 1 << 20


class Exchange(HTTPMessageDelegate):
    """The server's side of one request on one connection."""

    def __init__(self, proxy: ServiceProxy, client: HTTP1Connection, request: HTTPServerRequest) -> None:
        """``request`` is known by its header only."""
        self._proxy = proxy
        self._client = client
        self._incoming_request = request
        self._headers = HTTPHeaders()
        self._method = ""
        self._has_body = False
        self._reply: Reply | None = None
        self._request: UpstreamRequest | None = None
        self._answer: Answer | None = None
        self._answering: asyncio.Task[None] | None = None
        self._used: Callable[[], None] | None = None
        self._still: Callable[[], Awaitable[bool]] | None = None

    async def headers_received(self, start_line: RequestStartLine | ResponseStartLine, headers: HTTPHeaders) -> None:
        """Decide, open the way and send the header on; the client waits with its body meanwhile."""
        assert isinstance(start_line, RequestStartLine)  # a server's connection
        self._client.set_max_body_size(sys.maxsize)  # bodies are passed on, never gathered
        self._headers, self._method = headers, start_line.method
        self._has_body = "Transfer-Encoding" in headers or headers.get("Content-Length", "0") != "0"
        try:
            await self._open(start_line)
        except (Refused, PaiError, h11.LocalProtocolError) as error:
            self._reply = self._refusal(error)
        except Exception as error:
            log.exception("a request for a service failed before it was forwarded")
            self._reply = self._refusal(error)
        if self._reply is not None and not self._small_body():
            self._reply.headers["Connection"] = "close"
            self._send_reply(self._reply)
        elif self._answer is not None and self._has_body:
            self._start(self._answer)

    async def data_received(self, chunk: bytes) -> None:
        """Pass a piece of the body on."""
        if self._request is not None:
            if self._used is not None:
                self._used()
            # A task that closed its side may have answered already; the answer's reader sees which it is.
            with contextlib.suppress(OSError):
                await self._request.body(chunk)

    def finish(self) -> None:
        """The request is complete."""
        if self._reply is not None:
            self._send_reply(self._reply)
        elif self._answer is not None and self._request is not None:
            self._client.set_close_callback(self.on_connection_close)
            if self._answering is None:
                self._answer.request_complete()
                self._start(self._answer)
            else:
                self._proxy.run(asyncio.ensure_future(self._end_body(self._request, self._answer)))

    def on_connection_close(self) -> None:
        """The client went away, and its request with it."""
        if self._answering is not None:
            self._answering.cancel()
        elif self._request is not None:
            self._request.close()

    async def _open(self, start_line: RequestStartLine) -> None:
        request = self._incoming_request
        address = read_address(request.host, start_line.path, self._proxy.domain)
        if address is None:
            raise Refused(Notice.UNKNOWN)
        incoming = self._proxy.incoming(request, address)
        admitted = await self._proxy.admit(incoming)
        if isinstance(admitted, Reply):
            self._reply = admitted
            return
        await self._send_request(start_line, incoming, admitted)

    async def _send_request(self, start_line: RequestStartLine, incoming: Incoming, passage: Passage) -> None:
        to = passage.to
        request = UpstreamRequest(passage.wire, passage.dial)
        try:
            drop_token = await self._proxy.is_our_token(incoming, to)
            target = request_target(to.address, drop_token=drop_token)
            with contextlib.suppress(OSError):  # as for the body
                await request.head(incoming.method, target, request_fields(incoming.headers, to, drop_token=drop_token))
                if not self._has_body:
                    await request.end()
        except BaseException:
            request.close()
            raise
        self._request, self._used, self._still = request, passage.used, passage.still
        if passage.used is not None:
            passage.used()
        wait_s = self._proxy.response_s
        asked = incoming.headers.get("Upgrade", "").lower() if incoming.upgrades else ""
        self._answer = Answer(
            request, self._client, to, start_line, wait_s=wait_s, keep=passage.keep, used=passage.used, asked=asked
        )

    async def _end_body(self, request: UpstreamRequest, answer: Answer) -> None:
        with contextlib.suppress(OSError):  # as for the body
            await request.end()
        answer.request_complete()

    def _start(self, answer: Answer) -> None:
        self._answering = asyncio.ensure_future(self._give(answer))
        self._proxy.run(self._answering)

    async def _look(self) -> None:
        """End an answer, or a tunnel, whose visitor would no longer be let in: both may last for days."""
        assert self._still is not None
        assert self._answering is not None
        try:
            if await self._still():
                return
        except Unavailable as error:
            log.warning("a visitor's rights are not known (%s); they are checked again", error.message)
            return
        except Exception:  # better closed than open to a user whose rights may have ended
            log.exception("a visitor's rights cannot be checked")
        self._answering.cancel()
        self._client.close()

    async def _give(self, answer: Answer) -> None:
        self._proxy.watch.add(self._look)
        try:
            await answer.give()
        except StreamClosedError:
            log.debug("the client went away before its answer was complete")
        except Exception as error:
            if not isinstance(error, Refused):
                log.exception("a service's answer could not be forwarded")
            if answer.begun:
                self._client.close()  # the one way left to say that the answer is not complete
            else:
                self._send_reply(self._refusal(error))
        finally:
            self._proxy.watch.discard(self._look)
            answer.end()

    def _refusal(self, error: Exception) -> Reply:
        if isinstance(error, h11.LocalProtocolError):
            error = Refused(Notice.BAD_REQUEST)
        elif isinstance(error, LockedOut):
            error = Refused(Notice.LOCKED_OUT)
        elif isinstance(error, PaiError):
            error = Refused(Notice.AWAY, error.message)
        elif not isinstance(error, Refused):
            error = Refused(Notice.BROKEN)
        return reply(error, self._headers, uuid.uuid4().hex, may_reload=self._method in ("GET", "HEAD"))

    def _small_body(self) -> bool:
        if not self._has_body:
            return True
        length = self._headers.get("Content-Length", "")
        size = whole_number(length)
        return size is not None and size <= READ_ANYWAY_BYTES and "Expect" not in self._headers

    def _send_reply(self, answer: Reply) -> None:
        headers = answer.headers.copy()
        headers["Content-Length"] = str(len(answer.body))
        line = ResponseStartLine("HTTP/1.1", answer.status, answer.reason)
        self._client.write_headers(line, headers, answer.body if self._method != "HEAD" else None)
        self._client.finish()
