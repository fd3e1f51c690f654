"""What waits: a group with its owner and its place in the order."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import NamedTuple

from pai_backend.scheduling.request import OPPORTUNISTIC, Group

Key = tuple[int, int, str, str]
"""Order of the queue: highest priority, then earliest submission; of one number by :attr:`Entry.tie`, then by name."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What waits or runs as one. ``order`` is its submission number: within a priority the lower one goes first.

    ``needs`` stands for everything but cells that it asks of nodes (CPU, memory, ports, selectors): entries with equal
    needs can use the same nodes. ``others`` are groups that start together with ``group`` or not at all, and ``loose``
    is how many tasks without cells belong to it; where nothing needs cells, ``group`` has no members.
    """

    group: Group
    user: str
    order: int
    needs: Hashable = None
    others: tuple[Group, ...] = ()
    loose: int = 0
    tie: str = ""
    """Orders entries with the same number."""
    account: str = ""
    """The virtual cluster under whose caps it counts; the group's own when empty."""

    @property
    def key(self) -> Key:
        """Where it stands: a smaller key is served first."""
        return (-self.group.priority, self.order, self.tie, self.group.name)

    @property
    def vc(self) -> str:
        """The virtual cluster under whose caps it counts."""
        return self.account or self.group.vc

    @property
    def groups(self) -> tuple[Group, ...]:
        """All its groups of cells."""
        return (self.group, *self.others) if self.group.members else self.others

    @property
    def pods(self) -> int:
        """Tasks when fully grown, those without cells included."""
        return self.loose + sum(group.pods for group in self.groups)

    @property
    def leaves(self) -> int:
        """Leaf cells when fully grown."""
        return sum(group.leaves for group in self.groups)

    def led_by(self, group: Group) -> Entry:
        """The same, told by another one of its groups."""
        if group is self.group:
            return self
        return replace(self, group=group, others=tuple(each for each in self.groups if each is not group))


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
    others: tuple[KindKey, ...] = ()
    """Of the groups that start together with it."""
    spread: bool = False


def line_of(group: Group) -> str:
    """The queue a group stands in: its virtual cluster's; "" for opportunistic groups, which stand in one together."""
    return "" if group.priority == OPPORTUNISTIC else group.vc


def kind_of(group: Group, others: tuple[Group, ...] = ()) -> KindKey:
    """The kind that a group belongs to, and those that start together with it."""
    shape = tuple(
        (member.pods if member.min_pods is None else member.min_pods, member.leaves, member.within)
        for member in group.members
    )
    lane = lane_of(group)
    return KindKey(lane, group.priority, group.within, shape, tuple(kind_of(other) for other in others), group.spread)


def lane_of(group: Group) -> Lane:
    """The lane that a group stands in."""
    return Lane(line_of(group), group.leaf_type, group.pinned_id)
