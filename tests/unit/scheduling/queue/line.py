"""A queue in front of one virtual cluster of four nodes with four GPUs, and short ways to drive it."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta

from pai_backend.scheduling import Group, Member
from pai_backend.scheduling.queue import Entry, Pass, Policy, Queue
from pai_backend.scheduling.queue.booked import RunSpan
from tests.support.cell_laws import audit
from tests.support.suggesting import Suggesting
from tests.unit.scheduling.core.clusters import cluster

START = datetime(2026, 1, 1, tzinfo=UTC)
NODES = """
physicalCluster:
  cellTypes:
    NODE: {childCellType: GPU, childCellNumber: 4, isNodeLevel: true}
    OTHER: {childCellType: OLD, childCellNumber: 4, isNodeLevel: true}
  physicalCells:
    - {cellType: NODE, cellAddress: n0}
    - {cellType: NODE, cellAddress: n1}
    - {cellType: NODE, cellAddress: n2}
    - {cellType: NODE, cellAddress: n3}
    - {cellType: OTHER, cellAddress: m0}
virtualClusters:
  a: {virtualCells: [{cellType: NODE, cellNumber: 3}]}
  b: {virtualCells: [{cellType: NODE, cellNumber: 1}, {cellType: OTHER, cellNumber: 1}]}
"""


class Line:
    """A queue with a clock; names say who started, in order."""

    def __init__(self, policy: Policy | None = None, text: str = NODES) -> None:
        self.now = START
        self.busy: set[str] = set()
        """Nodes that have no CPU left for entries that need "much"."""
        self.ends: dict[str, datetime] = {}
        ledger = cluster(text)
        self.spans: dict[str, RunSpan] = {}
        decider = Suggesting(ledger, self._suggest)
        spans = lambda name: self.spans.get(name, RunSpan())  # noqa: E731
        self.queue = Queue(ledger, policy, ends=self.ends.get, decider=decider, spans=spans)
        self.count = 0

    def _suggest(self, entry: Entry) -> Collection[str] | None:
        return None if entry.needs is None else frozenset(self.queue.ledger.nodes) - self.busy

    def submit(
        self,
        name: str,
        *pods: tuple[int, int] | Member,
        priority: int = 10,
        vc: str = "a",
        user: str = "u",
        kind: str = "GPU",
        needs: str | None = None,
        lazy: bool = False,
        longest: timedelta | None = None,
    ) -> list[str]:
        """One more group; who starts because of it."""
        self.count += 1
        members = tuple(each if isinstance(each, Member) else Member(*each) for each in pods)
        group = Group(name, vc, members, priority, kind, lazy_preemption=lazy)
        self.queue.add(Entry(group, user, self.count, needs, longest=longest))
        return self.started()

    def end(self, *names: str) -> list[str]:
        """These have ended; who starts because of it."""
        for name in names:
            self.queue.release(name)
        return self.started()

    def after(self, minutes: int) -> Pass:
        self.now += timedelta(minutes=minutes)
        return self.advance()

    def advance(self) -> Pass:
        answer = self.queue.advance(self.now)
        audit(self.queue.ledger)
        return answer

    def started(self) -> list[str]:
        return self.advance().started
