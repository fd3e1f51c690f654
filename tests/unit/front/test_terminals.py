"""Frames of terminals, and what of a scrollback is not shown again."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_pai.terminals.frames import FrameError, FrameReader, frame, input_frames, is_size, json_content
from jupyter_pai.terminals.link import printable
from jupyter_pai.terminals.login import folder_of
from jupyter_pai.terminals.persistent import without_queries

KEPT = [
    b"plain text\r\n", "中文 \u0394 \x9b".encode("utf-8"), b"\x1b[31mred\x1b[0m", b"\x1b[2J\x1b[H", b"\x1b[?1049h",
    b"\x1b[?2004h", b"\x1b[10;20H", b"\x1b[38;5;120m", b"\x1b]0;a title\x07", b"\x1b]2;a title\x1b\\", b"\x1b[u",
    b"\x1b[3 q", b"\x1b]8;;https://example.org/?q=1\x1b\\link\x1b]8;;\x1b\\",
    b"\x1b]10;#ffffff\x07", b"\x1b(0lqk\x1b(B",
]  # fmt: skip
DROPPED = [
    b"\x1b[6n", b"\x1b[?6n", b"\x1b[5n", b"\x1b[c", b"\x1b[0c", b"\x1b[>c", b"\x1b[>0c", b"\x1b[=c", b"\x1bZ", b"\x05",
    b"\x1b]10;?\x07", b"\x1b]11;?\x1b\\", b"\x1b]4;1;?\x07", b"\x1b]52;c;aGFjaw==\x07", b"\x1b]52;c;?\x07", b"\x1b[18t",
    b"\x1b[21t", b"\x1b[?2026$p", b"\x1b[4$p", b"\x1b[>q", b"\x1b[>0q", b"\x1b[?u", b"\x1bP$qm\x1b\\",
    b"\x1bP+q544e\x1b\\", b"\x1b[1x", b"\x07", b"\xc2\x9b6n", b"\xc2\x9d11;?\x07",
]  # fmt: skip


@pytest.mark.parametrize("text", KEPT)
def test_output_is_shown_again_as_it_was(text: bytes) -> None:
    assert without_queries(text) == text
    assert without_queries(b"before" + text + b"after") == b"before" + text + b"after"


@pytest.mark.parametrize("text", DROPPED)
def test_what_a_terminal_would_answer_is_not_shown_again(text: bytes) -> None:
    assert without_queries(b"before" + text + b"after") == b"beforeafter"


@given(st.lists(st.sampled_from([*DROPPED, b"x", b"\x1b[1m", b"\r\n", "é".encode()]), max_size=30))
def test_no_query_is_left(parts: list[bytes]) -> None:
    left = without_queries(b"".join(parts))
    assert left == b"".join(part for part in parts if part not in DROPPED)
    assert without_queries(left) == left


@given(st.lists(st.tuples(st.sampled_from([b"R", b"O"]), st.binary(max_size=100)), max_size=9), st.integers(1, 40))
def test_frames_are_put_together_from_pieces_of_any_size(frames: list[tuple[bytes, bytes]], step: int) -> None:
    sent, reader = b"".join(frame(*each) for each in frames), FrameReader()
    pieces = [sent[at : at + step] for at in range(0, len(sent), step)]
    assert [found for piece in pieces for found in reader.feed(piece)] == frames


def test_a_task_that_announces_gigabytes_is_refused() -> None:
    with pytest.raises(FrameError):
        FrameReader().feed(b"R" + struct.pack(">I", 1 << 31))


def test_a_long_paste_is_sent_in_frames_that_the_task_takes() -> None:
    reader = FrameReader()
    found = reader.feed(input_frames(bytes(100_000)))
    assert [len(content) for _, content in found] == [32768, 32768, 32768, 100_000 - 3 * 32768]


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff", b"[" * 100_000])
def test_what_is_not_an_object_is_refused(content: bytes) -> None:
    with pytest.raises(FrameError):
        json_content(content)


@pytest.mark.parametrize(
    ("rows", "columns", "good"),
    [(24, 80, True), (0, 80, False), (24, 65536, False), ("24", 80, False), (None, 1, False), (1.5, 2, False)],
)
def test_a_size_is_two_numbers_in_bounds(rows: object, columns: object, good: bool) -> None:
    assert is_size(rows, columns) is good


def test_what_a_task_says_moves_no_cursor() -> None:
    assert printable("a\x1b[2Jb\r\nc\x9b\u202e") == "a[2Jb\nc"


def test_folders_of_users_are_apart_and_tell_no_name() -> None:
    assert folder_of("ann") != folder_of("bob")
    assert folder_of("ann") == folder_of("ann")
    assert "ann" not in folder_of("ann")
