"""When a refusal is told: at the next of some fixed moments, so that how long it took to look tells nothing.

A job that another user has is found and read, a name that leads to nothing is not: that takes from a fraction of a
millisecond to some ten for a job of a thousand tasks, and can be measured from outside. OpenSSH's server does the same
(``ensure_minimum_time_since`` in auth2.c).
"""

from __future__ import annotations

import asyncio

STEP_S = 0.05
"""Longer than it takes to look for the largest jobs; a refusal can wait."""


class Pace:
    """The moments of one question, counted from its beginning."""

    def __init__(self) -> None:
        self._began = asyncio.get_running_loop().time()

    async def next_moment(self) -> None:
        """Return when the next one has come."""
        since = asyncio.get_running_loop().time() - self._began
        await asyncio.sleep(STEP_S - since % STEP_S)
