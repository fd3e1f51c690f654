"""Each line of a log begins with the time at which it came, however the log is cut into pieces."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_pai.log_times import TimedLines
from jupyter_pai.wire_types import LogTimeWire

NOON = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


def at(offset: int, minute: int) -> LogTimeWire:
    return {"offset": offset, "at": NOON.replace(minute=minute).isoformat()}


def word(minute: int) -> bytes:
    return f"{NOON.replace(minute=minute).astimezone().isoformat(timespec='seconds')} ".encode()


def test_lines_have_the_time_of_their_first_byte() -> None:
    lines = TimedLines()
    lines.learn([at(0, 1), at(6, 2)], 0)
    assert lines.stamped(b"one\ntwo and\nthree\n", 0) == b"%bone\n%btwo and\n%bthree\n" % (word(1), word(1), word(2))
    lines.learn([at(18, 3)], 18)
    assert lines.stamped(b"\nfi", 18) + lines.stamped(b"ve", 21) == b"%b\n%bfive" % (word(3), word(3))


def test_a_line_whose_time_is_not_known_is_as_wide_as_others() -> None:
    lines = TimedLines()
    lines.learn([at(4, 1)], 0)
    assert lines.stamped(b"one\ntwo\n", 0) == b" " * len(word(1)) + b"one\n" + word(1) + b"two\n"


@pytest.mark.parametrize("text", [b"10%\r20%\r30%\n", b"one\r\ntwo\r\n"])
def test_what_goes_back_to_the_beginning_of_a_line_does_not_write_over_the_time(text: bytes) -> None:
    lines = TimedLines()
    lines.learn([at(0, 1)], 0)
    shown = lines.stamped(text, 0).decode()
    assert shown.count(word(1).decode()) == len(text.decode().replace("\r\n", "\n").rstrip("\n").splitlines())
    assert shown.replace(word(1).decode(), "") == text.decode()


@given(st.lists(st.sampled_from([b"a", b"\n", b"\r", b"\r\n", "名".encode()])), st.data())
def test_pieces_do_not_change_what_is_shown(parts: list[bytes], data: st.DataObject) -> None:
    text = b"".join(parts)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)))) | {0, len(text)})
    whole, cut = TimedLines(), TimedLines()
    whole.learn([at(0, 1)], 0)
    cut.learn([at(0, 1)], 0)
    shown = b"".join(cut.stamped(text[first:last], first) for first, last in itertools.pairwise(cuts))
    assert shown == whole.stamped(text, 0)
