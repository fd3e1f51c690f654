"""Bytes of logs as text."""

from __future__ import annotations

import codecs


def incremental_decoder() -> codecs.IncrementalDecoder:
    """Text of a log that comes in pieces: a character may begin in one and end in the next."""
    return codecs.getincrementaldecoder("utf-8")("replace")
