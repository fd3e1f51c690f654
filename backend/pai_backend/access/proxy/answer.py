"""A task's answer on its way to the client: header, body as it comes, or the switch to another protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import h11
from tornado.http1connection import HTTP1Connection
from tornado.httputil import HTTPHeaders, HTTPInputError, HTTPOutputError, RequestStartLine, ResponseStartLine

from pai_backend.access.proxy.headers import Upstream, response_headers
from pai_backend.access.proxy.refusal import Notice, Refused
from pai_backend.access.proxy.rewriting import Rewriter, rewrite_for
from pai_backend.access.proxy.scrub import TokenScrubber
from pai_backend.access.proxy.tunnel import tunnel
from pai_backend.access.proxy.upstream import NoResponse, UpstreamRequest, Wire

_NO_BODY = frozenset({204, 304})  # RFC 9110 §6.4.1


class Answer:
    """Waits for the answer of one request and gives it to the client."""

    def __init__(
        self,
        request: UpstreamRequest,
        client: HTTP1Connection,
        to: Upstream,
        line: RequestStartLine,
        *,
        wait_s: float,
        keep: Callable[[Wire], None],
        used: Callable[[], None] | None = None,
        asked: str = "",
    ) -> None:
        """``used`` is called for what of the answer is use of the job; ``asked`` is the protocol to change to.

        ``keep`` takes the connection in the end.
        """
        self.begun = False
        """Whether anything of the answer has gone to the client."""
        self._request = request
        self._client = client
        self._to = to
        self._line = line
        self._wait_s = wait_s
        self._keep = keep
        self._used = used
        self._asked = asked
        self._request_complete = asyncio.Event()
        self._deadline: asyncio.Timeout | None = None

    def request_complete(self) -> None:
        """The whole request has been sent: the time for an answer runs from now on."""
        self._request_complete.set()
        if self._deadline is not None:
            self._deadline.reschedule(asyncio.get_running_loop().time() + self._wait_s)

    async def give(self) -> None:
        """Pass the answer on, to its end. Raises Refused when there is none, StreamClosedError without a client."""
        try:
            head = await self._head()
            if head.status_code == 101:
                await self._switch(head)
            else:
                await self._pass(head)
        except (NoResponse, HTTPInputError, HTTPOutputError) as error:
            raise Refused(Notice.NO_ANSWER, f"Port {self._to.port}: {error}.") from error

    def end(self) -> None:
        """Nothing more is wanted from the task: keep the connection if all has been said on it, else close it."""
        self._keep(self._request.wire)

    async def _head(self) -> h11.Response | h11.InformationalResponse:
        try:
            async with asyncio.timeout(self._wait_s if self._request_complete.is_set() else None) as self._deadline:
                return await self._request.response()
        except TimeoutError as error:
            raise Refused(Notice.TOO_SLOW, f"Port {self._to.port}: no answer in {self._wait_s:g} s.") from error
        finally:
            self._deadline = None

    async def _pass(self, head: h11.Response | h11.InformationalResponse) -> None:
        headers = response_headers(head.headers, self._to)
        code, bodiless = head.status_code, self._line.method == "HEAD" or head.status_code in _NO_BODY
        if code == 204:
            headers.pop("Content-Length", None)
        filters = self._filters(headers)
        if bodiless:
            filters = []
        first = _fed(filters, self._request.chunk_at_hand())
        self.begun = True
        await self._client.write_headers(ResponseStartLine("HTTP/1.1", code, _reason(head)), headers, first or None)
        async for chunk in self._request.chunks():
            if self._used is not None:
                self._used()
            if data := _fed(filters, chunk):
                await self._client.write(data)
        if rest := _flushed(filters):
            await self._client.write(rest)
        self._client.finish()
        if self._line.version == "HTTP/1.0" and not bodiless and "Content-Length" not in headers:
            self._client.close()  # the one way that HTTP/1.0 has to end such a body, even if it asked to keep open

    def _filters(self, headers: HTTPHeaders) -> list[TokenScrubber | Rewriter]:
        """What the body of a Jupyter's page passes through: without its token, and below the path of its address."""
        found: list[TokenScrubber | Rewriter] = []
        content_type = headers.get("Content-Type", "")
        if self._to.token is not None and content_type.lower().startswith("text/html"):
            found.append(TokenScrubber(self._to.token))
        is_whole = "Content-Range" not in headers and "attachment" not in headers.get("Content-Disposition", "")
        if self._to.is_jupyter and self._to.prefix and is_whole:
            rewrite = rewrite_for(self._to.address.path, content_type)
            if rewrite is not None:
                found.append(Rewriter(rewrite, self._to.prefix))
                headers.pop("Content-Length", None)
        if found and headers.get("Content-Encoding", "identity").lower() != "identity":
            raise Refused(Notice.NO_ANSWER, "The page came compressed although it was asked for plain.")
        return found

    async def _switch(self, head: h11.Response | h11.InformationalResponse) -> None:
        headers = response_headers(head.headers, self._to, upgraded=True)
        if headers.get("Upgrade", "").lower() != self._asked:
            raise NoResponse("it changed to a protocol that was not asked for")
        await self._request_complete.wait()
        lines = [f"HTTP/1.1 101 {_reason(head)}", *(f"{name}: {value}" for name, value in headers.get_all())]
        early, reader, writer = self._request.take_over()
        self.begun = True
        stream = self._client.detach()
        stream.set_nodelay(True)
        early_lines = "\r\n".join([*lines, "", ""]).encode("latin-1")
        await stream.write(early_lines)
        await tunnel(stream, reader, writer, early, self._used)


def _fed(filters: list[TokenScrubber | Rewriter], data: bytes) -> bytes:
    for each in filters:
        data = each.feed(data)
    return data


def _flushed(filters: list[TokenScrubber | Rewriter]) -> bytes:
    data = b""
    for each in filters:
        data = each.feed(data) + each.flush()
    return data


def _reason(head: h11.Response | h11.InformationalResponse) -> str:
    return bytes(head.reason).decode("latin-1")
