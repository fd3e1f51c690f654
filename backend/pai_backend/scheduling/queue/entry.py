"""What waits, who answers for it, and what a pass of the queue decided."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, Protocol

from pai_backend.scheduling.core.decision import Bound, Decision, Enqueue, Keep, Preempt, Wait
from pai_backend.scheduling.core.ledger import Ledger
from pai_backend.scheduling.request import OPPORTUNISTIC, Entry, Group


class Scope(NamedTuple):
    """For whom a cap holds: ``user`` or ``vc`` may be empty, for all; ``sweep`` is one of the user's."""

    vc: str
    user: str
    sweep: str = ""


class Lane(NamedTuple):
    """Who competes for the same cells, and the line in which a group can be first.

    ``vc`` is empty for opportunistic groups, which compete with those of all virtual clusters.
    """

    vc: str
    leaf_type: str
    pinned_id: str


class KindKey(NamedTuple):
    """Groups with the same key find a place together or not at all, as far as cells go."""

    lane: Lane
    priority: int
    within: str
    shape: tuple[tuple[int, int, str], ...]
    """Per member: the fewest pods it starts with, leaves of a pod, the cell type that must contain them."""
    others: tuple[KindKey, ...] = ()
    """Of the groups that start together with it."""
    spread: bool = False
    booked: tuple[object, ...] = ()
    """What tells entries apart where GPUs are booked; see ``Bookings.kind``."""


def line_of(group: Group) -> str:
    """The queue a group stands in: its virtual cluster's; "" for opportunistic groups, which stand in one together."""
    return "" if group.priority == OPPORTUNISTIC else group.vc


def kind_of(group: Group, others: tuple[Group, ...] = (), booked: tuple[object, ...] = ()) -> KindKey:
    """The kind that a group belongs to, and those that start together with it."""
    shape = tuple((member.least, member.leaves, member.within) for member in group.members)
    lane = lane_of(group)
    kinds = tuple(kind_of(other) for other in others)
    return KindKey(lane, group.priority, group.within, shape, kinds, group.spread, booked)


def lane_of(group: Group) -> Lane:
    """The lane that a group stands in."""
    return Lane(line_of(group), group.leaf_type, group.pinned_id)


Ends = Callable[[str], datetime | None]
"""When a running group is expected to end; None when unknown. Also asked of groups that have just started."""


class Decider(Protocol):
    """Decides about entries: about all groups of one together.

    A decision tells the place of the entry's own group and the victims of all, and holds all that is to be written. A
    ``Wait`` names the group without place: when it is not the entry's own, or the reason is one of nodes, others of the
    same kind may still start.
    """

    def decide(self, entry: Entry) -> Decision:
        """A place for the entry, a place that is kept for it included; changes nothing."""

    def suggest(self, entry: Entry) -> Collection[str] | None:
        """Nodes that have now what the entry's group needs besides cells; None is all. Of equal needs the same."""

    def could_use(self, entry: Entry) -> Collection[str] | None:
        """Nodes that would have it if nothing ran there."""

    def may_profit(self, entry: Entry, nodes: Collection[str]) -> bool:
        """Whether an entry that nodes had no place for may have one now that these nodes have more to give."""

    def open_nodes(self, group: Group) -> Collection[str] | None:
        """Nodes where tasks of such a group may be, whatever runs there; None is all."""

    def without(self, nodes: Collection[str]) -> AbstractContextManager[None]:
        """Decide as if these nodes were not there."""


class CellsOnly:
    """A :class:`Decider` that asks the ledger about one group, on all nodes."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._barred: Collection[str] = ()

    def decide(self, entry: Entry) -> Decision:
        """See :class:`Decider`."""
        return self.ledger.decide(entry.group, self.suggest(entry))

    def suggest(self, entry: Entry) -> Collection[str] | None:
        """See :class:`Decider`."""
        return self.ledger.nodes.keys() - self._barred if self._barred else None

    could_use = suggest

    def open_nodes(self, group: Group) -> Collection[str] | None:
        """See :class:`Decider`."""
        return None

    @contextmanager
    def without(self, nodes: Collection[str]) -> Iterator[None]:
        """See :class:`Decider`."""
        self._barred = nodes
        try:
            yield
        finally:
            self._barred = ()

    def may_profit(self, entry: Entry, nodes: Collection[str]) -> bool:
        """See :class:`Decider`."""
        return True


@dataclass(frozen=True, slots=True)
class Asked:
    """The entry has no place: as ``wait`` says, or as counting shows. It is not asked again before something is freed.

    ``by_nodes``: entries of the same kind that ask for something else of nodes may start all the same.
    """

    name: str
    wait: Wait | None = None
    by_nodes: bool = False


@dataclass(frozen=True, slots=True)
class Parked:
    """The entry, and those of its user behind it, wait for this cap; for none any longer when it is None."""

    name: str
    scope: Scope | None


@dataclass(frozen=True, slots=True)
class Stuck:
    """No cells could be kept for the entry, or for any of its kind."""

    name: str


@dataclass(frozen=True, slots=True)
class Fronts:
    """Who is first in each lane at the end of a pass, and who was seen on the way, first since ``at`` or longer."""

    first: tuple[tuple[Lane, str], ...]
    seen: tuple[str, ...]
    at: datetime


PassStep = Bound | Preempt | Keep | Wait | Enqueue | Asked | Parked | Stuck | Fronts
"""What a pass decides, one after the other: each holds for the state that those before it leave."""


@dataclass(slots=True)
class Pass:
    """All decisions of one pass: the ``steps`` are to be applied, the rest tells what they mean."""

    made_on: tuple[int, int] = field(default=(0, 0), compare=False, repr=False)
    """See :attr:`Queue.state`."""
    steps: list[PassStep] = field(default_factory=list, repr=False)
    returned: list[str] = field(default_factory=list)
    """Groups that had a place kept, for victims to end or in their turn, and wait like others again."""
    upgraded: tuple[str, ...] = ()
    """Lazily preempted groups that count on their quota again."""
    moved_up: dict[str, None] = field(default_factory=dict)
    """Groups that are first among those alike now, since the one before them got its place."""
    asked: int = 0
    """How many groups the cluster was asked about: what the pass cost."""
    more: bool = False
    """There is more to ask: call again."""
    look_again: datetime | None = None
    """When, if nothing happens, cells have to be kept for a group: call again then."""

    @property
    def decided(self) -> list[Bound | Preempt]:
        """Places, in the order in which they were decided: start the tasks, or end the victims."""
        return [step for step in self.steps if isinstance(step, Bound | Preempt)]

    @property
    def started(self) -> list[str]:
        """The groups that start."""
        return [step.placement.group.name for step in self.steps if isinstance(step, Bound)]

    @property
    def held_back(self) -> list[str]:
        """Groups for which cells are kept from now on, since they have been overtaken long enough."""
        return [step.entry.group.name for step in self.steps if isinstance(step, Keep) and step.entry is not None]

    @property
    def refused(self) -> dict[str, Wait]:
        """Of the groups that were asked about, those that have no place, and why; those alike were not asked."""
        return {step.name: step.wait for step in self.steps if isinstance(step, Asked) and step.wait is not None}
