"""One client of a session: the descriptors that lead to it, and how far it has come."""

from __future__ import annotations

import os
import socket
import time

from pai_backend.engine.local.terminals.frames import HEAD_BYTES, INPUT_BYTES, head

PIECE_BYTES = 1 << 15
SCROLLBACK_BYTES = 1 << 20
_SLACK = 1 << 18  # the scrollback is cut when it is so much too long, since cutting moves it


class Scrollback:
    """The last bytes that the shell has written, by their number since its start."""

    def __init__(self) -> None:
        self.first = 0
        self._kept = bytearray()

    @property
    def end(self) -> int:
        """The number of the byte that comes next."""
        return self.first + len(self._kept)

    def add(self, data: bytes) -> None:
        """Keep more, and forget the oldest."""
        self._kept += data
        if len(self._kept) > SCROLLBACK_BYTES + _SLACK:
            cut = len(self._kept) - SCROLLBACK_BYTES
            del self._kept[:cut]
            self.first += cut

    def read(self, start: int) -> bytes:
        """Some bytes from that number on, which must still be kept."""
        at = start - self.first
        return bytes(self._kept[at : at + PIECE_BYTES])

    def whole(self) -> bytes:
        """All that is kept, from the start of a line on where something has been forgotten."""
        at = self._kept.find(b"\n", 0, PIECE_BYTES) + 1 if self.first else 0
        return bytes(self._kept[at:])


class TerminalAttachment:
    """One that is attached: the descriptors that lead to it, and how far it has come."""

    def __init__(self, control: socket.socket, source: int, sink: int) -> None:
        self.control, self.source, self.sink = control, source, sink
        self.at = -1  # the next byte of the scrollback for it; before the first it gets all
        self.out = bytearray()
        self.is_told = False
        self.moved_at = time.monotonic()
        self._read = bytearray()
        for descriptor in (source, sink):
            os.set_blocking(descriptor, False)
            os.set_inheritable(descriptor, False)  # those that a socket brought are: the shell must not have them

    def frames(self) -> list[tuple[bytes, bytes]]:
        """What has come from it, as whole frames. Raises EOFError at its end and for a frame that is too long."""
        try:
            data = os.read(self.source, PIECE_BYTES)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            raise EOFError
        self._read += data
        found = []
        while len(self._read) >= HEAD_BYTES:
            kind, length = head(self._read)
            if length > INPUT_BYTES:
                raise EOFError
            if len(self._read) < HEAD_BYTES + length:
                break
            found.append((kind, bytes(self._read[HEAD_BYTES : HEAD_BYTES + length])))
            del self._read[: HEAD_BYTES + length]
        return found

    def write(self) -> None:
        """Send what it takes. Raises EOFError when it has gone."""
        try:
            sent = os.write(self.sink, memoryview(self.out)[: 1 << 16])
        except BlockingIOError:
            return
        except OSError:
            raise EOFError from None
        del self.out[:sent]
        self.moved_at = time.monotonic()

    def close(self) -> None:
        """Close what leads to it."""
        os.close(self.source)
        os.close(self.sink)
        self.control.close()
