"""The replay: arrivals, ends and evictions in order of time, and after each instant what the queue decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from heapq import heappop, heappush

from pai_backend.model.errors import DocumentError, Fault, PaiError
from pai_backend.model.waiting import Waiting
from pai_backend.scheduling.config.model import ClusterConfig
from pai_backend.scheduling.core.cluster import Cluster
from pai_backend.scheduling.core.group import Group, Placement
from pai_backend.scheduling.explain import explain
from pai_backend.scheduling.queue import Entry, Preempting, Queue, Started
from pai_backend.scheduling.simulate.meter import Meter
from pai_backend.scheduling.simulate.report import Fate, Report, report
from pai_backend.scheduling.simulate.trace import Arrival

BEGINNING = datetime(2000, 1, 1, tzinfo=UTC)
"""Second 0 of every trace: the queue wants times, and any will do."""


def replay(config: ClusterConfig, arrivals: Sequence[Arrival], *, grace_s: float = 0.0) -> Report:
    """Play a trace on a cluster that is empty and stays healthy.

    A group that is ended for another waits again, where it stood, and runs its whole duration anew; it holds its
    place for ``grace_s`` more. Groups that could not start even in the empty cluster are refused, as on submission.
    The same input gives the same report. Costs a few decisions for each arrival and end.

    Raises DocumentError for arrivals that name what the configuration does not have, and for a trace that would take
    longer than there are dates for.
    """
    entries = [Entry(arrival.group, arrival.user, order) for order, arrival in enumerate(arrivals)]
    refused = _refusals(config, entries)
    replayed = _Replay(config, arrivals, grace_s)
    for arrival, entry in zip(arrivals, entries, strict=True):
        if entry.group.name not in refused:
            replayed.expect(arrival, entry)
    try:
        replayed.run()
    except OverflowError as error:
        hint = "Make runs shorter, or the cluster larger."
        raise DocumentError("the trace would take thousands of years", hint=hint) from error
    return report(replayed.meter, [replayed.fate(arrival) for arrival in arrivals], list(refused.values()))


def _refusals(config: ClusterConfig, entries: Sequence[Entry]) -> dict[str, Waiting]:
    """Groups for which the empty cluster has no place, and why. Groups that are equal but for their names ask once."""
    found: dict[str, Waiting] = {}
    known: dict[Group, Waiting | None] = {}
    faults: list[Fault] = []
    for entry in entries:
        shape = replace(entry.group, name="")
        if shape not in known:
            try:
                known[shape] = _refusal(config, entry)
            except PaiError as error:
                message = f"group {entry.group.name}: {error.message}"
                faults.append(Fault(path="$.name", message=message, hint=error.hint))
                known[shape] = None
        waiting = known[shape]
        if waiting is not None:
            found[entry.group.name] = waiting.model_copy(update={"group": entry.group.name})
    if faults:
        raise DocumentError(f"the trace does not fit the configuration: {faults[0].message}", errors=faults)
    return found


def _refusal(config: ClusterConfig, entry: Entry) -> Waiting | None:
    queue = Queue(Cluster(config))
    queue.add(entry)
    if queue.advance(BEGINNING).started:
        return None
    return explain(queue, entry.group.name, BEGINNING, vcs=tuple(config.virtual_clusters))


class _Kind(IntEnum):
    """What happens; of one instant in this order, so that what ends makes room for what comes."""

    END = 0
    EVICTION = 1
    ARRIVAL = 2
    LOOK = 3


@dataclass(slots=True)
class _Life:
    """A group on its way. ``run`` counts its starts: news of an earlier run is void."""

    arrival: Arrival
    entry: Entry
    run: int = 0
    placement: Placement | None = None
    first_start: datetime | None = None
    last_start: datetime | None = None
    ended: datetime | None = None
    preempted: int = 0
    displaced: int = 0
    lost_s: float = 0.0


class _Replay:
    """One simulation."""

    def __init__(self, config: ClusterConfig, arrivals: Sequence[Arrival], grace_s: float) -> None:
        cluster = Cluster(config)
        sizes = {name: sum(len(node.indexes) for node in nodes) for name, nodes in cluster.nodes.items()}
        self.queue = Queue(cluster)
        self.meter = Meter(sizes, tuple(config.virtual_clusters), min((each.at for each in arrivals), default=0.0))
        self._grace = timedelta(seconds=grace_s)
        self._lives: dict[str, _Life] = {}
        self._coming: list[tuple[datetime, _Kind, int, str, int]] = []
        """Heap of (when, what, number, group, its run); the number keeps the order in which they were foreseen."""
        self._number = 0
        self._look: datetime | None = None

    def expect(self, arrival: Arrival, entry: Entry) -> None:
        """The group will arrive."""
        self._lives[arrival.name] = _Life(arrival, entry)
        self._foresee(BEGINNING + timedelta(seconds=arrival.at), _Kind.ARRIVAL, arrival.name)

    def run(self) -> None:
        """Until nothing is left that will happen."""
        while self._coming:
            now = self._coming[0][0]
            self.meter.pass_until(_seconds(now))
            while self._coming and self._coming[0][0] == now:
                _, kind, _, name, run = heappop(self._coming)
                if kind is not _Kind.LOOK:
                    self._happen(kind, self._lives[name], run, now)
            self._decide(now)
            self.meter.mark()

    def fate(self, arrival: Arrival) -> Fate:
        """What became of a group."""
        life = self._lives.get(arrival.name)
        return Fate(
            name=arrival.name,
            vc=arrival.vc,
            gpus=arrival.group.leaves,
            arrived_s=arrival.at,
            duration_s=arrival.duration,
            started_s=None if life is None or life.first_start is None else _seconds(life.first_start),
            ended_s=None if life is None or life.ended is None else _seconds(life.ended),
            preempted=0 if life is None else life.preempted,
            displaced=0 if life is None else life.displaced,
            lost_s=0.0 if life is None else life.lost_s,
        )

    def _foresee(self, at: datetime, kind: _Kind, name: str = "", run: int = 0) -> None:
        self._number += 1
        heappush(self._coming, (at, kind, self._number, name, run))

    def _happen(self, kind: _Kind, life: _Life, run: int, now: datetime) -> None:
        name = life.arrival.name
        if kind is _Kind.ARRIVAL:
            self.queue.add(life.entry)
            self.meter.waiting += life.entry.group.leaves
        elif run == life.run and life.placement is not None:
            self.meter.end(life.placement)
            life.placement = None
            if kind is _Kind.END:
                life.ended = now
                self.queue.release(name)
                return
            assert life.last_start is not None
            life.preempted += 1
            life.lost_s += (now - life.last_start).total_seconds()
            self.queue.put_back(name)
            self.meter.waiting += life.entry.group.leaves

    def _decide(self, now: datetime) -> None:
        """Let the queue decide all that it can at this instant."""
        more = True
        while more:
            answer = self.queue.advance(now)
            for decision in answer.decided:
                for name in decision.displaced:
                    self._lives[name].displaced += 1
                if isinstance(decision, Started):
                    self._start(decision, now)
                else:
                    self._evict(decision, now)
            more = answer.more
            if answer.look_again is not None and (
                self._look is None or self._look <= now or answer.look_again < self._look
            ):
                self._look = answer.look_again
                self._foresee(answer.look_again, _Kind.LOOK)

    def _start(self, decision: Started, now: datetime) -> None:
        life = self._lives[decision.entry.group.name]
        life.run += 1
        life.placement = decision.placement
        life.first_start = life.first_start or now
        life.last_start = now
        self.meter.waiting -= life.entry.group.leaves
        self.meter.start(decision.placement)
        self._foresee(now + timedelta(seconds=life.arrival.duration), _Kind.END, life.arrival.name, life.run)

    def _evict(self, decision: Preempting, now: datetime) -> None:
        for name in decision.victims:
            self._foresee(now + self._grace, _Kind.EVICTION, name, self._lives[name].run)


def _seconds(at: datetime) -> float:
    return (at - BEGINNING).total_seconds()
