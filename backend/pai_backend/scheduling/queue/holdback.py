"""The first group of each lane, and keeping cells for it when it has been passed over long enough.

The cells are those on which it could start soonest: groups that run are taken to end in the order in which they are
expected to, and it takes the first place that this opens. What is idle there, and what becomes idle, no group of the
same or a lower priority may take. No group is ended for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from pai_backend.scheduling.cells.tree import Held, State
from pai_backend.scheduling.core.decision import Keep
from pai_backend.scheduling.core.ledger import Ledger, Receipt
from pai_backend.scheduling.core.place import Option, Planner
from pai_backend.scheduling.core.scope import parts_of
from pai_backend.scheduling.core.search import Limits, Plan
from pai_backend.scheduling.core.trees import check_group
from pai_backend.scheduling.queue.books import Books
from pai_backend.scheduling.queue.entry import Ends, Lane, Pass, lane_of
from pai_backend.scheduling.queue.index import kind_at
from pai_backend.scheduling.queue.kind import Ticket
from pai_backend.scheduling.request import Entry, Group, Key

Pick = tuple[int, Plan]


def keep_cells(
    ledger: Ledger, group: Group, options: Sequence[Option], limits: Limits | None, ends: Ends
) -> Keep | None:
    """The cells on which a guaranteed group could start soonest, to be kept for it; None when it could not on any.

    Costs one search per halving of the number of groups that run in its way: about ten among a thousand.
    """
    ledger.settle(options)
    found: Pick | None = None
    for option in options:
        assert option.quotas is not None
        going = sorted(
            (held for held in option.quotas.oldest_first() if _may_end(held)), key=lambda held: _expected(held, ends)
        )
        best = _soonest(ledger, group, option, limits, going)
        if best is not None and (found is None or best[0] < found[0]):
            found = best
    return None if found is None else ledger.keeping(group, found[1])


def is_good(held: Held) -> bool:
    """Whether the kept cells are healthy."""
    return not any(spot.mask & spot.node.broken for spot in held.spots)


def fits_elsewhere(ledger: Ledger, held: Held, options: Sequence[Option], limits: Limits | None) -> bool:
    """Whether a group that cells are kept for could start right now, on others or with others; changes nothing."""
    with ledger.trial():
        ledger.release(held.group.name)
        ledger.settle(options)
        return any(_place(ledger, held.group, option, limits, ()) is not None for option in options)


def _may_end(held: Held) -> bool:
    return held.state is not State.PREEMPTING


def _expected(held: Held, ends: Ends) -> tuple[bool, float, int]:
    """Known ends first, then the order in which groups started."""
    end = ends(held.group.name)
    return end is None, 0.0 if end is None else end.timestamp(), held.serial


def _soonest(ledger: Ledger, group: Group, option: Option, limits: Limits | None, going: Sequence[Held]) -> Pick | None:
    """The place that opens when the fewest of ``going``, from the first on, have ended. Bisected: more opens more."""
    low, high = 0, len(going)
    best = _place(ledger, group, option, limits, going)
    if best is None:
        return None
    while low < high:
        middle = (low + high) // 2
        plan = _place(ledger, group, option, limits, going[:middle])
        if plan is None:
            low = middle + 1
        else:
            best, high = plan, middle
    return high, best


def _place(ledger: Ledger, group: Group, option: Option, limits: Limits | None, ended: Sequence[Held]) -> Plan | None:
    gone = set(ended)
    least = [member.pods if member.min_pods is None else member.min_pods for member in group.members]

    def spare(held: Held) -> bool:
        return held in gone or (held.priority < 0 and _may_end(held))

    return Planner(ledger.holding, group, parts_of(group, least), limits).look(option, spare)


class Fronts:
    """Who was first in each lane at the end of the last pass. Opportunistic groups have no lane to be first in."""

    def __init__(self, books: Books) -> None:
        self.books = books
        self._first: dict[Lane, Ticket] = {}

    def put(self, lane: Lane, front: Ticket) -> None:
        """The cells kept for this group were given up, so that it can start; keep them again if it does not."""
        self._first[lane] = front

    def overtaken_by(self, ticket: Ticket, chain: str) -> Iterator[tuple[Lane, Ticket]]:
        """The first of each lane that competes for cells of this chain, where it stands before ``ticket``."""
        return self._before(ticket.key, kind_at(ticket).key.lane, chain)

    def _before(self, key: Key, lane: Lane, chain: str) -> Iterator[tuple[Lane, Ticket]]:
        if chain not in self.books.ledger.chains:
            return  # it needs no cells
        types = ("", self.books.ledger.chains[chain].leaf_type)
        for other, front in self._first.items():
            same = other.vc == lane.vc and other.pinned_id == lane.pinned_id
            competes = same and (bool(lane.pinned_id) or other.leaf_type in types)
            if competes and front.line is not None and front.key < key:
                yield other, front

    def keep_before(self, ticket: Ticket, chain: str, answer: Pass, now: datetime) -> bool:
        """Whether cells had to be kept for another before this group may start; then it has to be asked again."""
        for _, front in list(self.overtaken_by(ticket, chain)):
            if self._is_due(front, now) and self._hold_back(front, answer):
                return True
        return False

    def must_wait(self, entry: Entry, lane: Lane, chain: str, now: datetime) -> bool:
        """Whether cells would be kept for another before this entry, in this lane, may start in a chain."""
        return any(self._is_due(front, now) for _, front in self._before(entry.key, lane, chain))

    def look(self, answer: Pass, now: datetime) -> None:
        """Who is first in each lane now, and whether that has been so for too long.

        In the order of the queue: who needs cells of several lanes has its turn in each of them before later ones.
        """
        self._first.clear()
        kept = {lane for claim in self.books.claims.values() if claim.held_back for lane in claim.lanes}
        for lane in self._lanes_in_order():
            kinds = self.books.index.lanes[lane]
            while lane not in kept and (kind := kinds.first()) is not None and self.books.index.is_answered(kind):
                front = kind.front()
                assert front is not None
                front.first_since = front.first_since or now
                if not self._is_due(front, now):
                    due = front.first_since + self.books.policy.patience.first_for
                    answer.look_again = min(due, answer.look_again or due)
                    self._first[lane] = front
                    break
                lanes = _lanes_of(front.entry)
                if not kept.isdisjoint(lanes):
                    self._first[lane] = front
                    kept.update(lanes)
                elif self._hold_back(front, answer):
                    kept.update(lanes)

    def _lanes_in_order(self) -> list[Lane]:
        """Lanes by their first group."""
        found = []
        for lane, kinds in self.books.index.lanes.items():
            kind = kinds.first()
            key = None if kind is None else kind.front_key()
            if key is not None:
                found.append((key, lane))
        return [lane for _, lane in sorted(found)]

    def _is_due(self, front: Ticket, now: datetime) -> bool:
        patience = self.books.policy.patience
        waited = front.first_since is not None and now - front.first_since >= patience.first_for
        return waited or front.overtaken >= patience.overtaken

    def _hold_back(self, front: Ticket, answer: Pass) -> bool:
        """Keep cells for the first of a lane, one group a lane; False when that is not possible.

        It counts under its caps from now on, so that no other entry takes its turn there either.
        """
        books, kind, entry = self.books, kind_at(front), front.entry
        lanes = _lanes_of(entry)
        kept = (lane for claim in books.claims.values() if claim.held_back for lane in claim.lanes)
        if kind.stuck or not set(lanes).isdisjoint(kept):
            return False
        if books.gates.stop(front):
            books.index.touch(kind)
            return False
        done: list[Receipt] = []
        for group in entry.groups:
            limits = (
                None if group.ignore_suggested else books.ledger.limits(books.decider.could_use(entry.led_by(group)))
            )
            options = check_group(books.ledger, group)
            keep = keep_cells(books.ledger, group, options, limits, books.ends)
            if keep is None:
                for receipt in reversed(done):
                    books.ledger.undo(receipt)
                kind.stuck = True
                books.stuck.append(kind)
                return False
            is_last = group is entry.groups[-1]
            done.append(books.ledger.apply(replace(keep, entry=entry) if is_last else keep))
        answer.held_back.append(entry.group.name)
        return True


def _lanes_of(entry: Entry) -> tuple[Lane, ...]:
    """The lanes in which an entry needs cells."""
    return tuple(dict.fromkeys(lane_of(group) for group in entry.groups))
