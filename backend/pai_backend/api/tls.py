"""TLS of our own: a connection is taken over when its handshake is done, and goes on as one without TLS.

Connections go from tornado to the service proxy and back as sockets (``branching``), which a TLS session in a process
cannot. So TLS ends before: what is decrypted passes a pair of sockets, one end of which is the connection for all else.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import time
from collections.abc import Callable
from pathlib import Path

log = logging.getLogger(__name__)

HANDSHAKE_S = 10.0
LOOK_S = 1.0
"""Between two looks at the files."""
SOCKETS = 3
"""Descriptors that a connection takes."""
HSTS = "max-age=31536000"
"""Browsers come back by https for a year (RFC 6797)."""

Taken = Callable[[socket.socket, tuple[object, ...]], None]


class CertificateError(Exception):
    """The files cannot be used; the message names the file, the reason and what to do."""


class ServerCertificate:
    """A certificate and its key, as their files are now."""

    def __init__(self, certificate: Path, key: Path, clock: Callable[[], float] = time.monotonic) -> None:
        """Raises CertificateError."""
        self._files, self._clock = (certificate, key), clock
        self._state = self._look()
        self._context = self._read()
        self._looked_at = clock()

    def context(self) -> ssl.SSLContext:
        """For the next connection. Files that became unusable are logged once, and the last good ones stay."""
        if self._clock() - self._looked_at >= LOOK_S:
            self._looked_at = self._clock()
            state = self._look()
            if state != self._state:
                self._state = state
                try:
                    self._context = self._read()
                    log.info("the certificate %s was read again", self._files[0])
                except CertificateError as error:
                    log.error("the certificate that was read before stays: %s", error)
        return self._context

    def _look(self) -> list[object]:
        """What changes when a file does, also when a link leads to another one."""
        found: list[object] = []
        for file in self._files:
            try:
                status = file.stat()
                found.append((status.st_ino, status.st_size, status.st_mtime_ns))
            except OSError as error:
                found.append(error.errno)
        return found

    def _read(self) -> ssl.SSLContext:
        certificate, key = self._files
        for name, file in (("certificate", certificate), ("key", key)):
            try:
                file.read_bytes()
            except OSError as error:
                raise CertificateError(f"api.tls.{name}: {file}: {error.strerror}") from None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(certificate, key, password=_no_password)
        except (ssl.SSLError, ValueError) as error:
            raise CertificateError(
                f"api.tls: {certificate} and {key} do not belong together, or are not in PEM "
                f"({getattr(error, 'reason', None) or error}). Give the key without a password"
            ) from None
        return context


def _no_password() -> str:
    raise ValueError("the key has a password")


class TlsFront:
    """Shakes hands with clients, and passes on what they send."""

    def __init__(self, certificate: ServerCertificate, taken: Taken) -> None:
        """``taken`` gets each connection without TLS, and its client's address."""
        self._certificate, self._taken = certificate, taken
        self._going: set[asyncio.Task[None]] = set()
        self._shaking = 0

    @property
    def shaking(self) -> int:
        """Connections whose handshake is not done."""
        return self._shaking

    def take(self, connection: socket.socket, address: tuple[object, ...]) -> None:
        """A client has connected."""
        self._shaking += 1
        task = asyncio.create_task(self._serve(connection, address))
        self._going.add(task)
        task.add_done_callback(self._going.discard)

    def close(self) -> None:
        """End all connections."""
        for task in self._going:
            task.cancel()

    async def _serve(self, connection: socket.socket, address: tuple[object, ...]) -> None:
        loop = asyncio.get_running_loop()
        connection.setblocking(False)
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            outer = _Side()
            await loop.connect_accepted_socket(
                lambda: outer,
                connection,
                ssl=self._certificate.context(),
                ssl_handshake_timeout=HANDSHAKE_S,
            )
        except (TimeoutError, OSError) as error:
            log.debug("a TLS handshake with %s failed: %s", address[0], error)
            connection.close()
            return
        finally:
            self._shaking -= 1
        ours, theirs = socket.socketpair()
        for end in (ours, theirs):
            end.setblocking(False)
        inner = _Side()
        try:
            await loop.create_connection(lambda: inner, sock=ours)
            outer.other, inner.other = inner, outer
            self._taken(theirs, address)
            for side in (outer, inner):
                side.start()
            await asyncio.wait({outer.ended, inner.ended})
        finally:
            outer.abort()
            inner.abort()


class _Side(asyncio.Protocol):
    """One end: passes on what comes, and stops reading while the other end is full.

    An end that says that it sends nothing more is closed: TLS has no half of a connection in asyncio.
    """

    def __init__(self) -> None:
        self.other: _Side | None = None
        self._early = bytearray()
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the loop."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def start(self) -> None:
        """Pass on from now on; the other end is known. What came before is little: it takes a turn of the loop."""
        self.data_received(bytes(self._early))
        self._early.clear()

    def data_received(self, data: bytes) -> None:
        """Called by the loop."""
        other = self._other()
        if other is None:
            self._early += data
        elif data:
            other.write(data)

    def pause_writing(self) -> None:
        """Called by the loop when this end is full."""
        other = self._other()
        if other is not None and not other.is_closing():
            other.pause_reading()

    def resume_writing(self) -> None:
        """Called by the loop when there is room again."""
        other = self._other()
        if other is not None and not other.is_closing():
            other.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the loop; the other end closes when it has sent what is left."""
        if not self.ended.done():
            self.ended.set_result(None)
        other = self._other()
        if other is not None:
            other.close()

    def abort(self) -> None:
        """End it at once."""
        if self.transport is not None:
            self.transport.abort()

    def _other(self) -> asyncio.Transport | None:
        return None if self.other is None else self.other.transport
