"""Frames of the subsystem ``pai-terminal``: a letter, the length in four bytes, the content. Pure."""

from __future__ import annotations

import json
import struct

SUBSYSTEM = "pai-terminal"

REQUEST, INPUT, SIZE = b"H", b"I", b"S"  # to the task
REPLAY, OUTPUT, EXIT, LIST, ERROR = b"R", b"O", b"X", b"L", b"E"  # from the task

MOST_INPUT = 1 << 15  # the task refuses frames that are longer than twice this
_MOST_CONTENT = 1 << 23  # several times the scrollback
_HEAD = struct.Struct(">cI")

Frame = tuple[bytes, bytes]


class FrameError(ValueError):
    """What came from the task is not a frame."""


def frame(kind: bytes, content: bytes) -> bytes:
    """One frame."""
    return _HEAD.pack(kind, len(content)) + content


def request_frame(**fields: object) -> bytes:
    """The first frame to the task."""
    return frame(REQUEST, json.dumps(fields).encode())


def input_frames(data: bytes) -> bytes:
    """What was typed or pasted, in frames of a length that the task takes."""
    return b"".join(frame(INPUT, data[at : at + MOST_INPUT]) for at in range(0, len(data), MOST_INPUT))


def size_frame(rows: int, columns: int) -> bytes:
    """The size of the window."""
    return frame(SIZE, struct.pack(">HH", rows, columns))


def is_size(rows: object, columns: object) -> bool:
    """Whether these are numbers that a window's size can have."""
    return all(isinstance(number, int) and 0 < number <= 0xFFFF for number in (rows, columns))


class FrameReader:
    """Puts frames together from pieces."""

    def __init__(self) -> None:
        self._unread = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that are whole with this piece. Raises FrameError."""
        self._unread += data
        found: list[Frame] = []
        while len(self._unread) >= _HEAD.size:
            kind, length = _HEAD.unpack_from(self._unread)
            if length > _MOST_CONTENT:
                raise FrameError(f"a frame of {length} bytes")
            end = _HEAD.size + length
            if len(self._unread) < end:
                break
            found.append((kind, bytes(self._unread[_HEAD.size : end])))
            del self._unread[:end]
        return found


def json_content(content: bytes) -> dict[str, object]:
    """The object in a frame. Raises FrameError."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise FrameError(str(error)) from None
    if not isinstance(value, dict):
        raise FrameError("the content is not an object")
    return value
