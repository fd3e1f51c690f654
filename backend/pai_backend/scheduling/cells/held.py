"""What a group holds: the record that masks and units point to."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pai_backend.scheduling.cells.physical import Node, PhysicalCell
    from pai_backend.scheduling.cells.virtual import Unit
    from pai_backend.scheduling.core.group import Group, Placement


class State(StrEnum):
    """``preempting``: keeps a reservation while its victims end. ``being-preempted``: asked to end."""

    ALLOCATED = "allocated"
    PREEMPTING = "preempting"
    BEING_PREEMPTED = "being-preempted"


@dataclass(slots=True, eq=False)
class Spot:
    """Where one pod is: leaves ``mask`` of ``node``, through ``unit`` on ``cell``; both None when opportunistic.

    ``owned`` is the type of the quota cell that pays; it stays known while a group is lazily preempted.
    """

    node: Node
    mask: int
    unit: Unit | None
    cell: PhysicalCell | None
    owned: str = ""


Record = tuple[
    "list[tuple[Spot, Unit | None, PhysicalCell | None]]", list[int], State, str, "dict[Held, None]", "Placement | None"
]


@dataclass(slots=True, eq=False)
class Held:
    """A group with a place. Two are equal only if they are the same object; dicts keyed by it keep insertion order."""

    group: Group
    spots: list[Spot]
    state: State
    serial: int
    """Order of submission; recovery replays it."""
    ordinals: list[int] = field(default_factory=list)
    """The pod number of each spot."""
    victims: list[Held] = field(default_factory=list)
    """Who has to end for it, while it is a preemptor."""
    pursuers: dict[Held, None] = field(default_factory=dict)
    """Preemptors that wait for it to end."""
    displaced_by: str = ""
    """Who lazily preempted it: it runs on as an opportunistic group. Empty when not displaced."""
    stored: Placement | None = None
    """Its place as decided. Kept as it was, also where leaves left the configuration: they run on, uncounted."""

    def pursue(self, victim: Held) -> None:
        """Wait for ``victim`` to end."""
        if self not in victim.pursuers:
            victim.state = State.BEING_PREEMPTED
            victim.pursuers[self] = None
            self.victims.append(victim)

    def record(self) -> Record:
        """Everything about it that can change, to be put back."""
        spots = [(spot, spot.unit, spot.cell) for spot in self.spots]
        return spots, list(self.ordinals), self.state, self.displaced_by, dict(self.pursuers), self.stored

    def put_back(self, record: Record) -> None:
        """Be as :meth:`record` says."""
        spots, ordinals, self.state, self.displaced_by, self.pursuers, self.stored = record
        self.spots, self.ordinals = [spot for spot, _, _ in spots], ordinals
        for spot, unit, cell in spots:
            spot.unit, spot.cell = unit, cell

    @property
    def priority(self) -> int:
        """The priority that counts now: -1 while displaced."""
        return -1 if self.displaced_by else self.group.priority

    @property
    def chain(self) -> str:
        """The chain it lies in; "" when all of its leaves left the configuration."""
        return self.spots[0].node.chain.name if self.spots else ""
