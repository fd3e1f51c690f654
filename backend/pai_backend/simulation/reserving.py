"""Reservations of a trace, as the queue knows them."""

from __future__ import annotations

from pai_backend.model.booking import Booking
from pai_backend.scheduling.queue.booked import Booked
from pai_backend.simulation.moments import date
from pai_backend.simulation.trace import Reservation


def booked(made: Reservation) -> Booked:
    """The reservation, in leaf cells."""
    booking = Booking(
        f"{made.name}@{made.at}",
        made.vc,
        made.name,
        made.gpus,
        date(made.begins),
        date(made.ends),
        gpu_type=made.type,
        one_node=made.one_node,
        users=made.users,
        made_at=date(made.at),
        members=frozenset(made.users) if made.users else None,
    )
    return Booked(booking, made.vc, made.gpus)
