"""Kinds of one priority that use the same cells, in the order of the queue, and a walk along them after a release."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from pai_backend.scheduling.core.place import Option
from pai_backend.scheduling.queue.entry import Key, KindKey, Lane
from pai_backend.scheduling.queue.kind import Kind

BEGIN: Key = (-(10**9), 0, "", "")
"""Before every key."""


class Failed:
    """Kinds without a place. Good as long as cells are only taken; :meth:`clear` it when some are freed."""

    def __init__(self) -> None:
        self._kinds: dict[Lane, list[KindKey]] = {}
        """Per lane, kinds of which none needs as much as another."""

    def clear(self) -> None:
        """Cells became free."""
        self._kinds.clear()

    def add(self, kind: KindKey) -> None:
        """No cells for this kind, on whatever nodes. Kinds that must lie within one cell say nothing of others."""
        if not kind.within and not any(within for _, _, within in kind.shape):
            known = self._kinds.get(kind.lane, [])
            self._kinds[kind.lane] = [*(other for other in known if not _needs_as_much(other, kind)), kind]

    def covers(self, kind: KindKey) -> bool:
        """Whether this kind needs at least what something of at least its priority did not get."""
        return any(_needs_as_much(kind, other) for other in self._kinds.get(kind.lane, ()))


def _needs_as_much(kind: KindKey, other: KindKey) -> bool:
    """Whether a place for ``kind`` would hold ``other``: as many pods of each size or more, and no higher priority."""
    return kind.priority <= other.priority and all(
        _pods(kind, size) >= _pods(other, size) for _, size, _ in other.shape
    )


def _pods(kind: KindKey, size: int) -> int:
    """How many pods have at least that many leaves."""
    return sum(pods for pods, leaves, _ in kind.shape if leaves >= size)


class Shelf:
    """Three lists in step, so that a walk passes thousands of kinds that are too large in a millisecond.

    ``cursor`` is how far the walk has come; None while there is nothing to look at. What it has passed stays passed,
    since room only shrinks, until cells are freed and the walk begins anew.
    """

    def __init__(self, option: Option, priority: int) -> None:
        self.option = option
        self.priority = priority
        self.cursor: Key | None = None
        self._keys: list[Key] = []
        self._leasts: list[int] = []
        self._kinds: list[Kind] = []

    def put(self, kind: Kind, key: Key) -> None:
        """The kind stands at this key from now on."""
        at = bisect_left(self._keys, key)
        self._keys.insert(at, key)
        self._leasts.insert(at, kind.least)
        self._kinds.insert(at, kind)

    def take(self, key: Key) -> None:
        """The kind that stood at this key does no longer."""
        at = bisect_left(self._keys, key)
        del self._keys[at], self._leasts[at], self._kinds[at]

    def __len__(self) -> int:
        return len(self._keys)

    def next(self, failed: Failed) -> Kind | None:
        """The next kind on the walk that cells could suffice for; again and again until the cursor is put past it."""
        if self.cursor is None:
            return None
        room = capacity(self.option, self.priority)
        for at in range(bisect_right(self._keys, self.cursor), len(self._keys)):
            if self._leasts[at] <= room and not failed.covers(self._kinds[at].key):
                if at:
                    self.cursor = max(self.cursor, self._keys[at - 1])
                return self._kinds[at]
        self.cursor = None
        return None


def capacity(option: Option, priority: int) -> int:
    """The most leaves that a group of this priority can possibly get, whomever it ends."""
    if option.quotas is None:
        option.chain.ranking.settle()
        return sum(free * count for free, count in enumerate(option.chain.ranking.count))
    return option.quotas.leaves - sum(leaves for other, leaves in option.quotas.owned.items() if other >= priority)
