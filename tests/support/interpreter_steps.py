"""How much the interpreter does, counted: the same on a busy machine as on a quiet one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def interpreter_steps(work: Callable[[], object]) -> int:
    """Calls, lines and returns of Python code that ``work`` takes in this thread; C code counts as nothing."""
    steps = 0

    def trace(_frame: FrameType, _event: str, _argument: Any) -> Any:
        nonlocal steps
        steps += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return steps
