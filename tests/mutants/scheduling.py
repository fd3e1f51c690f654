"""Wrong searches and wrong clusters, each missing something, that the property tests must reject."""

from __future__ import annotations

from pai_backend.scheduling.cells.buddy import Buddy
from pai_backend.scheduling.cells.journal import Journal
from pai_backend.scheduling.cells.tree import Node, PhysicalCell, Spot
from pai_backend.scheduling.core.scope import Exact, Finder, find
from pai_backend.scheduling.core.search import Search
from pai_backend.scheduling.core.sieve import Sieve


def never_goes_back(search: Search) -> dict[int, Spot] | None:
    """The quick way alone, as the reference has it."""
    return search.quick()


def sees_only_idle_leaves(search: Search) -> dict[int, Spot] | None:
    """Ends nobody, ever."""
    search.spare = None
    return find(search)


def takes_what_is_full(search: Search) -> dict[int, Spot] | None:
    """Believes that everybody may be ended."""
    search.spare = lambda held: True
    return Exact(search).spots()


FINDERS: list[Finder] = [never_goes_back, sees_only_idle_leaves, takes_what_is_full]


# -- wrong clusters: (object, attribute, wrong function), each breaking a law that random operations must find ---------


def _never_merges(self: Buddy[PhysicalCell], cell: PhysicalCell) -> None:
    """Gives a cell back and leaves its buddies apart."""
    self.append(cell)
    self._count(cell, 1)


def _remembers_nothing(self: Journal, undo: object, *arguments: object) -> None:
    """Notes no inverse."""


def _sees_no_bad_leaves(self: Node) -> int:
    """Idle leaves, broken ones among them."""
    return self.mask & ~(self.guaranteed | self.oppo | self.reserved)


CLUSTERS: list[tuple[type, str, object]] = [
    (Buddy, "put", _never_merges),
    (Journal, "note", _remembers_nothing),
    (Node, "idle", _sees_no_bad_leaves),
]


# -- wrong sieves: (method, wrong function), each leaving out sets of victims that would do ---------------------------


def _worth_their_leaves(self: Sieve, node: Node, mask: int, free: int) -> None:
    """Forgets that what idles beside a victim helps it to make a slot."""
    for holders in (node.running, node.reserving):
        for held, where in holders.items():
            for size, worth in self._worth.items():
                worth[held] = worth.get(held, 0.0) + (where & mask).bit_count() / size


def _nothing_opens(self: Sieve, size: int, changes: object) -> int:
    """Believes that units which stand on nothing never find a cell."""
    return 0


SIEVES: list[tuple[str, object]] = [("_credit", _worth_their_leaves), ("_openings", _nothing_opens)]
