"""What is asked and what is answered, as plain values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pai_backend.scheduling.core.reason import Reason

if TYPE_CHECKING:
    from pai_backend.scheduling.core.search import Plan

OPPORTUNISTIC = -1
"""The priority of groups that use any idle leaf and may be ended by any guaranteed group."""
HIGHEST = 1000
"""Source: HiveD's api constants."""


@dataclass(frozen=True, slots=True)
class Member:
    """``pods`` pods of ``leaves`` leaf cells each.

    With ``min_pods`` the group may start with fewer and grow later. ``within`` names a cell type of which one cell must
    contain all of these pods.
    """

    pods: int
    leaves: int
    min_pods: int | None = None
    within: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """A gang: all of its pods start together or none does. HiveD calls it an affinity group.

    ``priority`` is -1 (opportunistic) to 1000; ``leaf_type`` "" takes any type; ``pinned_id`` names a pinned cell to
    use instead of the quota. With ``lazy_preemption`` it may be turned opportunistic instead of being ended when its
    virtual cluster needs the quota back. ``within`` names a cell type of which one cell must contain the whole group.
    """

    name: str
    vc: str
    members: tuple[Member, ...]
    priority: int = 0
    leaf_type: str = ""
    pinned_id: str = ""
    lazy_preemption: bool = False
    within: str = ""
    spread: bool = False
    """It may lie in several chains where none could ever hold it alone; HiveD's groups never do."""
    ignore_suggested: bool = False
    """Take nodes that were not suggested, as HiveD does unless told otherwise. Bad nodes are avoided in any case."""

    @property
    def pods(self) -> int:
        """Pods when fully grown; pods are numbered from 0 in the order of the members."""
        return sum(member.pods for member in self.members)

    @property
    def leaves(self) -> int:
        """Leaf cells when fully grown."""
        return sum(member.pods * member.leaves for member in self.members)


@dataclass(frozen=True, slots=True)
class PodPlace:
    """Where pod number ``ordinal`` goes: device indexes of a node, on a quota cell of type ``owned`` ("" when none)."""

    ordinal: int
    node: str
    devices: tuple[int, ...]
    owned: str = ""


@dataclass(frozen=True, slots=True)
class Placement:
    """A group's place as stored by the caller; enough to rebuild the cluster from after a restart.

    ``displaced``: it was lazily preempted and runs opportunistically.
    """

    group: Group
    chain: str
    pods: tuple[PodPlace, ...]
    displaced: bool = False


@dataclass(frozen=True, slots=True)
class Bound:
    """There is room now. ``displaced`` run on as opportunistic groups, ``cancelled`` preemptors go back to waiting."""

    placement: Placement
    displaced: tuple[str, ...] = ()
    cancelled: tuple[str, ...] = ()
    plan: Plan | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Preempt:
    """There will be room when ``victims`` have ended entirely; until then the place can be kept."""

    placement: Placement
    victims: tuple[str, ...]
    displaced: tuple[str, ...] = ()
    cancelled: tuple[str, ...] = ()
    plan: Plan | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Wait:
    """Not now, and why.

    ``drops_reservation``: the group had one that is no longer good; committing this gives it up.
    """

    group: str
    reason: Reason
    drops_reservation: bool = False
    version: int = field(default=-1, repr=False, compare=False)


Decision = Bound | Preempt | Wait
