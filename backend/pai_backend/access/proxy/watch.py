"""One look a second at the rights of all visitors whose requests are under way, however many those are."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

LOOK_S = 1.0  # between two looks at the rights of a visitor who stays; what ends a right counts within 2 s

Look = Callable[[], Awaitable[None]]


class RequestWatch:
    """Calls looks until they are discarded. Most requests are over before the first, and cost no timer of their own."""

    def __init__(self) -> None:
        self._watched: set[Look] = set()
        self._looking: dict[Look, asyncio.Future[None]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, look: Look) -> None:
        """Call this every ``LOOK_S`` seconds; a look that takes longer holds up no other. It must not raise."""
        self._watched.add(look)
        if self._timer is None:
            self._plan()

    def discard(self, look: Look) -> None:
        """Call it no longer; a look under way is cancelled."""
        self._watched.discard(look)
        if (looking := self._looking.pop(look, None)) is not None:
            looking.cancel()

    def close(self) -> None:
        """Call nothing any longer."""
        if self._timer is not None:
            self._timer.cancel()
        for look in list(self._watched):
            self.discard(look)

    def _plan(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(LOOK_S, self._look)

    def _look(self) -> None:
        self._timer = None
        for look in self._watched - self._looking.keys():
            looking = self._looking[look] = asyncio.ensure_future(look())
            looking.add_done_callback(lambda _, look=look: self._looking.pop(look, None))  # type: ignore[misc]
        if self._watched:
            self._plan()
