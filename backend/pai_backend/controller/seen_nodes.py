"""Nodes as placing is to see them: as the engine tells, less what they refused of late.

A node that refuses a task has less room than was known: what is not of this backend holds it, and the controller may
not see that, or not yet. So others are taken to hold as much as explains the refusal, one unit more than would have
left room. That keeps what asks for as much away from it and lets smaller tasks through, and what was refused goes
elsewhere at once. After a while, or when the engine tells of a change of the node, it is tried again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from pai_backend.lifecycle.events import JobEvent, TaskExited
from pai_backend.lifecycle.retry import REFUSED
from pai_backend.model.node import Node, Others
from pai_backend.scheduling.core.room import Free
from pai_backend.scheduling.jobs.placer import Placer
from pai_backend.scheduling.request import Need

FIRST, LONGEST = timedelta(seconds=10), timedelta(seconds=900)
"""How long a refusal stands: doubling. At first not for long, since kubelets count what has just ended there, too."""

FORGOTTEN_AFTER: Final = LONGEST
"""A refusal that ended so long ago says nothing of the next one."""


@dataclass(frozen=True)
class _Refusal:
    """What others are taken to hold of a node until a time, for the so-manyth time in a row."""

    others: Others
    until: datetime
    times: int
    stands: bool = True
    """Whether the node was not shown as the engine tells of it since."""


class SeenNodes:
    """Tells the placer of nodes, and remembers what they refused."""

    def __init__(self, placer: Placer, clock: Callable[[], datetime]) -> None:
        self._placer = placer
        self._clock = clock
        self._nodes: dict[str, Node] = {}
        self._refusals: dict[str, _Refusal] = {}

    @property
    def wake(self) -> datetime | None:
        """When a node is to be tried again."""
        return min((each.until for each in self._refusals.values() if each.stands), default=None)

    def take(self, nodes: Mapping[str, Node | None]) -> None:
        """Take over what the engine tells of nodes; None of one that is gone."""
        for name, node in nodes.items():
            if node is None or node != self._nodes.get(name):
                self._refusals.pop(name, None)
            if node is None:
                self._nodes.pop(name, None)
                self._placer.remove_node(name)
            else:
                self._nodes[name] = node
                self._show(node)

    def hear(self, news: Iterable[JobEvent]) -> None:
        """Remember what nodes refused, as long as the tasks still hold their places."""
        for event in news:
            held = self._placer.room.held(event.uid) if isinstance(event, TaskExited) else None
            if isinstance(event, TaskExited) and event.exit.reason == REFUSED and held is not None:
                self._refused(self._nodes.get(held[0]), held[1])

    def try_again(self) -> None:
        """Show nodes as the engine tells of them whose refusals are old."""
        now = self._clock()
        for name, refusal in self._refusals.items():
            if refusal.stands and refusal.until <= now:
                self._refusals[name] = replace(refusal, stands=False)
                self._show(self._nodes[name])

    def _refused(self, node: Node | None, need: Need) -> None:
        if node is None:
            return
        now, before = self._clock(), self._refusals.get(node.name)
        others = inferred(
            node, need, self._placer.room.used(node.name, need.gpu_type if is_apart(node, need) else None)
        )
        if before is not None and before.stands:  # another task of the same gang, or one that was under way
            refusal = _Refusal(most(before.others, others), before.until, before.times)
        else:
            recent = before is not None and now - before.until < FORGOTTEN_AFTER
            times = before.times + 1 if before is not None and recent else 0
            lasts = min(FIRST * 2 ** min(times, 16), LONGEST)
            refusal = _Refusal(others, now + lasts, times)
        self._refusals[node.name] = refusal
        self._show(node)

    def _show(self, node: Node) -> None:
        refusal = self._refusals.get(node.name)
        if refusal is not None and refusal.stands:
            node = node.model_copy(update={"others": most(node.others, refusal.others)})
        self._placer.set_node(node)


def is_apart(node: Node, need: Need) -> bool:
    """Whether GPUs of the node are counted by type for this task: it has several, and the task asks for one of them."""
    types = {gpu.type for gpu in node.gpus}
    return len(types) > 1 and need.gpu_type in types


def inferred(node: Node, need: Need, used: Free) -> Others:
    """The least that others hold where a task of this need, one of those that use so much together, was refused.

    Of a task with GPUs it was most likely GPUs that were missing, else CPUs.
    """
    if need.gpus:
        types = Counter(gpu.type for gpu in node.gpus)
        there = types[need.gpu_type] if is_apart(node, need) else len(node.gpus)
        gpus = max(0, min(there, there - used[2] + 1))
        by_type = {**dict.fromkeys(types, 0), need.gpu_type: gpus} if is_apart(node, need) else {}
        return Others(gpus=gpus, by_type=by_type)
    return Others(cpus=max(0, min(node.cpus, node.cpus - used[0] + 1)))


def most(one: Others, other: Others) -> Others:
    """At least as much as either."""
    types = {*one.by_type, *other.by_type}
    return Others(
        cpus=max(one.cpus, other.cpus),
        memory_mb=max(one.memory_mb, other.memory_mb),
        gpus=max(one.gpus, other.gpus),
        by_type={name: max(one.by_type.get(name, 0), other.by_type.get(name, 0)) for name in types},
    )
