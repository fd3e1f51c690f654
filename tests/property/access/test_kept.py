"""Laws of kept connections: each is somewhere once, goes to its own way only, and not for longer than it may."""

from __future__ import annotations

from itertools import count

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from pai_backend.access.proxy.kept import IdleConnections, Way
from pai_backend.model.ids import TaskUid

MOST, KEEP_S = 4, 2.0
WAYS = [
    Way(TaskUid(task), node, port, visitor, as_admin)
    for task, node, port, visitor, as_admin in [
        ("one", "carol", 80, "alice", False),
        ("one", "carol", 80, "root", True),
        ("one", "carol", 80, "alice", True),
        ("one", "carol", 81, "alice", False),
        ("one", "dave", 80, "alice", False),
        ("two", "carol", 80, "alice", False),
    ]
]


class Connections(RuleBasedStateMachine):
    """Connections are put, taken, lost and expire; a plain list says where each must be."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: IdleConnections[int] = IdleConnections(MOST, KEEP_S)
        self.now = 0.0
        self.numbers = count()
        self.there: list[tuple[int, Way, float]] = []

    @rule(way=st.sampled_from(WAYS))
    def put(self, way: Way) -> None:
        number = next(self.numbers)
        self.there.append((number, way, self.now + KEEP_S))
        closed = self.kept.put(way, number, self.now)
        assert closed == [number for number, _, _ in self.there[:-MOST]], "the oldest make room"
        self.there = self.there[-MOST:]

    @rule(way=st.sampled_from(WAYS))
    def take(self, way: Way) -> None:
        fit = [entry for entry in self.there if entry[1] == way and self.now < entry[2]]
        taken = self.kept.take(way, self.now)
        assert taken == (fit[-1][0] if fit else None), "the last one that is not over, and of this way alone"
        self.there = [entry for entry in self.there if entry[0] != taken]

    @precondition(lambda self: self.there)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        entry = data.draw(st.sampled_from(self.there))
        assert self.kept.drop(entry[0])
        assert not self.kept.drop(entry[0])
        self.there.remove(entry)

    @rule(passed=st.sampled_from([0.0, 0.5, 1.0, 2.0, 5.0]))
    def wait(self, passed: float) -> None:
        self.now += passed

    @rule()
    def expire(self) -> None:
        over = [number for number, _, until in self.there if until <= self.now]
        assert self.kept.expire(self.now) == over
        self.there = [entry for entry in self.there if entry[0] not in over]

    @rule()
    def clear(self) -> None:
        assert self.kept.clear() == [number for number, _, _ in self.there]
        self.there = []

    @invariant()
    def agrees(self) -> None:
        assert len(self.kept) == len(self.there) <= MOST
        assert self.kept.next_expiry() == min((until for _, _, until in self.there), default=None)


TestConnections = Connections.TestCase
TestConnections.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
