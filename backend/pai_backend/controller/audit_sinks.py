"""Where events of the audit are sent besides: a webhook, a syslog server."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Sequence
from datetime import UTC
from typing import Protocol
from urllib.parse import urlsplit

from pai_backend.controller.posting import Poster, PostFailed
from pai_backend.model.audit import AuditEvent, fields_of

ANSWER_S = 10.0
_PRIORITY = 13 * 8 + 6
"""Facility *log audit*, severity *informational* (RFC 5424 §6.2.1)."""


class SinkAway(Exception):
    """Events could not be sent; the message says why, without anything secret."""


class AuditSink(Protocol):
    """One place that events are sent to."""

    name: str
    """Four letters by which the database remembers how far it has come."""
    place: str
    """How messages call it."""

    async def send(self, events: Sequence[AuditEvent]) -> None:
        """Send these, in their order. Raises SinkAway."""
        ...


class Webhook:
    """An HTTP server that takes lines of JSON."""

    name = "hook"

    def __init__(self, url: str, secret: str) -> None:
        self._url, self._secret = url, secret
        self.place = f"the webhook at {urlsplit(url).hostname}"
        self._poster = Poster()

    async def send(self, events: Sequence[AuditEvent]) -> None:
        """One request; any answer but 2xx means that they are sent again. Raises SinkAway."""
        body = "".join(f"{line_of(event)}\n" for event in events).encode()
        try:
            answer = await self._poster.post(self._url, body, "application/x-ndjson", secret=self._secret)
        except PostFailed as error:
            raise SinkAway(str(error)) from None
        if not 200 <= answer.code < 300:
            raise SinkAway(f"it answers {answer.code}")


class Syslog:
    """A syslog server. It answers nothing: what a connection that breaks had taken may be lost there."""

    name = "slog"

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None  # as the settings have checked
        assert parts.port is not None
        self._host, self._port, self._udp = parts.hostname, parts.port, parts.scheme == "udp"
        self.place = f"the syslog server {self._host}:{self._port}"

    async def send(self, events: Sequence[AuditEvent]) -> None:
        """A connection for these, or a datagram for each. Raises SinkAway."""
        lines = [_syslog_line(event) for event in events]
        try:
            async with asyncio.timeout(ANSWER_S):
                await (self._datagrams(lines) if self._udp else self._stream(lines))
        except (OSError, TimeoutError) as error:
            raise SinkAway(str(error) or "it takes nothing") from None

    async def _stream(self, lines: Sequence[bytes]) -> None:
        _, writer = await asyncio.open_connection(self._host, self._port)
        try:
            writer.write(b"".join(b"%d %s" % (len(line), line) for line in lines))
            await writer.drain()
        finally:
            writer.close()
            await writer.wait_closed()

    async def _datagrams(self, lines: Sequence[bytes]) -> None:
        loop = asyncio.get_running_loop()
        places = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_DGRAM)
        family, kind, _, _, place = places[0]
        with socket.socket(family, kind) as sender:
            sender.setblocking(False)
            for line in lines:
                await loop.sock_sendto(sender, line, place)


def line_of(event: AuditEvent) -> str:
    """An event as a line of JSON, with what its hash covers and the hash."""
    return json.dumps({**fields_of(event), "hash": event.hash}, ensure_ascii=False)


def _syslog_line(event: AuditEvent) -> bytes:
    """RFC 5424 §6: no structured data, the event as the message."""
    head = f"<{_PRIORITY}>1 {event.at.astimezone(UTC).isoformat().replace('+00:00', 'Z')} {socket.gethostname()}"
    kind = "".join(letter for letter in event.type if "!" <= letter <= "~")[:32] or "-"
    return f"{head} jupyter-pai - {kind} - {line_of(event)}".encode("utf-8", "replace")
