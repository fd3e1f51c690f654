"""Can these GPUs be reserved? Asked of copies of the cluster, before a reservation is written. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pai_backend.model.booking import Booking
from pai_backend.model.ids import JobUid
from pai_backend.scheduling.core.trees import check_group
from pai_backend.scheduling.jobs.placer import Placer


@dataclass(frozen=True)
class OwnedGpus:
    """GPUs of one kind that a virtual cluster owns, and its other reservations of that time."""

    gpus: int
    others: tuple[Booking, ...]


def unowned(empty: Placer, new: Booking, others: Sequence[Booking], now: datetime) -> OwnedGpus | None:
    """Why the virtual cluster does not own as much, other reservations included; None: it does.

    ``empty`` is the cluster with no job. Raises InvalidParameters for a type of GPU that there is not.
    """
    booked = empty.sizing.booked(new)
    options = check_group(empty.ledger, booked.group(booked.leaves))
    empty.book([*others, new])
    if options and empty.queue.bookings.short(now, new.id) is None:
        return None
    owned = (sum(size * count for size, count in option.quotas.sizes.items()) for option in options if option.quotas)
    each = max(1, new.gpus // booked.leaves)
    at_once = tuple(each for each in others if _meet(each, new) and each.vc == new.vc)
    return OwnedGpus(max(owned, default=0) * each, at_once)


def in_the_way(running: Placer, new: Booking, others: Sequence[Booking], now: datetime) -> tuple[JobUid, ...]:
    """Jobs that run, and have to end for the reservation when it begins; of those that will do, the latest."""

    def fits(stops: Sequence[JobUid]) -> bool:
        running.book([*others, replace(new, stops=frozenset(stops))])
        return running.queue.bookings.short(now, new.id) is None

    if fits(()):
        return ()
    booked = running.sizing.booked(new)
    last = sorted(
        (entry for name, entry in running.queue.running.items() if booked.could_use(entry)),
        key=lambda entry: entry.order,
        reverse=True,
    )
    stops: list[JobUid] = []
    for uid in dict.fromkeys(running.units.by_name[entry.group.name].job for entry in last):
        stops.append(uid)
        if fits(stops):
            break
    for uid in [*stops]:
        fewer = [each for each in stops if each != uid]
        if fits(fewer):
            stops = fewer
    return tuple(stops)


def _meet(one: Booking, other: Booking) -> bool:
    return one.begins < other.ends and other.begins < one.ends
