"""What a piece of work costs the processor, whatever else the test's process has kept or is doing."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

ENOUGH_S = 10.0
"""A hundred times what a text may cost (``bench/floors.toml``): no busy machine makes that of it, but what steps do not
count does, C code whose time grows with a power of the text's size."""


def processor_time(work: Callable[[], object]) -> float:
    """Seconds of this thread that ``work`` takes.

    Threads that other tests left behind do not count, nor does looking for garbage among all that the worker holds:
    one such look takes a second there, a hundred times what is measured.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        before = time.thread_time()
        work()
        return time.thread_time() - before
    finally:
        if collecting:
            gc.enable()
