"""A decider that asks about cells on the nodes that a test suggests."""

from __future__ import annotations

from collections.abc import Callable, Collection

from pai_backend.scheduling import Ledger
from pai_backend.scheduling.queue.entry import CellsOnly
from pai_backend.scheduling.request import Entry


class Suggesting(CellsOnly):
    """Nodes lack something now that all of them could have: ``suggest`` tells those that do not; None is all."""

    def __init__(self, ledger: Ledger, suggest: Callable[[Entry], Collection[str] | None]) -> None:
        super().__init__(ledger)
        self._suggest = suggest

    def suggest(self, entry: Entry) -> Collection[str] | None:
        """Nodes that have now what the entry's group needs besides cells."""
        if entry.group.ignore_suggested:
            return super().suggest(entry)
        found = self._suggest(entry)
        return super().suggest(entry) if found is None else set(found).difference(self._barred)
