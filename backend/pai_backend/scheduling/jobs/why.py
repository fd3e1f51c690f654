"""Why does a job wait? What the placer knows, told by :mod:`pai_backend.scheduling.explain`. Pure; changes nothing.

The job's groups are put into a queue of their own in front of the placer's cells, inside a trial that is undone. Those
that could start are started there, as one gang would be; the first that cannot is explained.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from pai_backend.model.errors import PaiError
from pai_backend.model.job import Job, Task
from pai_backend.model.node import Node
from pai_backend.model.waiting import Holder, Lack, LackOf, Waiting
from pai_backend.scheduling.cells.held import State
from pai_backend.scheduling.core.cluster import Cluster
from pai_backend.scheduling.core.group import Bound, PodPlace
from pai_backend.scheduling.explain import LANGUAGES, explain, tell
from pai_backend.scheduling.jobs.demand import Ask, Party, wish_of
from pai_backend.scheduling.jobs.linear import Allows
from pai_backend.scheduling.jobs.placer import Placer, anywhere
from pai_backend.scheduling.queue import Entry, Queue

MOST_PARTIES = 64
"""Groups of a job that are looked at: an incremental job has one for each task."""
MOST_NODES = 20
"""Nodes of which is said what they lack."""


def why(
    placer: Placer,
    job: Job,
    tasks: Iterable[Task],
    now: datetime,
    *,
    position: int = 0,
    waiting: int = 0,
    allows: Allows = anywhere,
) -> Waiting | None:
    """Why these waiting tasks of a job have no place; None when GPUs are not what they wait for.

    ``position`` and ``waiting`` tell where the job stands in its queue. Costs what one explanation costs, and at most
    :data:`MOST_PARTIES` decisions more.
    """
    parties = [party for party in wish_of(job, tasks, placer.sizing).parties if not _runs(placer.cluster, party)]
    parties = parties[:MOST_PARTIES]
    if not parties:
        return None
    asks = _Asks(placer, parties, allows)
    entries = [Entry(party.group, job.user, number) for number, party in enumerate(parties)]
    with placer.cluster.trial() as trial:
        try:
            found = _first_stuck(_Alone(trial, asks), entries, now, asks)
        except PaiError:
            return None  # it names what the configuration does not have, which the job's own sentence says
    if found is None:
        return None
    found = found.model_copy(update={"position": position, "waiting": waiting})
    return found.model_copy(update={"texts": {language: tell(found, language) for language in LANGUAGES}})


def _first_stuck(queue: Queue, entries: Sequence[Entry], now: datetime, asks: _Asks) -> Waiting | None:
    """The explanation of the first group that cannot start beside those that can. Changes the cluster."""
    for entry in entries:
        queue.cluster.release(entry.group.name)  # a place that is kept for it is kept again by the queue's own decision
        queue.add(entry)
    while queue.advance(now).more:
        pass
    stuck = next((entry for entry in entries if entry.group.name not in queue.running), None)
    if stuck is None:
        return None
    vcs = tuple(queue.cluster.config.virtual_clusters)
    found = explain(queue, stuck.group.name, now, vcs=vcs, lacks=asks.lacks)
    return found.model_copy(update={"holders": tuple(_owned(holder) for holder in found.holders)})


def _owned(holder: Holder) -> Holder:
    """A holder with its user, which a job's group has in its name."""
    user, tilde, _ = holder.group.partition("~")
    return holder.model_copy(update={"user": user}) if tilde and not holder.user else holder


def _runs(cluster: Cluster, party: Party) -> bool:
    """Whether the group has its place already, because others of its job wait."""
    held = cluster.groups.get(party.name)
    return held is not None and held.state is not State.PREEMPTING


class _Asks:
    """What the groups need of nodes besides cells, as a queue asks for it."""

    def __init__(self, placer: Placer, parties: Sequence[Party], allows: Allows) -> None:
        self._room = placer.room
        self._allows = allows
        self._asks: Mapping[str, tuple[Ask, ...]] = {party.name: _kinds(party) for party in parties}

    def having(self, entry: Entry) -> Collection[str]:
        """Nodes that have room now for at least one of the group's tasks."""
        return self._suited(entry, [self._room.having(ask) for ask in self._asks[entry.group.name]])

    def large_enough(self, entry: Entry) -> Collection[str]:
        """Nodes that would have room if nothing ran there."""
        return self._suited(entry, [self._room.large_enough(ask) for ask in self._asks[entry.group.name]])

    def _suited(self, entry: Entry, found: Sequence[frozenset[str]]) -> frozenset[str]:
        return frozenset(
            name
            for ask, names in zip(self._asks[entry.group.name], found, strict=True)
            for name in names
            if self._allows(self._room.nodes[name], ask)
        )

    def lacks(self, entry: Entry) -> list[Lack]:
        """What each node that is not suited lacks for the group's largest task."""
        suited, ask = self.having(entry), self._asks[entry.group.name][0]
        nodes = (node for node in self._room.nodes.values() if node.gpus and node.ready and node.name not in suited)
        return [self._lack(node, ask) for node, _ in zip(nodes, range(MOST_NODES), strict=False)]

    def _lack(self, node: Node, ask: Ask) -> Lack:
        objection = ask.terms.objection(node)
        if objection is not None:
            return Lack(node=node.name, what=objection.what, detail=objection.detail)
        cpus, memory_mb = self._room.free(node.name)
        if cpus < ask.cpus:
            return Lack(node=node.name, what=LackOf.CPU, needed=ask.cpus, available=max(cpus, 0))
        if memory_mb < ask.memory_mb:
            return Lack(node=node.name, what=LackOf.MEMORY, needed=ask.memory_mb, available=max(memory_mb, 0))
        taken = (
            port
            for port, label in ask.fixed_ports
            if not self._allows(node, replace(ask, fixed_ports=((port, label),)))
        )
        return Lack(node=node.name, what=LackOf.PORT, needed=next(taken, 0))

    def have_room(self, entry: Entry, places: Iterable[PodPlace]) -> bool:
        """Whether tasks at these places have CPU and memory there together; each counts as the group's largest."""
        ask, counts = self._asks[entry.group.name][0], Counter(place.node for place in places)
        return all(self._room.that_fit(name, [ask] * count) == count for name, count in counts.items())


class _Alone(Queue):
    """A queue of one job's groups. What would start in it has CPU and memory, too.

    A suited node has room for one task, but cells may put several there.
    """

    def __init__(self, cluster: Cluster, asks: _Asks) -> None:
        super().__init__(cluster, suggest=asks.having, could_use=asks.large_enough)
        self._asks = asks

    def would_start(self, entry: Entry, now: datetime) -> bool:
        """As of every queue, and that the tasks fit on their nodes together."""
        if not super().would_start(entry, now):
            return False
        decision = self.cluster.try_place(entry.group, self.decider.suggest(entry))
        return isinstance(decision, Bound) and self._asks.have_room(entry, decision.placement.pods)


def _kinds(party: Party) -> tuple[Ask, ...]:
    """One task for each kind of needs, the largest first."""
    kinds = {ask.kind: ask for ask in party.asks}
    return tuple(sorted(kinds.values(), key=lambda ask: (-ask.cpus, -ask.memory_mb, ask.uid)))
