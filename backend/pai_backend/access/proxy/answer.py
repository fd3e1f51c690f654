"""A task's answer on its way to the client: header, body as it comes, or the switch to another protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from pai_backend.access.proxy.client import ServiceClient
from pai_backend.access.proxy.fields import HeaderFields
from pai_backend.access.proxy.headers import Upstream, response_headers
from pai_backend.access.proxy.http1 import BadMessage, ResponseReader
from pai_backend.access.proxy.refusal import Refusal, Refused
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
        client: ServiceClient,
        to: Upstream,
        method: str,
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
        self._method = method
        self._wait_s = wait_s
        self._keep = keep
        self._used = used
        self._asked = asked
        self._request_complete = asyncio.Event()
        self._deadline: float | None = None
        self._is_late = False

    def request_complete(self) -> None:
        """The whole request has been sent: the time for an answer runs from now on."""
        self._request_complete.set()
        self._deadline = asyncio.get_running_loop().time() + self._wait_s

    def look(self) -> None:
        """Give up when the time for an answer is over. Called each second: a timer for each request costs more."""
        if self._deadline is not None and not self.begun and asyncio.get_running_loop().time() >= self._deadline:
            self._is_late = True
            self._request.give_up()

    async def give(self) -> bool:
        """Pass the answer on, to its end. False after another protocol. Raises Refused when there is none."""
        try:
            head = await self._request.response()
            if head.status == 101:
                await self._switch(head)
                return False
            await self._pass(head)
        except (NoResponse, BadMessage) as error:
            if self._is_late and not self.begun:
                detail = f"Port {self._to.port}: no answer in {self._wait_s:g} s."
                raise Refused(Refusal.TOO_SLOW, detail) from error
            raise Refused(Refusal.NO_ANSWER, f"Port {self._to.port}: {error}.") from error
        return True

    def end(self) -> None:
        """Nothing more is wanted from the task: keep the connection if all has been said on it, else close it."""
        self._keep(self._request.wire)

    async def _pass(self, head: ResponseReader) -> None:
        headers = response_headers(head.headers, self._to)
        is_bodiless = self._method == "HEAD" or head.status in _NO_BODY
        if head.status == 204:
            headers.drop("Content-Length")
        filters = [] if is_bodiless else self._filters(headers)
        first = _fed(filters, self._request.chunk_at_hand())
        self.begun = True
        self._client.begin(head.status, head.reason, headers, first, is_bodiless=is_bodiless)
        async for chunk in self._request.chunks():
            if self._used is not None:
                self._used()
            if data := _fed(filters, chunk):
                await self._client.send(data)
        if rest := _flushed(filters):
            await self._client.send(rest)

    def _filters(self, headers: HeaderFields) -> list[TokenScrubber | Rewriter]:
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
                headers.drop("Content-Length")
        if found and headers.get("Content-Encoding", "identity").lower() != "identity":
            raise Refused(Refusal.NO_ANSWER, "The page came compressed although it was asked for plain.")
        return found

    async def _switch(self, head: ResponseReader) -> None:
        headers = response_headers(head.headers, self._to, upgraded=True)
        if headers.get("Upgrade", "").lower() != self._asked:
            raise NoResponse("it changed to a protocol that was not asked for")
        self.begun = True
        await self._request_complete.wait()
        self._client.switch(head.reason, headers)
        await tunnel(self._client, self._request.wire, self._request.take_over(), self._used)


def _fed(filters: list[TokenScrubber | Rewriter], data: bytes) -> bytes:
    for each in filters:
        data = each.feed(data)
    return data


def _flushed(filters: list[TokenScrubber | Rewriter]) -> bytes:
    data = b""
    for each in filters:
        data = each.feed(data) + each.flush()
    return data
