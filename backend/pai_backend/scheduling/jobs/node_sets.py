"""Sets of nodes by what is asked of them, remembered, and judged anew only where a node has changed since.

Thousands of tasks that wait ask for the same few things of the same thousand nodes, after each change of one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

MOST_NAMES = 500_000
"""Names of nodes in all remembered sets together, some 30 MB; what was asked longest ago is forgotten first."""

Asked = TypeVar("Asked", bound=Hashable)


@dataclass(slots=True)
class _Known:
    names: frozenset[str]
    seen: int


class NodeSets(Generic[Asked]):
    """For each question the nodes that it is true of. Whoever changes a node says so with :meth:`changed`."""

    def __init__(self, true_of: Callable[[Asked, str], bool], among: Callable[[Asked], Collection[str]]) -> None:
        """``among`` are the nodes that come into question at all; ``true_of`` is asked about these only."""
        self._true_of = true_of
        self._among = among
        self._known: dict[Asked, _Known] = {}
        self._changes: dict[str, int] = {}  # node -> number of its last change, the latest last
        self._count = 0
        self._names = 0

    def changed(self, name: str) -> None:
        """The node is new, or different."""
        self._changes.pop(name, None)
        self._count += 1
        self._changes[name] = self._count

    def gone(self, name: str) -> None:
        """The node is no more."""
        self._changes.pop(name, None)
        self._known.clear()
        self._names = 0

    def get(self, asked: Asked) -> frozenset[str]:
        """The nodes that it is true of. Costs one question for each node that changed since it was asked last."""
        nodes, known = self._among(asked), self._known.pop(asked, None)
        if known is None:
            known = _Known(frozenset(name for name in nodes if self._true_of(asked, name)), self._count)
        else:
            self._names -= len(known.names)
            self._catch_up(asked, known, nodes)
        self._known[asked] = known
        self._names += len(known.names)
        while self._names > MOST_NAMES and len(self._known) > 1:
            self._names -= len(self._known.pop(next(iter(self._known))).names)
        return known.names

    def _catch_up(self, asked: Asked, known: _Known, nodes: Collection[str]) -> None:
        come, left = [], []
        for name, number in reversed(self._changes.items()):
            if number <= known.seen:
                break
            was, is_now = name in known.names, name in nodes and self._true_of(asked, name)
            if is_now and not was:
                come.append(name)
            elif was and not is_now:
                left.append(name)
        if come or left:
            known.names = known.names.difference(left).union(come)
        known.seen = self._count
