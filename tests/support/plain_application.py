"""A web application as many are: its page names a script from the root of its host, which opens a WebSocket there.

``python plain_application.py PORT``
"""

from __future__ import annotations

import asyncio
import sys

from tornado.web import Application, RequestHandler
from tornado.websocket import WebSocketHandler

SCRIPT = """
const socket = new WebSocket(`ws://${location.host}/echo`);
socket.onopen = () => socket.send('hello');
socket.onmessage = message => { document.querySelector('p').textContent = message.data; };
"""


class Page(RequestHandler):
    def get(self) -> None:
        self.write('<title>plain</title><body><p></p><script src="/app.js"></script>')


class Script(RequestHandler):
    def get(self) -> None:
        self.set_header("Content-Type", "text/javascript")
        self.write(SCRIPT)


class Echo(WebSocketHandler):
    async def on_message(self, message: str | bytes) -> None:
        await self.write_message(f"echo of {message!s}")


async def serve(port: int) -> None:
    """Until it is killed."""
    Application([("/", Page), ("/app.js", Script), ("/echo", Echo)]).listen(port, "127.0.0.1")
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
