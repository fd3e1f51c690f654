"""Bytes of logs as text."""

from __future__ import annotations

import codecs

_MOST_AFTER_FIRST = 3  # bytes of a character in UTF-8 that follow its first one


def incremental_decoder() -> codecs.IncrementalDecoder:
    """Text of a log that comes in pieces: a character may begin in one and end in the next."""
    return codecs.getincrementaldecoder("utf-8")("replace")


def cut_bytes(data: bytes) -> int:
    """How many bytes at the beginning of a piece belong to a character that began before it."""
    count = 0
    while count < min(len(data), _MOST_AFTER_FIRST) and data[count] & 0xC0 == 0x80:
        count += 1
    return count


def whole_characters(data: bytes, first: int) -> tuple[str, int, int]:
    """The text of a page of a log that begins at byte ``first``, and the offsets where the text begins and ends.

    A character that the page has only a part of is left to the page that begins, or ended, there.
    """
    begin = cut_bytes(data) if first else 0
    decoder = incremental_decoder()
    text = decoder.decode(data[begin:])
    return text, first + begin, first + len(data) - len(decoder.getstate()[0])
