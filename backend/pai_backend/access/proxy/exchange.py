"""One request through the proxy, from its header to the last byte of its answer.

Body and answer have a task each, because a server may answer before it has read everything, and both directions may
stream for hours.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from functools import partial

from pai_backend.access.proxy.answer import Answer
from pai_backend.access.proxy.client import ServiceClient
from pai_backend.access.proxy.headers import request_fields, request_target
from pai_backend.access.proxy.http1 import BadMessage, RequestReader
from pai_backend.access.proxy.pages import Reply, reply
from pai_backend.access.proxy.refusal import Refusal, Refused
from pai_backend.access.proxy.service import Passage, ServiceProxy
from pai_backend.access.proxy.upstream import UpstreamRequest
from pai_backend.access.proxy.visitor import Incoming
from pai_backend.model.digits import whole_number
from pai_backend.model.errors import LockedOut, PaiError, Unavailable

log = logging.getLogger(__name__)

# A refused request with a small body is read to its end, so that its connection can go on; a larger one is
# answered at once and cut off.
READ_ANYWAY_BYTES = 1 << 20


class Exchange:
    """The server's side of one request on one connection."""

    def __init__(self, proxy: ServiceProxy, client: ServiceClient, request: RequestReader, incoming: Incoming) -> None:
        self._proxy = proxy
        self._client = client
        self._request = request
        self._incoming = incoming
        self._task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """From the decision to the last byte."""
        self._task = asyncio.current_task()
        assert self._task is not None
        with self._proxy.at_work(self._task):
            await self._run()

    async def _run(self) -> None:
        has_body, admitted = self._request.has_body, None
        try:
            admitted = await self._proxy.admit(self._incoming)
            if isinstance(admitted, Passage):
                upstream = await self._send_head(admitted)
        except Exception as error:
            if not isinstance(error, (Refused, PaiError, BadMessage)):
                log.exception("a request for a service failed before it was forwarded")
            admitted = self._refusal(error)
        if isinstance(admitted, Reply):
            await self._give_reply(admitted)
            return
        answer = self._answer(upstream, admitted)
        if not has_body:
            answer.request_complete()
            done = await self._give(answer, admitted)
        else:
            body = asyncio.ensure_future(self._send_body(upstream, answer, admitted))
            try:
                done = await self._give(answer, admitted)
            finally:
                body.cancel()
                await asyncio.gather(body, return_exceptions=True)
        if done:
            self._client.finish()

    async def _send_head(self, passage: Passage) -> UpstreamRequest:
        incoming, to = self._incoming, passage.to
        request = UpstreamRequest(passage.wire, passage.dial)
        try:
            drop_token = await self._proxy.is_our_token(incoming, to)
            target = request_target(to.address, drop_token=drop_token)
            fields = request_fields(incoming.headers, to, drop_token=drop_token)
            # A task that closed its side may have answered already; the answer's reader sees which it is.
            with contextlib.suppress(OSError):
                await request.head(incoming.method, target, fields)
                if not self._request.has_body:
                    await request.end()
        except BaseException:
            request.close()
            raise
        return request

    def _answer(self, upstream: UpstreamRequest, passage: Passage) -> Answer:
        if passage.used is not None:
            passage.used()
        incoming = self._incoming
        return Answer(
            upstream,
            self._client,
            passage.to,
            incoming.method,
            wait_s=self._proxy.response_s,
            keep=passage.keep,
            used=passage.used,
            asked=incoming.headers.get("Upgrade", "").lower() if incoming.upgrades else "",
        )

    async def _send_body(self, upstream: UpstreamRequest, answer: Answer, passage: Passage) -> None:
        """Pass the body on as the task takes it."""
        if "Expect" in self._incoming.headers:
            self._client.go_on()
        try:
            while piece := await self._client.body():
                if passage.used is not None:
                    passage.used()
                with contextlib.suppress(OSError):  # as for the head
                    await upstream.body(piece)
            with contextlib.suppress(OSError):
                await upstream.end()
        except BadMessage:
            log.debug("the body of a request for a service was not HTTP/1.1")
            upstream.close()
            self._client.close()
            return
        answer.request_complete()

    async def _give(self, answer: Answer, passage: Passage) -> bool:
        """Pass the answer on. False when the connection has no other request to come."""
        look = partial(self._look, answer, passage)
        self._proxy.watch.add(look)
        try:
            return await answer.give()
        except Exception as error:
            if not isinstance(error, Refused):
                log.exception("a service's answer could not be forwarded")
            if answer.begun:
                self._client.close()  # the one way left to say that the answer is not complete
                return False
            self._send_reply(self._refusal(error))
            return True
        finally:
            self._proxy.watch.discard(look)
            answer.end()

    async def _look(self, answer: Answer, passage: Passage) -> None:
        """End an answer, or a tunnel, whose visitor would no longer be let in: both may last for days."""
        assert self._task is not None
        answer.look()
        try:
            if await passage.still():
                return
        except Unavailable as error:
            log.warning("a visitor's rights are not known (%s); they are checked again", error.message)
            return
        except Exception:  # better closed than open to a user whose rights may have ended
            log.exception("a visitor's rights cannot be checked")
        self._task.cancel()
        self._client.cut()

    def _refusal(self, error: Exception) -> Reply:
        if isinstance(error, BadMessage):
            error = Refused(Refusal.BAD_REQUEST)
        elif isinstance(error, LockedOut):
            error = Refused(Refusal.LOCKED_OUT)
        elif isinstance(error, PaiError):
            error = Refused(Refusal.AWAY, error.message)
        elif not isinstance(error, Refused):
            error = Refused(Refusal.BROKEN)
        may_reload = self._incoming.method in ("GET", "HEAD")
        return reply(error, self._incoming.headers, uuid.uuid4().hex, may_reload=may_reload)

    async def _give_reply(self, answer: Reply) -> None:
        """Answer by ourselves; what is small of a body is read first, so that the connection can go on."""
        headers = self._incoming.headers
        size = whole_number(headers.get("Content-Length", "" if self._request.has_body else "0"))
        if size is not None and size <= READ_ANYWAY_BYTES and "Expect" not in headers:
            try:
                while await self._client.body():
                    pass
            except BadMessage:
                answer.headers["Connection"] = "close"
        else:
            answer.headers["Connection"] = "close"
        self._send_reply(answer)
        self._client.finish()

    def _send_reply(self, answer: Reply) -> None:
        headers = answer.headers.copy()
        headers["Content-Length"] = str(len(answer.body))
        is_bodiless = self._incoming.method == "HEAD"
        body = b"" if is_bodiless else answer.body
        self._client.begin(answer.status, answer.reason.encode("ascii"), headers, body, is_bodiless=is_bodiless)
