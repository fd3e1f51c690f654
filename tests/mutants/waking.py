"""Queues that forget to wake a waiting job, which the law of waking must reject: (class, attribute, wrong function)."""

from __future__ import annotations

from collections.abc import Collection

from pai_backend.scheduling.jobs.deciding import JobsDecider
from pai_backend.scheduling.queue import Entry, Queue
from pai_backend.scheduling.queue.kind import Kind, Ticket, Variant

_retry, _may_profit = Kind.retry, JobsDecider.may_profit


def _remembers_the_first(self: Kind, variant: Variant, nodes: frozenset[str] | None) -> None:
    """Nodes that change while it is awake are not added to those that woke it."""
    if variant.asleep:
        _retry(self, variant, nodes)


def _only_idle(self: JobsDecider, entry: Entry, nodes: Collection[str]) -> bool:
    """Of a gang only the first task counts, and only if it is alone on its node."""
    room = self._room
    return _may_profit(self, entry, nodes) and any(room.free(name)[0] == room.nodes[name].cpus for name in nodes)


def _taken_for_good(self: Queue, ticket: Ticket) -> bool:
    """Whoever was woken by a node is taken for one that others came before."""
    assert ticket.line is not None
    return ticket.line.variant.woken_by is not None


MUTANTS: list[tuple[type, str, object]] = [
    (Kind, "retry", _remembers_the_first),
    (JobsDecider, "may_profit", _only_idle),
    (Queue, "_was_taken", _taken_for_good),
]
