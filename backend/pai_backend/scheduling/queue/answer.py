"""What a pass of the queue decided: for the caller to carry out, in this order."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from pai_backend.scheduling.core.decision import Wait
from pai_backend.scheduling.queue.entry import Entry
from pai_backend.scheduling.request import GroupPlace


@dataclass(frozen=True, slots=True)
class Started:
    """The group has its place: start its tasks there. ``displaced`` groups run on opportunistically."""

    entry: Entry
    placement: GroupPlace
    displaced: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Preempting:
    """The place is kept; end ``victims``, report each with :meth:`Queue.release`, and the group will start."""

    entry: Entry
    placement: GroupPlace
    victims: tuple[str, ...]
    displaced: tuple[str, ...] = ()


@dataclass(slots=True)
class Pass:
    """All decisions of one pass. They are applied to the ledger already."""

    decided: list[Started | Preempting] = field(default_factory=list)
    """In the order in which they were made."""
    returned: list[str] = field(default_factory=list)
    """Groups that had a place kept, for victims to end or in their turn, and wait like others again."""
    held_back: list[str] = field(default_factory=list)
    """Groups for which cells are kept from now on, since they have been overtaken long enough."""
    upgraded: tuple[str, ...] = ()
    """Lazily preempted groups that count on their quota again."""
    refused: dict[str, Wait] = field(default_factory=dict)
    """Of the groups that were asked about, those that have no place, and why; those alike were not asked."""
    moved_up: dict[str, None] = field(default_factory=dict)
    """Groups that are first among those alike now, since the one before them got its place."""
    asked: int = 0
    """How many groups the cluster was asked about: what the pass cost."""
    more: bool = False
    """There is more to ask: call again."""
    look_again: datetime | None = None
    """When, if nothing happens, cells have to be kept for somebody: call again then."""

    @property
    def started(self) -> list[Started]:
        """The groups that start."""
        return [each for each in self.decided if isinstance(each, Started)]

    @property
    def preempting(self) -> list[Preempting]:
        """The groups for which others have to end."""
        return [each for each in self.decided if isinstance(each, Preempting)]
