"""Elastic groups that run with fewer tasks than they ask for: who of them gets more when there is room."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pai_backend.scheduling.cells.tree import State
from pai_backend.scheduling.core.decision import Bound
from pai_backend.scheduling.core.ledger import Ledger
from pai_backend.scheduling.request import GroupPlace
from pai_backend.simulation.life import GroupLife


class Growing:
    """Groups that could grow. They are asked after the queue, so that no waiting group that could start is passed over.

    ``ledger`` is asked once for each of them at each instant at which anything became free, in the order of the queue.
    """

    def __init__(self, ledger: Ledger, is_reserved: Callable[[str], bool]) -> None:
        """``is_reserved``: whether GPUs of a virtual cluster are reserved, whose groups then stay as they are."""
        self._ledger = ledger
        self._is_reserved = is_reserved
        self._lives: dict[str, GroupLife] = {}
        self._stirred = False

    def add(self, life: GroupLife) -> None:
        """It started with fewer tasks than it asks for."""
        self._lives[life.arrival.name] = life

    def drop(self, name: str) -> None:
        """Its run is over."""
        self._lives.pop(name, None)

    def stir(self) -> None:
        """Something became free, or well."""
        self._stirred = True

    def grow(self) -> Iterator[tuple[GroupLife, GroupPlace]]:
        """The groups that have more tasks from now on, with all of their places; done in the cluster's memory."""
        if not self._stirred:
            return
        self._stirred = False
        for life in sorted(self._lives.values(), key=lambda each: each.entry.key):
            if not self._may_grow(life):
                continue
            decision = self._ledger.decide_growth(life.arrival.name)
            if isinstance(decision, Bound):
                self._ledger.apply(decision, final=True)
                yield life, decision.placement
                if life.is_full:
                    del self._lives[life.arrival.name]

    def _may_grow(self, life: GroupLife) -> bool:
        """Whether it runs on its quota, and all of it where the cluster knows: not on cells that were taken out."""
        held = self._ledger.groups[life.arrival.name]
        known = life.placement is not None and len(held.spots) == len(life.placement.pods)
        known = known and not self._is_reserved(life.entry.group.vc)
        return known and held.state is State.ALLOCATED and not held.displaced_by
