"""What is answered: a place now, a place once others have ended, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass, field

from pai_backend.scheduling.core.search import Plan
from pai_backend.scheduling.request import Placement, Reason


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
