"""Lines of one kind are bounded, whoever causes them."""

from __future__ import annotations

import logging

from pai_backend.platform.logs import ALIKE_BYTES, Flood


def line(number: int, text: str = "a request of %s failed") -> logging.LogRecord:
    return logging.LogRecord("pai", logging.WARNING, "x.py", number, text, ("10.0.0.1",), None)


def test_lines_of_one_kind_are_bounded_in_a_minute_and_counted() -> None:
    now = [0.0]
    flood = Flood(lambda: now[0])
    size = 100 + len(line(1).getMessage())
    through = -(-ALIKE_BYTES // size)
    assert [flood.filter(line(1)) for _ in range(through + 5)] == [True] * through + [False] * 5
    assert flood.filter(line(2))
    now[0] = 61
    later = line(1)
    assert flood.filter(later)
    assert later.getMessage() == "a request of 10.0.0.1 failed (5 lines of this kind left out)"
    again = line(1)
    assert flood.filter(again)
    assert again.getMessage() == "a request of 10.0.0.1 failed"
