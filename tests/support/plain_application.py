"""Web applications as many are: a page names a script, which opens a WebSocket; ``/headers`` tells what a request has.

``python plain_application.py PORT`` names both from the root of its host; with ``relative`` behind, relatively to the
page, as TensorBoard does.
"""

from __future__ import annotations

import asyncio
import sys

from tornado.web import Application, RequestHandler
from tornado.websocket import WebSocketHandler

ROOT, RELATIVE = "/", ""
SCRIPT = """
const address = new URL('%secho', document.baseURI);
const socket = new WebSocket(address.href.replace('http', 'ws'));
socket.onopen = () => socket.send('hello');
socket.onmessage = message => { document.querySelector('p').textContent = message.data; };
"""


class Page(RequestHandler):
    def get(self) -> None:
        self.write(f'<title>plain</title><body><p></p><script src="{self.settings["at"]}app.js"></script>')


class Script(RequestHandler):
    def get(self) -> None:
        self.set_header("Content-Type", "text/javascript")
        self.write(SCRIPT % self.settings["at"])


class Headers(RequestHandler):
    def get(self) -> None:
        self.write(dict(self.request.headers.get_all()))


class Echo(WebSocketHandler):
    async def on_message(self, message: str | bytes) -> None:
        await self.write_message(f"echo of {message!s}")


async def serve(port: int, at: str) -> None:
    """Until it is killed."""
    rules = [("/", Page), ("/app.js", Script), ("/echo", Echo), ("/headers", Headers)]
    Application(rules, at=at).listen(port, "127.0.0.1")
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), RELATIVE if "relative" in sys.argv else ROOT))
