"""Which connections to tasks are kept between two requests: for whom, how many, how long. Pure."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pai_backend.model.ids import TaskUid

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True)
class Way:
    """What a kept connection is good for. Another visitor's request never goes on it, nor one for another place."""

    task: TaskUid
    node: str
    port: int
    visitor: str
    as_admin: bool


class IdleConnections(Generic[T]):
    """Connections without a request, each for at most ``keep_s`` seconds; ``most`` of them. ``now`` never decreases."""

    def __init__(self, most: int, keep_s: float) -> None:
        self._most = most
        self._keep_s = keep_s
        self._until: dict[T, tuple[Way, float]] = {}  # in the order in which they expire
        self._ways: dict[Way, list[T]] = {}

    def __len__(self) -> int:
        return len(self._until)

    def put(self, way: Way, item: T, now: float) -> list[T]:
        """Keep a connection. Returns those that must be closed to make room."""
        self._until[item] = (way, now + self._keep_s)
        self._ways.setdefault(way, []).append(item)
        return [self._drop(next(iter(self._until))) for _ in range(len(self._until) - self._most)]

    def take(self, way: Way, now: float) -> T | None:
        """The connection that was used last, if one is kept; it is no longer."""
        items = self._ways.get(way)
        return self._drop(items[-1]) if items and now < self._until[items[-1]][1] else None

    def drop(self, item: T) -> bool:
        """Keep a connection no longer; False when it is not kept."""
        return item in self._until and self._drop(item) is item

    def expire(self, now: float) -> list[T]:
        """Keep no longer what is over, and return it."""
        over = []
        for item, (_, until) in self._until.items():
            if now < until:
                break
            over.append(item)
        return [self._drop(item) for item in over]

    def clear(self) -> list[T]:
        """Keep nothing, and return what was kept."""
        return [self._drop(item) for item in list(self._until)]

    def next_expiry(self) -> float | None:
        """When the next is over; None when nothing is kept."""
        return next((until for _, until in self._until.values()), None)

    def _drop(self, item: T) -> T:
        way, _ = self._until.pop(item)
        items = self._ways[way]
        if items[-1] is item:
            items.pop()
        else:
            items.remove(item)
        if not items:
            del self._ways[way]
        return item
