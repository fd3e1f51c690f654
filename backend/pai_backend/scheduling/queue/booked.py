"""GPUs that are booked for a time, and who may start beside them. Pure.

Before a booking begins, a group that may run into it starts only if the booked GPUs still fit beside it: on cells that
are idle, or become so by then. While it lasts, the same holds for groups of those whom it is not for; what those whom
it is for have started since it began counts as a part of it. Nothing is held in the ledger for it: a decision is tried,
and what is booked is placed beside it in the same trial. So without bookings nothing is decided otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

from pai_backend.model.booking import Booking
from pai_backend.model.errors import PaiError
from pai_backend.scheduling.cells.tree import Held, State
from pai_backend.scheduling.core.decision import Bound, Keep, Preempt
from pai_backend.scheduling.core.ledger import Ledger
from pai_backend.scheduling.core.place import Planner
from pai_backend.scheduling.core.scope import parts_of
from pai_backend.scheduling.core.trees import check_group
from pai_backend.scheduling.queue.entry import Decider
from pai_backend.scheduling.queue.policy import Policy
from pai_backend.scheduling.request import HIGHEST, OPPORTUNISTIC, Entry, Group, Member


@dataclass(frozen=True)
class Booked:
    """A booking in terms of cells: ``leaves`` of the virtual cluster that is called ``cells`` in the ledger."""

    booking: Booking
    cells: str
    leaves: int

    def group(self, leaves: int) -> Group:
        """What stands for as much of it in a trial."""
        member = Member(1, leaves) if self.booking.one_node else Member(leaves, 1)
        return Group(f"booking/{self.booking.id}", self.cells, (member,), HIGHEST, self.booking.gpu_type)

    def is_at(self, moment: datetime) -> bool:
        """Whether it is in force then."""
        return self.booking.begins <= moment < self.booking.ends

    def could_use(self, entry: Entry) -> bool:
        """Whether the entry holds such cells once it runs. Pinned cells are never booked."""
        return any(
            group.vc == self.cells
            and group.priority != OPPORTUNISTIC
            and not group.pinned_id
            and (not self.booking.gpu_type or group.leaf_type in ("", self.booking.gpu_type))
            for group in entry.groups
        )

    def admits(self, entry: Entry) -> bool:
        """Whether it is for the entry's user."""
        return self.booking.admits(entry.user, entry.vc)

    def bars(self, entry: Entry, now: datetime, ends: datetime | None) -> bool:
        """Whether an entry that starts now, and is bound to end then, may not hold what is booked."""
        booking = self.booking
        is_over = booking.ends <= now or (ends is not None and ends <= booking.begins)
        return not is_over and not (booking.begins <= now and self.admits(entry)) and self.could_use(entry)


class RunSpan(NamedTuple):
    """When a running entry began, and when it is stopped at the latest; None: not known, or never."""

    began: datetime | None = None
    bound: datetime | None = None


Spans = Callable[[str], RunSpan]


class QueueBooks(Protocol):
    """What is read of the queue's books."""

    ledger: Ledger
    policy: Policy
    decider: Decider
    running: dict[str, Entry]
    promised: dict[str, datetime]


class QueueBookings:
    """All bookings in front of the queue. ``spans`` tells of running entries by their names."""

    def __init__(self, books: QueueBooks, spans: Spans) -> None:
        self._books = books
        self._spans = spans
        self.all: tuple[Booked, ...] = ()
        self.at: datetime | None = None
        """The moment of the last pass."""

    def __bool__(self) -> bool:
        return bool(self.all)

    def in_cells(self, vc: str) -> bool:
        """Whether anything is booked there that is not over."""
        return any(each.cells == vc and (self.at is None or self.at < each.booking.ends) for each in self.all)

    def begins_or_ends(self, now: datetime) -> bool:
        """Whether a booking has begun or ended since the last pass; from now on this was the last one."""
        before, self.at = self.at, now
        return before is not None and any(before < moment <= now for moment in self._moments())

    def next_moment(self, now: datetime) -> datetime | None:
        """When the next booking begins or ends."""
        return min((moment for moment in self._moments() if moment > now), default=None)

    def _moments(self) -> Iterator[datetime]:
        for each in self.all:
            yield each.booking.begins
            yield each.booking.ends

    def longest(self, entry: Entry) -> timedelta | None:
        """For how long the entry may run; None: until it is done."""
        rule = self._books.policy.longest_run(entry.vc)
        known = [each for each in (entry.longest, None if rule is None else rule.after) if each is not None]
        return min(known, default=None)

    def kind(self, entry: Entry) -> tuple[object, ...]:
        """Equal for entries of a kind that are answered alike, whatever the time is."""
        found = [each.booking.id for each in self.all if each.cells == entry.group.vc and each.admits(entry)]
        return (self.longest(entry), *found) if self.in_cells(entry.group.vc) else ()

    def barring(self, entry: Entry, now: datetime) -> list[Booked]:
        """The bookings that the entry, if it started now, would have to leave room for."""
        longest = self.longest(entry)
        ends = None if longest is None else now + longest
        return [each for each in self.all if each.bars(entry, now, ends)]

    def stops_by(self, entry: Entry, now: datetime) -> datetime | None:
        """When an entry that starts now has to have ended, since its time is over before a booking begins."""
        longest = self.longest(entry)
        if longest is None:
            return None
        begins = (each.booking.begins for each in self.all if each.could_use(entry))
        return min((moment for moment in begins if moment >= now + longest), default=None)

    # -- is there room -----------------------------------------------------------------------------------------------

    def in_the_way_of(self, entry: Entry, steps: Sequence[Bound | Preempt | Keep], now: datetime) -> Booked | None:
        """The booking that has no room once these decisions for the entry are carried out; changes nothing."""
        barring = self.barring(entry, now)
        if not barring:
            return None
        with self._books.ledger.trial() as ledger:
            for step in steps:
                ledger.apply(replace(step, version=ledger.version, entry=None), final=True)
            victims = {name for step in steps if isinstance(step, Preempt) for name in step.victims}
            for moment in sorted({max(now, each.booking.begins) for each in barring}):
                short = self._placed(moment, now, entry.group.vc, entry, victims)[0]
                if short is not None:
                    return short if short in barring else barring[0]
        return None

    def short(self, now: datetime, beside: str = "") -> Booked | None:
        """A booking for which there is no room beside what runs now and does not end in time; changes nothing.

        ``beside``: only what is booked while the booking with this id lasts is looked at.
        """
        about = next((each.booking for each in self.all if each.booking.id == beside), None)
        for each in sorted(self.all, key=lambda each: each.booking.begins):
            moment = max(now, each.booking.begins)
            if each.booking.ends > now and (about is None or about.begins <= moment < about.ends):
                found = self._placed(moment, now, each.cells)[0]
                if found is not None:
                    return found
        return None

    def nodes_for(self, entry: Entry, now: datetime) -> frozenset[str]:
        """The nodes where what is booked in one node would lie, if the entry did not start."""
        found: set[str] = set()
        for moment in sorted({max(now, each.booking.begins) for each in self.barring(entry, now)}):
            found |= self._placed(moment, now, entry.group.vc)[1]
        return frozenset(found)

    def _placed(
        self, moment: datetime, now: datetime, cells: str, entry: Entry | None = None, victims: Collection[str] = ()
    ) -> tuple[Booked | None, set[str]]:
        """The first booking of a moment that finds no room, and the nodes of those that lie in one.

        The entry, if there is one, has started, and ``victims`` are groups that end for it.
        """
        nodes = set[str]()
        active = [each for each in self.all if each.cells == cells and each.is_at(moment)]
        running = {name: each for name, each in self._books.running.items() if each.group.vc == cells}
        gone = {name for name in running if self._has_ended(name, moment)}
        if entry is not None:
            running[entry.group.name] = entry
            gone.update(running.keys() & set(victims))
            longest = self.longest(entry)
            if longest is not None and now + longest <= moment:
                gone.add(entry.group.name)
        staying = [(each, self._spans(name).began or now) for name, each in running.items() if name not in gone]
        left = _unused(active, staying)
        ended = {group.name for name in gone for group in running[name].groups}.union(victims)
        with self._books.ledger.trial():
            for each in active:
                stopped = {g.name for run in running.values() if run.of_job in each.booking.stops for g in run.groups}
                if left[each.booking.id] and not self._place(each, left[each.booking.id], ended | stopped, nodes):
                    return each, nodes
        return None, nodes

    def _place(self, each: Booked, leaves: int, gone: Collection[str], nodes: set[str]) -> bool:
        """Keep so many cells for a booking, in a trial; notes the node of those in one node."""
        group, ledger = each.group(leaves), self._books.ledger
        try:
            options = check_group(ledger, group)
        except PaiError:
            return True  # the configuration no longer has such GPUs there: none are kept from others
        ledger.settle(options)
        limits = ledger.limits(self._books.decider.open_nodes(group))

        def spare(held: Held) -> bool:
            return held.state is not State.PREEMPTING and (held.priority < 0 or held.group.name in gone)

        for option in options:
            plan = Planner(ledger.holding, group, parts_of(group, group.least), limits).look(option, spare)
            if plan is not None:
                ledger.apply(ledger.keeping(group, plan), final=True)
                if each.booking.one_node:
                    nodes.update(spot.node.name for spot in plan.spots.values())
                return True
        return False

    def _has_ended(self, name: str, moment: datetime) -> bool:
        bound = self.bound(name)
        return bound is not None and bound <= moment

    def bound(self, name: str) -> datetime | None:
        """When a running entry is stopped at the latest; None: it may run until it is done."""
        known = (self._books.promised.get(name), self._spans(name).bound)
        return min((each for each in known if each is not None), default=None)


def _unused(active: Sequence[Booked], running: Iterable[tuple[Entry, datetime]]) -> dict[str, int]:
    """Leaves of each booking, by its id, that those whom it is for do not hold yet; each group counts for one."""
    left = {each.booking.id: each.leaves for each in active}
    for entry, began in running:
        held = sum(group.leaves for group in entry.groups if not group.pinned_id)
        for each in active:
            if each.could_use(entry) and each.admits(entry) and began >= each.booking.begins:
                taken = min(held, left[each.booking.id])
                left[each.booking.id] -= taken
                held -= taken
    return left
