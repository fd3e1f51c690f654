"""Groups that do not run yet and have cells kept for them: preemptors, and those that were overtaken long enough."""

from __future__ import annotations

from dataclasses import dataclass

from pai_backend.scheduling.core.place import Option
from pai_backend.scheduling.queue.entry import Lane
from pai_backend.scheduling.queue.kind import Ticket


@dataclass(slots=True, eq=False)
class Claim:
    """Cells kept for a group, and for those that start together with it, in ``lanes``.

    ``victims`` were asked to end for it; nobody was when it is ``held_back`` for. ``options`` are the group's own.
    """

    ticket: Ticket
    lanes: tuple[Lane, ...]
    options: list[Option]
    least: int
    """Leaves it cannot start without."""
    held_back: bool
    victims: frozenset[str] = frozenset()
    stirred: bool = False
    """Cells that it could use as well were freed since it was last looked whether they would do."""
