"""Small real servers that stand for what runs in tasks: a tornado application and scripted raw sockets."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from tornado.http1connection import HTTP1Connection
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler, stream_request_body
from tornado.websocket import WebSocketHandler

PIECE = bytes(range(256)) * 256  # 64 KiB


class Show(RequestHandler):
    """Tells what arrived."""

    def show(self) -> None:
        self.write(
            {
                "method": self.request.method,
                "uri": self.request.uri,
                "headers": [[name, value] for name, value in self.request.headers.get_all()],
                "body": self.request.body.decode("latin-1"),
            }
        )

    get = post = put = delete = patch = options = show


class Redirect(RequestHandler):
    def get(self) -> None:
        self.redirect(self.get_argument("to"))


class Cookies(RequestHandler):
    def get(self) -> None:
        for cookie in self.get_arguments("set"):
            self.add_header("Set-Cookie", cookie)


class Status(RequestHandler):
    def get(self, code: str) -> None:
        self.set_status(int(code))
        self.set_header("Etag", '"x"')
        if code == "200":
            self.write("x" * 1000)

    head = get


class Big(RequestHandler):
    async def get(self, pieces: str) -> None:
        for _ in range(int(pieces)):
            self.write(PIECE)
            await self.flush()


class Events(RequestHandler):
    """Server-sent events, one each time the test lets it."""

    gates: asyncio.Queue[str]

    async def get(self) -> None:
        self.set_header("Content-Type", "text/event-stream")
        await self.flush()
        while text := await self.gates.get():
            self.write(f"data: {text}\n\n")
            await self.flush()


@stream_request_body
class Digest(RequestHandler):
    """SHA-256 of the body, taken as it comes."""

    def prepare(self) -> None:
        connection = self.request.connection
        assert isinstance(connection, HTTP1Connection)
        connection.set_max_body_size(1 << 40)
        self.sum = hashlib.sha256()
        self.size = 0

    def data_received(self, chunk: bytes) -> None:
        self.sum.update(chunk)
        self.size += len(chunk)

    def post(self) -> None:
        self.write({"sha256": self.sum.hexdigest(), "size": self.size})


class Echo(WebSocketHandler):
    """Sends back what comes; closes as told."""

    def check_origin(self, origin: str) -> bool:
        return True

    def select_subprotocol(self, subprotocols: list[str]) -> str | None:
        return "beta" if "beta" in subprotocols else None

    def get_compression_options(self) -> dict[str, object]:
        return {}

    async def on_message(self, message: str | bytes) -> None:
        if message == "close":
            self.close(4321, "as told")
        elif message == "headers":
            await self.write_message("\n".join(f"{n}: {v}" for n, v in self.request.headers.get_all()))
        else:
            await self.write_message(message, binary=isinstance(message, bytes))


class Page(RequestHandler):
    def get(self) -> None:
        self.write("<html>a page that is long enough to be compressed</html>" * 50)


@asynccontextmanager
async def web_server() -> AsyncIterator[tuple[int, asyncio.Queue[str]]]:
    """The application above: its port, and the gate of its events (an empty text ends them)."""
    gates: asyncio.Queue[str] = asyncio.Queue()

    class GatedEvents(Events):
        pass

    GatedEvents.gates = gates
    application = Application(
        [
            ("/show.*", Show),
            ("/redirect", Redirect),
            ("/cookies", Cookies),
            (r"/status/(\d+)", Status),
            (r"/big/(\d+)", Big),
            ("/events", GatedEvents),
            ("/digest", Digest),
            ("/deep/ws", Echo),
            ("/page", Page),
        ],
        compress_response=True,
    )
    server = HTTPServer(application)
    sockets = bind_sockets(0, "127.0.0.1")
    server.add_sockets(sockets)
    try:
        yield sockets[0].getsockname()[1], gates
    finally:
        server.stop()
        await server.close_all_connections()


Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def raw_server(script: Script) -> AsyncIterator[int]:
    """A TCP server that does to each connection what the script says, then closes it; its port."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await script(reader, writer)
        finally:
            writer.close()
            tasks.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def answering(response: bytes) -> Script:
    """A script that reads a request's header and answers these bytes."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(response)
        await writer.drain()

    return script
