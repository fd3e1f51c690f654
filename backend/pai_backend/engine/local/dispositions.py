"""What a task inherits of signals: nothing.

``nohup``, and scripts that start something in the background (POSIX shell, 2.11), have it ignore signals, and a process
that ignores one from the beginning passes that on to every program: a shell cannot even trap it then. So a backend that
was started like that would run jobs that no hang-up and no interrupt reaches.
"""

from __future__ import annotations

import signal
from types import FrameType

# KILL and STOP cannot be ignored. From 32 on: the C library's own, and real-time ones, which no shell ignores.
_FIXED = (signal.SIGKILL, signal.SIGSTOP)
EVERY = tuple(sorted(int(number) for number in signal.valid_signals() if number < 32 and number not in _FIXED))
"""Numbers of the signals that a task's first program begins with the default action of."""

_IGNORED_BY_PYTHON = frozenset({signal.SIGPIPE, signal.SIGXFSZ})  # ``subprocess`` sets these back


def ignore_alone() -> None:
    """Go on ignoring what this process ignores, but in a way that the programs it starts do not inherit.

    A handler that does nothing is such a way: exec(2) sets handled signals back and leaves ignored ones. Raises
    ValueError outside the main thread.
    """
    for number in EVERY:
        if number not in _IGNORED_BY_PYTHON and signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, _nothing)


def _nothing(_number: int, _frame: FrameType | None) -> None:
    """Handle a signal that is to have no effect."""
