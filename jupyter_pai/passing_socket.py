"""The browser's end of a WebSocket that is passed on: what its handlers share."""

from __future__ import annotations

from typing import Any

from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.base.websocket import WebSocketMixin
from tornado.websocket import WebSocketHandler

from jupyter_pai import passing
from jupyter_pai.backend_link import BackendLink


class PassingSocket(WebSocketMixin, JupyterHandler, WebSocketHandler):
    """A WebSocket whose messages go to and come from ``passage``, which ``get`` of a subclass opens first."""

    link: BackendLink
    passage: passing.WebSocketPair | None

    def initialize(self, link: BackendLink) -> None:
        """Called by tornado with the arguments of the route."""
        self.link = link
        self.passage = None

    def open(self, *args: Any, **kwargs: Any) -> None:
        """The browser's side is open: begin to pass messages on."""
        super().open(*args, **kwargs)
        assert self.passage is not None
        self.passage.start()

    async def on_message(self, message: str | bytes) -> None:
        """A message of the browser."""
        assert self.passage is not None
        await self.passage.send(message)

    def on_close(self) -> None:
        """The browser's side is closed; close the other."""
        super().on_close()
        if self.passage is not None:
            self.passage.close()
