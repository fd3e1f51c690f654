"""A reservation: GPUs of a virtual cluster that are booked for a time. Pure values.

In code it is a booking: the scheduler reserves places for preemptors, too, which is another thing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from pai_backend.model.account import Directory
from pai_backend.model.ids import JobUid


@dataclass(frozen=True)
class Booking:
    """``gpus`` GPUs of ``vc`` from ``begins`` to ``ends``, for ``users`` and members of ``groups``; neither: for all.

    ``gpu_type`` "" is any one type. With ``one_node`` all lie in one node. ``stops`` are jobs that ran when it was made
    and are stopped when it begins.
    """

    id: str
    vc: str
    name: str
    gpus: int
    begins: datetime
    ends: datetime
    gpu_type: str = ""
    one_node: bool = False
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    stops: frozenset[JobUid] = frozenset()
    made_at: datetime | None = None
    made_by: str = ""
    members: frozenset[str] | None = None
    """All whose jobs may use it, groups looked up; None: all who may use the virtual cluster."""

    @property
    def whom(self) -> str:
        """Whom it is for, in words; empty: all of the virtual cluster."""
        return ", ".join((*self.users, *(f"group {group}" for group in self.groups)))

    def admits(self, user: str, vc: str) -> bool:
        """Whether a job of the user in the virtual cluster may use it."""
        return vc == self.vc and (self.members is None or user in self.members)

    def with_members(self, directory: Directory) -> Booking:
        """The same, with the members that the groups have now. A group that is gone has none."""
        if not self.users and not self.groups:
            return self
        found = (group.members for name in self.groups if (group := directory.groups.get(name)) is not None)
        return replace(self, members=frozenset(self.users).union(*found))


def in_force(bookings: Iterable[Booking], directory: Directory, now: datetime) -> tuple[Booking, ...]:
    """Those that are not over, with the members that their groups have now."""
    return tuple(each.with_members(directory) for each in bookings if each.ends > now)
