"""What found no place, so that nothing that needs as much be asked about."""

from __future__ import annotations

from pai_backend.scheduling.queue.entry import KindKey, Lane


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
