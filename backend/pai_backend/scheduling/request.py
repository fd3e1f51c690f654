"""What is asked for, where it goes, and why it waits: plain values that never change. They stand below everything else.

Texts are made elsewhere.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum

from pai_backend.model.booking import Booking
from pai_backend.model.ids import TaskUid
from pai_backend.model.node import Placement
from pai_backend.scheduling.terms import ANY_NODE, Terms

OPPORTUNISTIC = -1
"""The priority of groups that use any idle leaf and may be ended by any guaranteed group."""
HIGHEST = 1000
"""Source: HiveD's api constants."""


@dataclass(frozen=True, slots=True)
class Member:
    """``pods`` pods of ``leaves`` leaf cells each.

    With ``min_pods`` the group may start with fewer and grow later. ``within`` names a cell type of which one cell must
    contain all of these pods. ``role`` is the task role they are of, for texts.
    """

    pods: int
    leaves: int
    min_pods: int | None = None
    within: str = ""
    role: str = field(default="", compare=False)

    @property
    def least(self) -> int:
        """The fewest pods with which it starts."""
        return self.pods if self.min_pods is None else self.min_pods


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
    """Take nodes that were not suggested, as HiveD does by default. Bad nodes are avoided in any case."""

    @property
    def pods(self) -> int:
        """Pods when fully grown; pods are numbered from 0 in the order of the members."""
        return sum(member.pods for member in self.members)

    @property
    def least(self) -> list[int]:
        """The fewest pods of each member with which it starts."""
        return [member.least for member in self.members]

    @property
    def leaves(self) -> int:
        """Leaf cells when fully grown."""
        return sum(member.pods * member.leaves for member in self.members)


Key = tuple[int, int, str, str]
"""Order of the queue: highest priority, then earliest submission; of one number by :attr:`Entry.tie`, then by name."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What waits or runs as one. ``order`` is its submission number: within a priority the lower one goes first.

    ``needs`` stands for everything but cells that it asks of nodes (CPU, memory, ports, selectors): entries with equal
    needs can use the same nodes. ``others`` are groups that start together with ``group`` or not at all, and ``loose``
    is how many tasks without cells belong to it; where nothing needs cells, ``group`` has no members.
    """

    group: Group
    user: str
    order: int
    needs: Hashable = None
    others: tuple[Group, ...] = ()
    loose: int = 0
    tie: str = ""
    """Orders entries with the same number."""
    account: str = ""
    """The virtual cluster under whose caps it counts; the group's own when empty."""
    sweep: str = ""
    sweep_tasks: int | None = None
    """The most tasks of the user's sweep that run at once; None: no limit."""
    of_job: str = ""
    """The job that it is a part of; empty: it is a job by itself."""
    longest: timedelta | None = None
    """For how long it may run by its own document; None: until it is done."""

    @property
    def key(self) -> Key:
        """Where it stands: a smaller key is served first."""
        return (-self.group.priority, self.order, self.tie, self.group.name)

    @property
    def vc(self) -> str:
        """The virtual cluster under whose caps it counts."""
        return self.account or self.group.vc

    @property
    def job(self) -> str:
        """What it counts as under caps on jobs."""
        return self.of_job or self.group.name

    @property
    def groups(self) -> tuple[Group, ...]:
        """All its groups of cells."""
        return (self.group, *self.others) if self.group.members else self.others

    @property
    def pods(self) -> int:
        """Tasks when fully grown, those without cells included."""
        return self.loose + sum(group.pods for group in self.groups)

    @property
    def leaves(self) -> int:
        """Leaf cells when fully grown."""
        return sum(group.leaves for group in self.groups)

    def led_by(self, group: Group) -> Entry:
        """The same, told by another one of its groups."""
        if group is self.group:
            return self
        return replace(self, group=group, others=tuple(each for each in self.groups if each is not group))


@dataclass(frozen=True)
class Need:
    """What one task needs. ``gpus`` are those it is given; the cells it holds may be more. Fixed ports have a label."""

    uid: TaskUid
    cpus: int
    memory_mb: int
    gpus: int = 0
    fixed_ports: tuple[tuple[int, str], ...] = ()
    terms: Terms = ANY_NODE
    gpu_type: str = ""
    """The leaf type that it asks for; empty: any."""

    @property
    def kind(self) -> tuple[int, int, int, tuple[tuple[int, str], ...], Terms, str]:
        """All that a node is asked for: equal for tasks of any job that the same nodes suit."""
        return self.cpus, self.memory_mb, self.gpus, self.fixed_ports, self.terms, self.gpu_type


@dataclass(frozen=True, slots=True)
class GroupPlace:
    """Where a group's pods go, by their number; enough to rebuild the ledger from after a restart.

    A decision knows of each pod its node and cells; what a task gets besides is put into the same placement later.
    ``displaced``: it was lazily preempted and runs opportunistically.
    """

    group: Group
    chain: str
    pods: Mapping[int, Placement]
    displaced: bool = False

    @property
    def cells(self) -> dict[int, tuple[str, tuple[int, ...], str]]:
        """All that the ledger decides of each pod: node, cells, and the type of the quota cell that pays."""
        return {ordinal: (pod.node, pod.cells, pod.owned) for ordinal, pod in self.pods.items()}


_NOWHERE = Placement(node="", address="", machine="")


def on_cells(node: str, cells: tuple[int, ...], chain: str, owned: str = "") -> Placement:
    """A placement of which only the cells are known, on a quota cell of type ``owned`` ("" when none)."""
    # A copy costs half of what validation does, and a decision makes one for each pod.
    return _NOWHERE.model_copy(update={"node": node, "cells": cells, "chain": chain, "owned": owned})


MOST_HOLDERS = 20
"""How many groups or nodes a reason names."""


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
    BOOKED = "booked"
    """It would start if GPUs of its virtual cluster were not booked for a time."""


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
    booking: Booking | None = None
    """What it would have to leave room for, where that is the reason."""
