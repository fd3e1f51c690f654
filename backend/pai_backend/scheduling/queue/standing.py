"""Where a group stands in the queue of its virtual cluster; opportunistic groups of all of them stand in one queue."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import nsmallest

from pai_backend.scheduling.queue.books import Books
from pai_backend.scheduling.queue.entry import Entry, Ticket, kind_of
from pai_backend.scheduling.queue.kind import Kind


def standing(books: Books, entry: Entry) -> tuple[int, int]:
    """Its place, from 1, and how many wait there, itself included. Costs as much as there are kinds and users."""
    claims = [claim.ticket for claim in books.claims.values() if _same(claim.ticket.entry, entry)]
    before = sum(ticket.key < entry.key for ticket in claims)
    total = len(claims)
    for kind in _kinds(books, entry):
        before += kind.ahead(entry.key)
        total += kind.count()
    return before + 1, total


def first_waiting(books: Books, entry: Entry, most: int) -> list[Ticket]:
    """The first of the same queue that have no cells kept for them, in order; parked ones left out."""
    heads = (
        ticket
        for kind in _kinds(books, entry)
        for variant in kind.variants.values()
        for line in variant.lines.values()
        if line.parked is None
        for ticket in line.tickets[:most]
    )
    return nsmallest(most, heads, key=lambda ticket: ticket.key)


def _kinds(books: Books, entry: Entry) -> Iterator[Kind]:
    vc = kind_of(entry.group).lane.vc
    return (kind for kind in books.index.kinds.values() if kind.key.lane.vc == vc)


def _same(one: Entry, other: Entry) -> bool:
    return kind_of(one.group).lane.vc == kind_of(other.group).lane.vc
