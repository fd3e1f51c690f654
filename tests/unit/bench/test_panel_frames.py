"""What a trace of Chromium says of each frame."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bench.panel.frames import Frame, frames_between

PAGE = {"pid": 1, "tid": 2}


def at(name: str, tts: int, *, lasts: int | None = None, ts: int | None = None, **more: Any) -> dict[str, Any]:
    """An event, its times in microseconds: by the thread's clock, and by that of the wall."""
    given = {"name": name, "cat": "devtools.timeline", "tts": tts, "ts": tts if ts is None else ts, **PAGE, **more}
    return given if lasts is None else {**given, "ph": "X", "tdur": lasts, "dur": lasts}


def trace(*events: dict[str, Any]) -> bytes:
    marks = (at("begin", 0, cat="blink.user_timing"), at("end", 90_000, ts=200_000, cat="blink.user_timing"))
    return json.dumps({"traceEvents": [*marks, *events]}).encode()


def test_a_frame_has_the_cpu_time_of_its_thread_and_its_length_by_the_clock() -> None:
    told = trace(
        at("Commit", 10_000, ts=10_000),
        at("RunTask", 11_000, lasts=6_000),
        at("FunctionCall", 12_000, lasts=4_000),
        at("RunMicrotasks", 13_000, lasts=1_000),  # within the call: it counts once
        at("FunctionCall", 14_000, lasts=9_000, tid=3),  # another thread
        at("Commit", 20_000, ts=60_000),
    )
    assert frames_between(told, "begin", "end") == [Frame(lasts_ms=50.0, script_ms=4.0, work_ms=6.0)]


def test_what_lasts_over_a_frame_is_shared_between_both() -> None:
    told = trace(*(at("Commit", place) for place in (10_000, 20_000, 30_000)), at("FunctionCall", 18_000, lasts=5_000))
    assert [each.script_ms for each in frames_between(told, "begin", "end")] == [2.0, 3.0]


def test_a_trace_without_frames_or_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="no frame"):
        frames_between(trace(at("Commit", 10_000)), "begin", "end")
    with pytest.raises(ValueError, match="no mark"):
        frames_between(trace(), "other", "end")
