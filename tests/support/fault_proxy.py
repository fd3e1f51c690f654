"""A reverse proxy between a client and an API server that can be told to misbehave, and counts what passes.

It speaks plain HTTP on loopback, so that a kubeconfig of the tests needs only another address.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
from aiohttp import web

_KEPT_HEADERS = ("Authorization", "Accept", "Content-Type")


@dataclass(frozen=True)
class Answer:
    """Every request is answered so, and none is passed on."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Hang:
    """No request is answered, and none passed on."""


@dataclass(frozen=True)
class EndStreams:
    """Every watch ends as if the server had ended it, after that many seconds."""

    after_s: float


@dataclass(frozen=True)
class Slow:
    """What the server says trickles: that many bytes at once, that many seconds apart."""

    chunk_bytes: int
    every_s: float


@dataclass(frozen=True)
class LoseAnswer:
    """The request is carried out, and its answer lost with the connection; ``then`` may kill whoever asked."""

    then: Callable[[], object] = lambda: None


Fault = Answer | Hang | EndStreams | Slow | LoseAnswer


@dataclass(eq=False)
class _Passage:
    """A request under way."""

    transport: asyncio.Transport
    frozen: bool = False


HOLDER = "-database-holder"
"""How the names of all holder records end."""


class FaultProxy:
    """The proxy. ``fault`` is what it does to requests that ``concerns`` picks, from now on."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._session: aiohttp.ClientSession | None = None
        self._changed = asyncio.Event()
        self._open: set[_Passage] = set()
        self._fault: Fault | None = None
        self._concerns: Callable[[web.Request], bool] = lambda _: True
        self.port = 0
        self.requests: Counter[str] = Counter()  # by "watch", "heartbeat" (of the holder record) or method

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def misbehave(self, fault: Fault, concerns: Callable[[web.Request], bool] = lambda _: True) -> None:
        """From now on. What is under way goes on as it was."""
        self._fault, self._concerns = fault, concerns

    def behave(self) -> None:
        """As a good proxy from now on; requests that hang are cut."""
        self._fault = None
        self._changed.set()
        self._changed = asyncio.Event()

    def cut(self) -> int:
        """Reset every connection with a request under way; how many there were."""
        cut = len(self._open)
        for passage in list(self._open):
            passage.transport.abort()
        return cut

    def freeze(self) -> None:
        """Let nothing more through on what is open now, and leave it open: a connection that a router forgot."""
        for passage in self._open:
            passage.frozen = True

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """One request."""
        watch = request.query.get("watch") == "1"
        beats = request.path.endswith(HOLDER)
        self.requests["watch" if watch else "heartbeat" if beats else request.method] += 1
        fault = self._fault if self._concerns(request) else None
        assert isinstance(request.transport, asyncio.Transport)
        passage = _Passage(request.transport)
        self._open.add(passage)
        try:
            if isinstance(fault, Answer):
                return web.Response(status=fault.status, headers=fault.headers)
            if isinstance(fault, Hang):
                await self._changed.wait()
                passage.transport.abort()
                return web.Response(status=500)
            return await self._pass(request, passage, fault, watch=watch)
        finally:
            self._open.discard(passage)

    async def _pass(
        self, request: web.Request, passage: _Passage, fault: Fault | None, *, watch: bool
    ) -> web.StreamResponse:
        assert self._session is not None
        headers = {name: request.headers[name] for name in _KEPT_HEADERS if name in request.headers}
        body = await request.read()
        try:
            async with self._session.request(
                request.method, self._target + request.path_qs, headers=headers, data=body or None
            ) as upstream:
                response = web.StreamResponse(status=upstream.status)
                response.content_type = upstream.content_type
                if isinstance(fault, LoseAnswer):
                    await upstream.read()
                    fault.then()
                    raise ConnectionResetError
                await response.prepare(request)
                try:
                    async with asyncio.timeout(fault.after_s if isinstance(fault, EndStreams) and watch else None):
                        async for chunk in upstream.content.iter_any():
                            await self._write(passage, response, chunk, fault)
                except TimeoutError:
                    pass  # the fault: the stream ends here
                await response.write_eof()
                return response
        except (aiohttp.ClientError, ConnectionError):
            # The server is away, or the fault is to look like it: the client's connection breaks too.
            passage.transport.abort()
            return web.Response(status=502)

    async def _write(self, passage: _Passage, response: web.StreamResponse, chunk: bytes, fault: Fault | None) -> None:
        if passage.frozen:
            await asyncio.Event().wait()  # until the client has had enough
        if not isinstance(fault, Slow):
            await response.write(chunk)
            return
        for start in range(0, len(chunk), fault.chunk_bytes):
            await response.write(chunk[start : start + fault.chunk_bytes])
            await asyncio.sleep(fault.every_s)  # the fault itself

    async def start(self) -> web.AppRunner:
        """Listen on a free port."""
        unchecked = ssl.create_default_context()
        unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
        connector = aiohttp.TCPConnector(ssl=unchecked, limit=0)
        self._session = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=None))
        application = web.Application(client_max_size=16 * 1024 * 1024)
        application.router.add_route("*", "/{path:.*}", self.handle)
        runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.port = runner.addresses[0][1]
        return runner

    async def close(self, runner: web.AppRunner) -> None:
        """End everything."""
        self.cut()
        await runner.cleanup()
        if self._session is not None:
            await self._session.close()


@asynccontextmanager
async def fault_proxy(target: str) -> AsyncIterator[FaultProxy]:
    """A proxy in front of ``target`` that behaves, until the block ends."""
    proxy = FaultProxy(target)
    runner = await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.close(runner)
