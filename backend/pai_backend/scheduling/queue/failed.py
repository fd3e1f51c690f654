"""What found no place in this pass, so that nothing larger need be asked."""

from __future__ import annotations

from pai_backend.scheduling.queue.entry import KindKey, Lane

_Shape = tuple[int, int, int]
"""Pods, leaves of each, priority."""


class Failed:
    """Shapes without a place. Good as long as cells are only taken; :meth:`clear` it when some are freed."""

    def __init__(self) -> None:
        self._shapes: dict[Lane, list[_Shape]] = {}

    def clear(self) -> None:
        """Cells became free."""
        self._shapes.clear()

    def add(self, key: KindKey) -> None:
        """No cells for this kind, on whatever nodes. Kinds with constraints or unequal pods say nothing of others."""
        sizes = {leaves for _, leaves, _ in key.shape}
        if len(sizes) == 1 and not key.within and not any(within for _, _, within in key.shape):
            pods = sum(count for count, _, _ in key.shape)
            self._shapes.setdefault(key.lane, []).append((pods, sizes.pop(), key.priority))

    def covers(self, key: KindKey) -> bool:
        """Whether this kind needs at least what something of at least its priority did not get."""
        return any(
            key.priority <= priority and sum(count for count, size, _ in key.shape if size >= leaves) >= pods
            for pods, leaves, priority in self._shapes.get(key.lane, ())
        )
