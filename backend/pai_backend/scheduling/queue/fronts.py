"""The first group of each lane: how long it has been passed over, and keeping cells for it when that is too long."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from pai_backend.scheduling.core.ledger import Receipt
from pai_backend.scheduling.core.options import check_group
from pai_backend.scheduling.queue.answer import Pass
from pai_backend.scheduling.queue.books import Books
from pai_backend.scheduling.queue.entry import Entry, Key, Lane, lane_of
from pai_backend.scheduling.queue.holdback import keep_cells
from pai_backend.scheduling.queue.index import kind_at
from pai_backend.scheduling.queue.kind import Claim, Ticket


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
        """Whether cells had to be kept for somebody before this group may start; then it has to be asked again."""
        for _, front in list(self.overtaken_by(ticket, chain)):
            if self._is_due(front, now) and self._hold_back(front, answer):
                return True
        return False

    def must_wait(self, entry: Entry, lane: Lane, chain: str, now: datetime) -> bool:
        """Whether cells would be kept for somebody before this entry, in this lane, may start in a chain."""
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

        It counts under its caps from now on, so that nobody takes its turn there either.
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
            done.append(books.ledger.apply(keep))
        claim = Claim(front, lanes, list(kind.options), kind.least, held_back=True)
        books.leave(front)
        books.gates.usage.add(entry)
        books.claims[entry.group.name] = claim
        answer.held_back.append(entry.group.name)
        return True


def _lanes_of(entry: Entry) -> tuple[Lane, ...]:
    """The lanes in which an entry needs cells."""
    return tuple(dict.fromkeys(lane_of(group) for group in entry.groups))
