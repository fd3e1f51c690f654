"""What is answered: a place now, a place once others have ended, or why there is none. And what else can be applied.

A decision holds all that it writes, so that :meth:`~pai_backend.scheduling.core.ledger.Ledger.apply` need not search.
``version`` is that of the ledger it was made on. ``holds`` is CPU and memory that tasks take on nodes, ``frees`` names
tasks that give theirs back; ``steps`` are the groups of a unit one by one, where several start together. ``entry``
waits in the queue for that place and advances when the decision is applied; None changes no entry.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from pai_backend.model.ids import PortLease, TaskUid
from pai_backend.scheduling.core.search import Plan
from pai_backend.scheduling.request import Entry, GroupPlace, Need, Reason

Holds = tuple[tuple[Need, str], ...]
"""Tasks with the node that has what each needs."""


@dataclass(frozen=True, slots=True)
class _Placed:
    """A place. ``displaced`` run on as opportunistic groups, ``cancelled`` preemptors go back to waiting."""

    placement: GroupPlace
    displaced: tuple[str, ...] = ()
    cancelled: tuple[str, ...] = ()
    plan: Plan | None = field(default=None, repr=False, compare=False)
    version: int = field(default=-1, repr=False, compare=False)
    steps: tuple[Step, ...] = field(default=(), repr=False, compare=False)
    holds: Holds = field(default=(), repr=False, compare=False)
    frees: tuple[TaskUid, ...] = field(default=(), repr=False, compare=False)
    entry: Entry | None = field(default=None, repr=False, compare=False)
    stops_by: datetime | None = None
    """When the entry has to have ended, since it starts only because GPUs that are booked from then on are idle."""


@dataclass(frozen=True, slots=True)
class Bound(_Placed):
    """There is room now."""


@dataclass(frozen=True, slots=True)
class Preempt(_Placed):
    """There will be room when ``victims`` have ended entirely; until then the place can be kept."""

    victims: tuple[str, ...] = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class Keep:
    """The place is kept for the group. Groups that run there are not asked to end."""

    placement: GroupPlace
    plan: Plan = field(repr=False, compare=False)
    version: int = field(default=-1, repr=False, compare=False)
    holds: Holds = field(default=(), repr=False, compare=False)
    entry: Entry | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Wait:
    """Not now, and why.

    ``drops_reservation``: the group had one that is no longer good; applying this gives it up.
    ``short``: cells are free for it on nodes that would be large enough, and lack CPU, memory or a port now.
    """

    group: str
    reason: Reason
    drops_reservation: bool = False
    version: int = field(default=-1, repr=False, compare=False)
    frees: tuple[TaskUid, ...] = field(default=(), repr=False, compare=False)
    short: bool = False


@dataclass(frozen=True, slots=True)
class Release:
    """All pods of the group have ended, or it gives up its reservation. Right on any version; idempotent."""

    group: str


@dataclass(frozen=True, slots=True)
class Lease:
    """Ports for tasks that have a place: first all leases of the owners in ``ends`` end. Right on any version."""

    begins: tuple[PortLease, ...] = ()
    ends: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Enqueue:
    """The entry waits from now on; also one that ran or had a place kept, which it gives up. Right on any version."""

    entry: Entry


@dataclass(frozen=True, slots=True)
class Dequeue:
    """The entry of this name neither waits nor runs any longer. Right on any version; idempotent."""

    name: str


class Stage(Enum):
    """How far an entry has come."""

    WAITING = "waiting"
    KEPT = "kept"
    """It waits, and cells are kept for it."""
    RUNNING = "running"


@dataclass(frozen=True, slots=True)
class EntryState:
    """An entry and its stage. ``victims`` were asked to end for it; none when it is ``held_back`` for."""

    entry: Entry
    stage: Stage
    victims: frozenset[str] = frozenset()
    held_back: bool = False


Decision = Bound | Preempt | Wait
Step = Bound | Preempt | Keep
"""What is decided for one group of a unit."""
Applicable = Decision | Keep | Release | Lease | Enqueue | Dequeue
"""All that a ledger applies."""
