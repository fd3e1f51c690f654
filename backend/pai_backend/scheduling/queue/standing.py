"""Where a group stands in the queue of its virtual cluster; opportunistic groups of all of them stand in one queue."""

from __future__ import annotations

from bisect import bisect_left

from pai_backend.scheduling.queue.books import Books
from pai_backend.scheduling.queue.entry import Entry, line_of
from pai_backend.scheduling.queue.kind import Ticket


def standing(books: Books, entry: Entry) -> tuple[int, int]:
    """Its place, from 1, and how many wait there, itself included."""
    line = line_of(entry.group)
    keys = books.order.get(line, [])
    claims = [claim.ticket.key for claim in books.claims.values() if line_of(claim.ticket.entry.group) == line]
    return bisect_left(keys, entry.key) + sum(key < entry.key for key in claims) + 1, len(keys) + len(claims)


def first_waiting(books: Books, entry: Entry, most: int) -> list[Ticket]:
    """Who of the first in the same queue waits for cells: not for a cap, and with none kept for them; in order."""
    tickets = [books.waiting[name] for *_, name in books.order.get(line_of(entry.group), [])[:most]]
    return [ticket for ticket in tickets if ticket.line is not None and ticket.line.parked is None]
