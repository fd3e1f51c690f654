"""Frames and requests of terminals, and what is refused."""

from __future__ import annotations

import json
import re
import struct

REQUEST, INPUT, SIZE = b"H", b"I", b"S"  # from the client
REPLAY, OUTPUT, EXIT, LIST, ERROR = b"R", b"O", b"X", b"L", b"E"  # to the client

REQUEST_BYTES = 4096
INPUT_BYTES = 1 << 16
"""The longest frame of a client that is attached."""

_HEAD = struct.Struct(">cI")
_OWNER = re.compile(r"[0-9a-f]{8,64}", re.ASCII)
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}", re.ASCII)


class TerminalRefused(Exception):
    """A request that is not carried out: a stable word for programs, and a sentence."""

    def __init__(self, word: str, message: str) -> None:
        super().__init__(message)
        self.word = word


def frame(kind: bytes, content: bytes) -> bytes:
    """One frame."""
    return _HEAD.pack(kind, len(content)) + content


def json_frame(kind: bytes, value: object) -> bytes:
    """A frame with JSON in it."""
    return frame(kind, json.dumps(value).encode())


def head(data: bytes | bytearray) -> tuple[bytes, int]:
    """The letter and the length that the first five bytes say."""
    kind, length = _HEAD.unpack_from(data)
    return kind, length


HEAD_BYTES = _HEAD.size


def _bounded(number: object) -> int:
    return max(1, min(int(str(number)), 0xFFFF))


class Request:
    """What a client asks for. Raises Refused for content that is not a request."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        try:
            told = json.loads(content)
            self.action, self.owner, self.name = str(told["do"]), str(told["owner"]), str(told.get("name", ""))
            self.may_start = bool(told.get("start", True))
            self.term = str(told.get("term", "xterm-256color"))
            self.size = _bounded(told.get("rows", 24)), _bounded(told.get("cols", 80))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
            raise TerminalRefused("invalid", f"The request cannot be read: {error}") from None
        is_named = self.action == "list" or NAME.fullmatch(self.name)
        if self.action not in ("attach", "list", "end") or not is_named or not _OWNER.fullmatch(self.owner):
            raise TerminalRefused("invalid", "The request does not name a terminal.")
        if "\0" in self.term:
            raise TerminalRefused("invalid", "The type of the terminal contains a zero byte.")
