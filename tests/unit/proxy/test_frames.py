"""Frames of WebSockets, cut anywhere: data is told from pings, pongs and closes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pai_backend.access.proxy.tunnel import Frames

DATA, CONTROL = (0x0, 0x1, 0x2), (0x8, 0x9, 0xA)


def frame(opcode: int, length: int, *, masked: bool) -> bytes:
    mask = 0x80 if masked else 0
    if length < 126:
        size = bytes([mask | length])
    elif length < 1 << 16:
        size = bytes([mask | 126]) + length.to_bytes(2, "big")
    else:
        size = bytes([mask | 127]) + length.to_bytes(8, "big")
    return bytes([0x80 | opcode]) + size + (b"mask" if masked else b"") + b"\x81" * length


FRAMES = st.lists(st.tuples(st.sampled_from(CONTROL), st.integers(0, 125), st.booleans()), min_size=1, max_size=5)
LENGTHS = st.sampled_from([1, 125, 126, 65_535, 65_536])


def pieces(text: bytes, step: int) -> list[bytes]:
    return [text[at : at + step] for at in range(0, len(text), step)]


@given(FRAMES, st.sampled_from(DATA), LENGTHS, st.booleans(), st.sampled_from([1, 2, 7, 4096, 1 << 20]))
def test_only_the_content_of_messages_counts(
    controls: list[tuple[int, int, bool]], opcode: int, length: int, masked: bool, step: int
) -> None:
    pings = b"".join(frame(kind, size, masked=by_client) for kind, size, by_client in controls)
    frames = Frames()
    assert not any(frames.feed(piece) for piece in pieces(pings, step))
    assert not frames.feed(frame(opcode, 0, masked=masked)), "an empty message says nothing"
    message = frame(opcode, length, masked=masked)
    fed = [frames.feed(piece) for piece in pieces(message, max(step, len(message) // 50))]
    assert any(fed)
    assert not any(frames.feed(piece) for piece in pieces(pings, step))
