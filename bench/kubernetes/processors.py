"""Processors of their own for a part of a cluster, as it has its own machines where real clusters run.

On one small machine a client that thinks takes the processors from the API server that it waits for, and from the
nodes: what it makes a second tells what all take together.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import psutil

from bench.figures import CannotRun

Others = Callable[[], AbstractContextManager[None]]
"""Makes a block in which what is started runs on the processors that are not ours."""

_THREADS = Path("/proc/self/task")


@contextlib.contextmanager
def apart() -> Iterator[Others]:
    """Leave us, and what we start in the block, one half of the processors; those of ``with others():`` the other half.

    After the block we have all again. Raises CannotRun on a machine with one.
    """
    everything = sorted(os.sched_getaffinity(0))
    if len(everything) < 2:
        raise CannotRun("a cluster with a processor of its own needs two")
    half = len(everything) // 2
    theirs, ours = everything[:half], everything[half:]

    @contextlib.contextmanager
    def others() -> Iterator[None]:
        _move(theirs)
        try:
            yield
        finally:
            _move(ours)

    _move(ours)
    try:
        yield others
    finally:
        _move(everything)


def _move(processors: Collection[int]) -> None:
    """Let all threads of this process, and what they start from now on, run on these processors."""
    for thread in _THREADS.iterdir():
        with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
            os.sched_setaffinity(int(thread.name), processors)


QUIET = 0.5
"""Processors. Heartbeats of a thousand simulated nodes alone take more than 0.2 (2026-11-22)."""


async def quiet(busiest: float = QUIET, limit_s: float = 180.0) -> None:
    """Return once what this process has started takes less than so many processors, for two seconds.

    A control plane goes on for a while after what it was asked for is done: garbage collection looks for what is gone.
    Raises TimeoutError.
    """
    calm = 0
    async with asyncio.timeout(limit_s):
        while calm < 2:
            before = _used_s()
            await asyncio.sleep(1.0)
            calm = calm + 1 if _used_s() - before < busiest else 0


def _used_s() -> float:
    """CPU seconds of all that this process has started and that still runs."""
    used = 0.0
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = child.cpu_times()
            used += times.user + times.system
    return used
