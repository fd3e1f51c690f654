"""Where a group stands in its queue, and reordering who waits, without ending anybody.

A group takes another's place and those between move on by one. Within one user's groups nobody else is touched: they
exchange places among themselves. An administrator may move a group past anybody of its virtual cluster and priority.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from enum import StrEnum
from typing import NoReturn

from pai_backend.model.errors import Fault, Forbidden, InvalidParameters
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


class Side(StrEnum):
    """Where to go."""

    BEFORE = "before"
    BEHIND = "behind"


def move(books: Books, name: str, side: Side, other: str, *, user: str | None) -> dict[str, int]:
    """Move a waiting group before or behind another; answers the new order numbers, to be stored.

    ``user`` is who asks; None stands for an administrator. Raises Forbidden for a group of somebody else, and
    InvalidParameters when one of them does not wait, or they differ in virtual cluster or priority.
    """
    tickets = [_waiting(books, each) for each in (name, other)]
    mine, theirs = (ticket.entry for ticket in tickets)
    if user is not None and (mine.user != user or theirs.user != user):
        raise Forbidden("you may reorder your own groups only", hint="Ask an administrator to move others.")
    if mine.group.priority != theirs.group.priority or mine.group.vc != theirs.group.vc:
        _refuse(f"{name} and {other} are not in the same queue", "Name one of its virtual cluster and priority.")
    if name == other:
        return {}
    pool = _pool(books, tickets[0], user)
    old = [ticket.entry.order for ticket in pool]
    if len(set(old)) < len(old):
        _refuse("order numbers are not unique", "Give each group a number of its own.")
    pool.remove(tickets[0])
    pool.insert(pool.index(tickets[1]) + (side is Side.BEHIND), tickets[0])
    changed = {t.entry.group.name: (t, order) for t, order in zip(pool, old, strict=True) if t.entry.order != order}
    for ticket, _ in changed.values():
        books.leave(ticket)
    for ticket, order in changed.values():
        ticket.entry = replace(ticket.entry, order=order)
        ticket.key = ticket.entry.key
        books.enter(ticket)
    return {group: order for group, (_, order) in changed.items()}


def _waiting(books: Books, name: str) -> Ticket:
    ticket = books.waiting.get(name)
    if ticket is None:
        why = "has GPUs kept for it already" if name in books.claims else "does not wait"
        _refuse(f"group {name} {why}", "Name a group that waits.")
    return ticket


def _pool(books: Books, ticket: Ticket, user: str | None) -> list[Ticket]:
    """Who may change places, in order."""
    group = ticket.entry.group
    found = [
        each
        for each in books.waiting.values()
        if (each.entry.group.vc, each.entry.group.priority) == (group.vc, group.priority)
        and (user is None or each.entry.user == user)
    ]
    return sorted(found, key=lambda each: each.key)


def _refuse(message: str, hint: str) -> NoReturn:
    raise InvalidParameters(message, errors=[Fault(path="$.name", message=message, hint=hint)], hint=hint)
