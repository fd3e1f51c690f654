"""Who answers what a queue asks: by itself the cells alone; a caller may answer with more in mind."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol

from pai_backend.scheduling.core.decision import Decision
from pai_backend.scheduling.core.ledger import Ledger
from pai_backend.scheduling.queue.entry import Entry

Suggest = Callable[[Entry], Collection[str] | None]
"""The nodes that have what an entry's group needs besides cells; None is all. Equal needs must get equal answers."""


def anywhere(entry: Entry) -> None:
    """A :data:`Suggest` for when only cells count."""


class Decider(Protocol):
    """Decides about entries: about all groups of one together.

    A decision tells the place of the entry's own group and the victims of all, and holds all that is to be written. A
    ``Wait`` names the group without place: when it is not the entry's own, or the reason is one of nodes, others of the
    same kind may still start.
    """

    def decide(self, entry: Entry) -> Decision:
        """A place for the entry, a place that is kept for it included; changes nothing."""

    def suggest(self, entry: Entry) -> Collection[str] | None:
        """Nodes that have now what the entry's group needs besides cells."""

    def could_use(self, entry: Entry) -> Collection[str] | None:
        """Nodes that would have it if nothing ran there."""

    def may_profit(self, entry: Entry, nodes: Collection[str]) -> bool:
        """Whether an entry that nodes had no place for may have one now that these nodes have more to give."""


class CellsOnly:
    """A :class:`Decider` that asks the cluster about one group, on the nodes that have what else it needs."""

    def __init__(self, ledger: Ledger, suggest: Suggest = anywhere, could_use: Suggest = anywhere) -> None:
        self._ledger = ledger
        self._suggest = suggest
        self._could_use = could_use

    def decide(self, entry: Entry) -> Decision:
        """See :class:`Decider`."""
        return self._ledger.decide(entry.group, self.suggest(entry))

    def suggest(self, entry: Entry) -> Collection[str] | None:
        """See :class:`Decider`."""
        return None if entry.group.ignore_suggested else self._suggest(entry)

    def could_use(self, entry: Entry) -> Collection[str] | None:
        """See :class:`Decider`."""
        return None if entry.group.ignore_suggested else self._could_use(entry)

    def may_profit(self, entry: Entry, nodes: Collection[str]) -> bool:
        """See :class:`Decider`."""
        return True
