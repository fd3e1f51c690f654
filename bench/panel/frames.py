"""What each frame of a page took of a processor, read from a trace of Chromium.

Times are those of the page's thread (``tts``, ``tdur``), which do not go on while other programs have the processor.

Source of the names: the trace events of Chromium's DevTools (categories ``devtools.timeline`` and its kin).
"""

from __future__ import annotations

import itertools
import json
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

CATEGORIES = [
    "blink.user_timing",
    "devtools.timeline",
    "disabled-by-default-devtools.timeline",
    "v8",
]
"""What Chromium is to trace."""

FRAME = "Commit"
"""With it the page's thread hands a frame over: work after it is for the next one."""
SCRIPT = frozenset(
    {"EvaluateScript", "FunctionCall", "MajorGC", "MinorGC", "RunMicrotasks", "v8.callFunction", "V8.GCScavenger"}
)
TASK = "RunTask"

Event: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Frame:
    """From one frame that the page's thread has handed over to the next, in milliseconds of that thread's CPU time."""

    lasts_ms: float
    """By the clock."""
    script_ms: float
    """JavaScript, with its collection of garbage."""
    work_ms: float
    """All that the thread did: JavaScript, style, layout, and telling what to paint."""


def frames_between(trace: bytes, begin: str, end: str) -> list[Frame]:
    """The frames between two marks of ``performance.mark``. Raises ValueError when a mark is not in the trace."""
    events: list[Event] = json.loads(trace)["traceEvents"]
    first, last = _mark(events, begin), _mark(events, end)
    thread = (first["pid"], first["tid"])
    own = [each for each in events if (each["pid"], each["tid"]) == thread]
    seen = (each for each in own if each["name"] == FRAME and first["ts"] <= each["ts"] <= last["ts"])
    begun = sorted((each["tts"], each["ts"]) for each in seen)
    starts = [at for at, _ in begun]
    script = _shares(starts, (each for each in own if each["name"] in SCRIPT))
    work = _shares(starts, (each for each in own if each["name"] == TASK))
    lasts = [after - start for (_, start), (_, after) in itertools.pairwise(begun)]
    return [Frame(*(us / 1000 for us in each)) for each in zip(lasts, script, work, strict=True)]


def _mark(events: Sequence[Event], name: str) -> Event:
    found = next((each for each in events if each["name"] == name and "blink.user_timing" in each["cat"]), None)
    if found is None:
        raise ValueError(f"the trace has no mark {name}")
    return found


def _shares(starts: Sequence[float], events: Iterable[Event]) -> list[float]:
    """For each frame but the last the microseconds that events cover; what covers the same time counts once."""
    spans = sorted((each["tts"], each["tts"] + each["tdur"]) for each in events if "tdur" in each)
    if len(starts) < 2:
        raise ValueError("the trace has no frame between the marks")
    found, reached = [0.0] * (len(starts) - 1), 0.0
    for begun, ended in spans:
        here, reached = max(begun, reached), max(reached, ended)
        frame = bisect_right(starts, here) - 1
        while here < ended and frame < len(found):
            until = min(ended, starts[frame + 1])
            if frame >= 0:
                found[frame] += until - here
            here, frame = until, frame + 1
    return found
