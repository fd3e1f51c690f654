"""What waits: a group with its owner and its place in the order."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from pai_backend.scheduling.core.group import OPPORTUNISTIC, Group

if TYPE_CHECKING:
    from pai_backend.scheduling.queue.kind import Line

Key = tuple[int, int, str]
"""Order of the queue: highest priority, then earliest submission, then name."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A group that waits or runs. ``order`` is its submission number: within a priority the lower one goes first.

    Numbers are unique. ``needs`` stands for everything but cells that the group asks of a node (CPU, memory, ports,
    selectors): entries with equal needs can use the same nodes.
    """

    group: Group
    user: str
    order: int
    needs: Hashable = None

    @property
    def key(self) -> Key:
        """Where it stands: a smaller key is served first."""
        return (-self.group.priority, self.order, self.group.name)


class Lane(NamedTuple):
    """Who competes for the same cells, and the line in which a group can be first.

    ``vc`` is empty for opportunistic groups, which compete with those of all virtual clusters.
    """

    vc: str
    leaf_type: str
    pinned_id: str


class KindKey(NamedTuple):
    """Groups with the same key find a place together or not at all, as far as cells go."""

    lane: Lane
    priority: int
    within: str
    shape: tuple[tuple[int, int, str], ...]
    """Per member: the fewest pods it starts with, leaves of a pod, the cell type that must contain them."""


def line_of(group: Group) -> str:
    """The queue a group stands in: its virtual cluster's; "" for opportunistic groups, which stand in one together."""
    return "" if group.priority == OPPORTUNISTIC else group.vc


def kind_of(group: Group) -> KindKey:
    """The kind a group belongs to."""
    shape = tuple(
        (member.pods if member.min_pods is None else member.min_pods, member.leaves, member.within)
        for member in group.members
    )
    return KindKey(Lane(line_of(group), group.leaf_type, group.pinned_id), group.priority, group.within, shape)


@dataclass(slots=True, eq=False)
class Ticket:
    """A waiting entry inside the queue, with what happened to it while it was first in its lane."""

    entry: Entry
    key: Key
    line: Line | None = None
    overtaken: int = 0
    """How many later groups started in its lane while it was first there."""
    first_since: datetime | None = field(default=None)
    """Since when it has been first; None when it is not."""
