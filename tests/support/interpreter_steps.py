"""How much the interpreter does, counted: the same on a busy machine as on a quiet one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class Steps:
    """Calls, lines and returns of Python code so far; C code counts as nothing."""

    taken = 0


@contextmanager
def counted() -> Iterator[Steps]:
    """The steps of what this thread begins meanwhile, an event loop's other tasks included."""
    steps = Steps()

    def trace(_frame: FrameType, _event: str, _argument: Any) -> Any:
        steps.taken += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield steps
    finally:
        sys.settrace(before)


def interpreter_steps(work: Callable[[], object]) -> int:
    """The steps that ``work`` takes in this thread."""
    with counted() as steps:
        work()
    return steps.taken
