"""A heap whose entries may go stale: what no longer holds is dropped when it surfaces."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Generic, TypeVar

from pai_backend.scheduling.queue.entry import Key

T = TypeVar("T")
SLACK = 64
"""Entries beyond two an item at which the heap is made anew."""


class LazyHeap(Generic[T]):
    """Items by a key that changes. ``current`` tells an item's key, or None while it is not to be found."""

    __slots__ = ("_current", "_entries", "_items", "_pushes")

    def __init__(self, current: Callable[[T], Key | None]) -> None:
        self._current = current
        self._entries: list[tuple[Key, int, T]] = []
        self._items = 0
        self._pushes = 0

    def push(self, item: T) -> None:
        """The item's key may have become smaller, or it is to be found again."""
        key = self._current(item)
        if key is None:
            return
        if len(self._entries) > 2 * self._items + SLACK:
            self._renew()
        self._pushes += 1
        heappush(self._entries, (key, self._pushes, item))

    def first(self) -> T | None:
        """The item with the smallest key."""
        while self._entries:
            key, _, item = self._entries[0]
            now = self._current(item)
            if now == key:
                return item
            heappop(self._entries)
            if now is not None and now > key:
                self.push(item)
        return None

    def _renew(self) -> None:
        """One entry an item."""
        items = list(dict.fromkeys(item for _, _, item in self._entries))
        self._entries.clear()
        for item in items:
            key = self._current(item)
            if key is not None:
                self._pushes += 1
                heappush(self._entries, (key, self._pushes, item))
        self._items = len(self._entries)
