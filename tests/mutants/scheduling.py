"""Wrong searches, each missing something, that the comparison with trying everything must reject."""

from __future__ import annotations

from pai_backend.scheduling.cells.held import Spot
from pai_backend.scheduling.core.exact import Exact, Finder, find
from pai_backend.scheduling.core.search import Search


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
