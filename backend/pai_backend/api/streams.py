"""Pushing a sequence of messages over a WebSocket."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

import tornado.websocket

from pai_backend.api.base import LOOK_S, ApiWebSocketHandler
from pai_backend.engine.base import EngineError
from pai_backend.model.errors import LockedOut, PaiError, Unauthorized, Unavailable

Messages = AsyncIterator[str] | AsyncIterator[bytes] | AsyncIterator[str | bytes]

log = logging.getLogger(__name__)

REASON_BYTES = 120  # RFC 6455 §5.5: a close frame has room for 123
CLOSE_REVOKED = 1008  # RFC 6455 §7.4.1: a policy is violated

CLOSE_DONE, CLOSE_AGAIN, CLOSE_FAULT = 1000, 1013, 1011  # RFC 6455 §7.4.1 and its registry
COMPLETE = "complete"
"""The reason with which a stream is closed whose last message is sent. Servers and proxies close with 1000, too."""


class PushHandler(ApiWebSocketHandler):
    """Sends what an iterator yields, as fast as the client takes it, and closes after it."""

    _messages: Messages | None = None
    _pump: asyncio.Task[None] | None = None
    _watch: asyncio.Task[None] | None = None

    _heart: asyncio.Task[None] | None = None
    _heartbeat_s: int | None = None
    _has_sent = False

    async def push(self, messages: Messages, heartbeat_s: int | None) -> None:
        """Upgrade the connection and send; returns when the connection has ended.

        With ``heartbeat_s`` an empty text message is sent after as many seconds without another one: browsers do not
        tell pages of pings, and only so a page knows a stream that has nothing to say from one that is broken.

        Tornado's own GET, which our verbs replace, checks the headers, answers 101, calls ``open`` and reads
        frames until the end.
        """
        self._messages = messages
        self._heartbeat_s = heartbeat_s
        await tornado.websocket.WebSocketHandler.get(self)

    def open(self, *_args: str, **_kwargs: str) -> None:
        """Called by tornado after the upgrade."""
        self.set_nodelay(True)
        self.ctx.metrics.stream_opened()
        assert self._messages is not None
        self._pump = asyncio.create_task(self._send_all(self._messages))
        self._watch = asyncio.create_task(self._until_revoked(self._pump))
        if self._heartbeat_s is not None:
            self._heart = asyncio.create_task(self._beat(self._heartbeat_s))

    def on_message(self, message: str | bytes) -> None:
        """Called by tornado; what clients send has no meaning here."""

    def on_close(self) -> None:
        """Called by tornado when the connection has ended, from either side."""
        self.ctx.metrics.stream_closed()
        for task in (self._pump, self._watch, self._heart):
            if task is not None:
                task.cancel()

    async def _until_revoked(self, pump: asyncio.Task[None]) -> None:
        """End the stream when the claim it was opened with is no longer valid: it may go on for days."""
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self.require_still()
            except Unavailable as error:
                log.warning("a stream's token cannot be checked (%s); it is checked again", error.message)
            except (Unauthorized, LockedOut) as error:
                pump.cancel()
                self.close(CLOSE_REVOKED, f"{error.message} {error.hint}"[:REASON_BYTES])
                return
            except Exception:  # no later check would follow: close it rather than leave it open for ever
                log.exception("a stream's token cannot be checked")
                pump.cancel()
                self.close(CLOSE_FAULT, f"request id {self.request_id}")
                return

    async def _beat(self, every_s: int) -> None:
        """Say that the stream is alive when nothing else does."""
        with contextlib.suppress(tornado.websocket.WebSocketClosedError):
            while True:
                self._has_sent = False
                await asyncio.sleep(every_s)
                if not self._has_sent:
                    await self.write_message("")

    async def _send_all(self, messages: Messages) -> None:
        code, reason = CLOSE_DONE, COMPLETE
        try:
            async for message in messages:
                # Waits until the message is on its way, so that a slow client slows the reading, not fills memory.
                self._has_sent = True
                await self.write_message(message, binary=isinstance(message, bytes))
        except tornado.websocket.WebSocketClosedError:
            return
        except (PaiError, EngineError) as error:
            code, reason = CLOSE_AGAIN, str(error)[:REASON_BYTES]
        except Exception:
            log.exception("%s %s failed [%s]", self.request.method, self.request.path, self.request_id)
            code, reason = CLOSE_FAULT, f"request id {self.request_id}"
        self.close(code, reason)
