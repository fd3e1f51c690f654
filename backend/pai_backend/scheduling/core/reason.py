"""Why a group waits: a code, the numbers behind it, and who holds what it needs. Texts are made elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class WaitCode(StrEnum):
    """The binding constraint, most permanent first; the first that applies is the one reported."""

    QUOTA = "quota"
    """The virtual cluster does not own that much; it never starts as it is."""
    SHAPE = "shape"
    """It owns that many leaves, but not in cells large enough."""
    BAD_NODES = "bad-nodes"
    """It would start if all nodes were healthy."""
    NOT_SUGGESTED = "not-suggested"
    """It would start if all nodes were allowed: CPU, memory, ports or selectors exclude them."""
    BEYOND_PRIORITY = "priority"
    """Groups of the same or a higher priority hold what it needs."""
    RESERVED = "reserved"
    """A preemptor keeps what it needs."""
    FRAGMENTED = "fragmented"
    """Enough leaves are free, but scattered."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Numbers are leaves. ``largest`` is the largest task that would find room now."""

    code: WaitCode
    vc: str
    needed: int
    largest_pod: int
    owned: int = 0
    free: int = 0
    largest: int = 0
    within: str = ""
    holders: tuple[str, ...] = ()
    """Groups that hold what is needed, at most :data:`MOST_HOLDERS`, by order of submission."""
    nodes: tuple[str, ...] = ()
    """Bad or not suggested nodes, where that is the reason."""


MOST_HOLDERS = 20
