"""Lines of one kind are bounded, whoever causes them."""

from __future__ import annotations

import json
import logging

from pai_backend.platform.logs import ALIKE_BYTES, Flood, JsonLines


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


def test_json_lines_name_the_job_and_the_request() -> None:
    def told_of(name: str, message: str, *args: object, error: Exception | None = None) -> dict[str, str]:
        info = (type(error), error, None) if error is not None else None
        record = logging.LogRecord(name, logging.WARNING, __file__, 1, message, args, info)
        found: dict[str, str] = json.loads(JsonLines().format(record))
        return found

    told = told_of("pai_backend.controller", "job %s: gone\nfor good", "j0123456789abcdef", error=ValueError("x"))
    assert (told["message"], told["job"]) == ("job j0123456789abcdef: gone\nfor good", "j0123456789abcdef")
    assert (told["level"], told["logger"], told["error"]) == ("warning", "pai_backend.controller", "ValueError: x")
    assert "request" not in told
    assert told_of("pai_backend.api.base", "GET /x failed [%s]", "bea7881ddf43abf6")["request"] == "bea7881ddf43abf6"
