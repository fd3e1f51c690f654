"""Connections to tasks between two requests: kept for a moment, closed when a task ends them or says anything."""

from __future__ import annotations

import asyncio
from functools import partial

from pai_backend.access.proxy.kept import IdleConnections, Way
from pai_backend.access.proxy.upstream import Wire

# Less than servers keep a connection (5 s in Node and uvicorn), so that few requests meet one that is just ending, and
# no longer than an ended right may count (docs/security.md).
KEEP_S = 2.0
MOST = 512


class Connections:
    """Takes connections whose request is over, and gives them to the next request of the same visitor."""

    def __init__(self) -> None:
        self._kept: IdleConnections[Wire] = IdleConnections(MOST, KEEP_S)
        self._sweep: asyncio.TimerHandle | None = None

    def take(self, way: Way) -> Wire | None:
        """A connection that is free for a request, or None."""
        wire = self._kept.take(way, asyncio.get_running_loop().time())
        if wire is None or wire.take():
            return wire
        wire.close()
        return None

    def put(self, way: Way, wire: Wire) -> None:
        """Keep a connection if it can carry another request, else close it."""
        if not wire.is_free or not wire.take():
            wire.close()
            return
        wire.was_used = True
        loop = asyncio.get_running_loop()
        for other in self._kept.put(way, wire, loop.time()):
            other.close()
        wire.listen(partial(self._heard, wire))
        self._plan()

    def close(self) -> None:
        """Close all that are kept."""
        if self._sweep is not None:
            self._sweep.cancel()
        for wire in self._kept.clear():
            wire.close()

    def _plan(self) -> None:
        due = self._kept.next_expiry()
        if self._sweep is None and due is not None:
            self._sweep = asyncio.get_running_loop().call_at(due, self._expire)

    def _expire(self) -> None:
        self._sweep = None
        for wire in self._kept.expire(asyncio.get_running_loop().time()):
            wire.close()
        self._plan()

    def _heard(self, wire: Wire) -> None:
        if self._kept.drop(wire):
            wire.close()
