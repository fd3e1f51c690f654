"""Queues played in time: a big gang starts in bounded time whatever comes later, and predicted starts come true."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush

import pytest
from hypothesis import Phase, currently_in_test_context, given, note, settings
from hypothesis import strategies as st

from pai_backend.scheduling import ClusterConfig, Group, Ledger, Member
from pai_backend.scheduling.config.model import CellSpec, CellType, Quota, VirtualCluster
from pai_backend.scheduling.core.place import in_the_way
from pai_backend.scheduling.explain import estimate
from pai_backend.scheduling.queue import Entry, Pass, Patience, Policy, Queue
from tests.mutants import queue as mutants
from tests.support.cell_laws import audit

START = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
NODES, LEAVES = 4, 4


def one_vc() -> ClusterConfig:
    leaves = tuple(CellSpec("gpu", str(index)) for index in range(LEAVES))
    nodes = tuple(CellSpec("node", f"n{number}", "", leaves) for number in range(NODES))
    types = {"node": CellType("node", "gpu", LEAVES, is_node=True)}
    return ClusterConfig(types, nodes, {"a": VirtualCluster("a", (Quota("node", "node", NODES),))})


@dataclass
class World:
    """Groups with run times, and a clock that jumps to the next thing that happens."""

    patience: Patience
    known: bool = True
    now: datetime = START
    count: int = 0
    lasts: dict[str, timedelta] = field(default_factory=dict)
    started: dict[str, datetime] = field(default_factory=dict)
    ends: list[tuple[datetime, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.queue = Queue(Ledger(one_vc()), Policy(patience=self.patience), ends=self.end)

    def end(self, name: str) -> datetime | None:
        started = self.started.get(name) if self.known else None
        return None if started is None else started + self.lasts[name]

    def submit(self, pods: int, leaves: int, minutes: int, priority: int = 0) -> str:
        self.count += 1
        name = f"g{self.count}"
        self.lasts[name] = minutes * MINUTE
        self.queue.add(Entry(Group(name, "a", (Member(pods, leaves),), priority), "u", self.count))
        return name

    def advance(self) -> Pass:
        answer = self.queue.advance(self.now)
        for name in answer.started:
            self.started[name] = self.now
            heappush(self.ends, (self.now + self.lasts[name], name))
        if currently_in_test_context():
            note(f"{self.now:%H:%M} {answer.started}, kept {answer.held_back}")
        audit(self.queue.ledger)
        return answer

    def until(self, moment: datetime) -> None:
        """Let everything happen that happens until then."""
        while self.ends and self.ends[0][0] <= moment:
            self.now = self.ends[0][0]
            while self.ends and self.ends[0][0] == self.now:
                self.queue.release(heappop(self.ends)[1])
            self.advance()
        self.now = moment


SMALL = st.tuples(st.integers(1, 3), st.integers(1, 2), st.integers(1, 30))
"""Pods, leaves, minutes."""


BIG_GANGS = {
    "first": st.lists(SMALL, min_size=4, max_size=10),
    "big": st.sampled_from([(2, 4), (3, 4), (4, 4), (8, 2)]),
    "later": st.lists(st.tuples(SMALL, st.integers(0, 3)), min_size=30, max_size=60),
    "overtaken": st.integers(0, 4),
    "known": st.booleans(),
}


def big_gang_starts_in_bounded_time(
    first: list[tuple[int, int, int]],
    big: tuple[int, int],
    later: list[tuple[tuple[int, int, int], int]],
    overtaken: int,
    known: bool,
) -> None:
    """Whatever comes later: overtaken no more often and first no longer than patience allows, then as promised."""
    world = World(Patience(overtaken, timedelta(minutes=20)), known)
    for job in first:
        world.submit(*job)
    world.advance()
    name = world.submit(*big, 10)
    world.advance()
    promised: datetime | None = None
    for job, pause in later:
        world.until(world.now + pause * MINUTE)
        world.submit(*job)
        world.advance()
        if name in world.started:
            break
        ticket = world.queue.claims[name].ticket if name in world.queue.claims else world.queue.waiting[name]
        assert ticket.overtaken <= overtaken, "it was overtaken more often than patience allows"
        if ticket.first_since is not None and name not in world.queue.claims:
            assert world.now - ticket.first_since < timedelta(minutes=20), (
                "it was first for longer than patience allows"
            )
        if promised is None and name in world.queue.claims:
            way = in_the_way(world.queue.ledger.groups[name])
            promised = max(
                (world.started[held.group.name] + world.lasts[held.group.name] for held in way), default=world.now
            )
            note(f"promised {promised}")
    world.until(world.now + timedelta(days=1))
    assert name in world.started, "it never started"
    if promised is not None:
        assert world.started[name] <= promised, "what was kept for it was not enough"


test_a_big_gang_starts_in_bounded_time_whatever_comes_later = settings(max_examples=60, deadline=None)(
    given(**BIG_GANGS)(big_gang_starts_in_bounded_time)
)


@pytest.mark.parametrize("mutant", mutants.TIMED, ids=lambda mutant: mutant[1])
def test_a_queue_that_lets_big_gangs_starve_is_found_out(
    mutant: tuple[object, str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(*mutant)
    wrong = settings(max_examples=100, deadline=None, derandomize=True, phases=[Phase.generate])
    with pytest.raises(AssertionError):
        wrong(given(**BIG_GANGS)(big_gang_starts_in_bounded_time))()


@settings(max_examples=60, deadline=None)
@given(
    jobs=st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 30)), min_size=3, max_size=14),
    asked=st.integers(0, 13),
)
def test_a_predicted_start_comes_true_when_nobody_new_comes(jobs: list[tuple[int, int, int]], asked: int) -> None:
    world = World(Patience(overtaken=100, first_for=timedelta(days=30)))
    names = [world.submit(*job) for job in jobs]
    world.advance()
    name = names[asked % len(names)]
    if name not in world.queue.waiting:
        return
    entry = world.queue.waiting[name].entry
    predicted = estimate(world.queue, entry, world.now, run_time=lambda each: world.lasts[each.group.name])
    world.until(world.now + timedelta(days=1))
    if predicted is not None:
        assert world.started[name] == predicted.at
        assert predicted.after
    else:
        assert name not in world.started, "everything was known, and it started"


def test_without_run_times_nothing_is_predicted() -> None:
    world = World(Patience(), known=False)
    world.submit(4, 4, 10)
    name = world.submit(1, 1, 10)
    world.advance()
    assert estimate(world.queue, world.queue.waiting[name].entry, world.now) is None
