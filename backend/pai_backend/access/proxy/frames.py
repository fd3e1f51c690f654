"""Tells data from pings in one direction of a WebSocket, without touching a byte. No I/O."""

from __future__ import annotations

_DATA = frozenset({0x0, 0x1, 0x2})  # continuation, text, binary (RFC 6455 §5.2); all others are control frames
_MASKED = 0x80
_TWO_BYTES, _EIGHT_BYTES = 126, 127


class Frames:
    """The frames of one direction, from the first byte after the handshake."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._left = 0
        self._is_data = False

    def feed(self, piece: bytes) -> bool:
        """Whether something of a message's content is in the next piece of the stream."""
        used, at = False, 0
        while at < len(piece):
            if self._left:
                step = min(self._left, len(piece) - at)
                self._left -= step
                at += step
                used |= self._is_data
                continue
            self._head.append(piece[at])
            at += 1
            length = _payload_length(self._head)
            if length is not None:
                self._is_data, self._left = self._head[0] & 0x0F in _DATA, length
                self._head.clear()
        return used


def _payload_length(head: bytearray) -> int | None:
    """The length of the payload once the whole header of a frame is there."""
    if len(head) < 2:
        return None
    short = head[1] & 0x7F
    wide = {_TWO_BYTES: 2, _EIGHT_BYTES: 8}.get(short, 0)
    if len(head) < 2 + wide + (4 if head[1] & _MASKED else 0):
        return None
    return int.from_bytes(head[2 : 2 + wide], "big") if wide else short
