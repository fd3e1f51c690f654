"""What is applied to the ledger can be undone to the last order of lists: ``undo`` after ``apply`` is the identity."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from pai_backend.model.errors import Bug, PaiError
from pai_backend.model.ids import JobUid, PortLease, TaskUid
from pai_backend.model.node import Node
from pai_backend.scheduling import Bound, ClusterConfig, Group, Ledger, Member, Outdated, Preempt, Wait
from pai_backend.scheduling.cells.ranking import Ranking
from pai_backend.scheduling.core.decision import Applicable, Decision, Dequeue, Enqueue, Keep, Lease, Release
from pai_backend.scheduling.core.ledger import Receipt
from pai_backend.scheduling.request import Entry, Need
from tests.mutants import ledger as mutants
from tests.property.scheduling.clusters import configs, fingerprint, groups

OWNERS = ("job-0", "job-1", "job-2")
LEASES = st.builds(PortLease, st.sampled_from(["m1", "m2"]), st.integers(1, 3), st.sampled_from(OWNERS))


class Histories(RuleBasedStateMachine):
    """Drives a ledger; each decision is applied, undone, and perhaps applied for good."""

    ledger: Ledger

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[str, Group] = {}
        self.count = 0
        self.done: list[tuple[object, Receipt]] = []
        """What was applied last, the latest last, with the state before; nothing else was written since."""

    @initialize(config=configs(), data=st.data())
    def start(self, config: ClusterConfig, data: st.DataObject) -> None:
        """A ledger in the middle of its life: tasks of all sizes and priorities run."""
        self.ledger = Ledger(config)
        for name in self.ledger.nodes:
            self.ledger.room.set_node(Node(name=name, address=name, machine=name, cpus=8, memory_mb=8))
        sizes = st.tuples(st.sampled_from("ab"), st.integers(1, 2), st.sampled_from([-1, 0, 10]), st.booleans())
        for vc, leaves, priority, lazy in data.draw(st.lists(sizes, min_size=4, max_size=10)):
            self.count += 1
            group = Group(f"g{self.count}", vc, (Member(1, leaves),), priority, lazy_preemption=lazy)
            decision = self._decided(group)
            if decision is not None:
                self.known[group.name] = group
                self.ledger.apply(decision)

    # -- what is done ----------------------------------------------------------------------------------------------

    @rule(data=st.data())
    def submit(self, data: st.DataObject) -> None:
        self.count += 1
        group = data.draw(groups(self.ledger.config, f"g{self.count}"))
        decision = self._decided(group)
        if decision is not None:
            self.known[group.name] = group
            self._apply(data, decision)

    @precondition(lambda self: self.known)
    @rule(data=st.data())
    def ask_again(self, data: st.DataObject) -> None:
        decision = self._decided(self.known[data.draw(st.sampled_from(sorted(self.known)))])
        if decision is not None:
            self._apply(data, decision)

    @precondition(lambda self: self.ledger.groups)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        self._apply(data, Release(data.draw(st.sampled_from(sorted(self.ledger.groups)))))

    @precondition(lambda self: self.ledger.groups)
    @rule(data=st.data())
    def grow(self, data: st.DataObject) -> None:
        try:
            decision = self.ledger.decide_growth(data.draw(st.sampled_from(sorted(self.ledger.groups))))
        except PaiError:
            return
        self._apply(data, decision)

    @rule(data=st.data(), number=st.integers(1, 4), enters=st.booleans())
    def queue(self, data: st.DataObject, number: int, enters: bool) -> None:
        entry = Entry(Group(f"g{number}", "a", (Member(1, 1),)), "alice", number)
        self._apply(data, Enqueue(entry) if enters else Dequeue(entry.group.name))

    @rule(data=st.data(), begins=st.lists(LEASES, max_size=4), ends=st.lists(st.sampled_from(OWNERS), max_size=2))
    def lease(self, data: st.DataObject, begins: list[PortLease], ends: list[str]) -> None:
        self._apply(data, Lease(tuple(begins), tuple(ends)))

    @rule(leases=st.lists(LEASES, max_size=3))
    def leases_as_stored(self, leases: list[PortLease]) -> None:
        self.ledger.set_leases(leases)
        self._event()

    @rule(owner=st.sampled_from(OWNERS))
    def end_leases(self, owner: str) -> None:
        self.ledger.end_leases([owner])
        self._event()

    @rule(data=st.data())
    def health(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.ledger.nodes)))
        self.ledger.set_node_health(name, healthy=data.draw(st.booleans()))
        self._event()

    @rule()
    def upgrade(self) -> None:
        self.ledger.upgrade()
        self._event()

    @precondition(lambda self: self.done)
    @rule(data=st.data())
    def go_back(self, data: st.DataObject) -> None:
        """Several decisions are undone, the latest first, whatever was asked in between."""
        count = data.draw(st.integers(1, len(self.done)))
        for before, receipt in reversed(self.done[-count:]):
            self.ledger.undo(receipt)
            assert state_of(self.ledger) == before, "an undo left a trace"
        del self.done[-count:]

    # -- helpers of the rules --------------------------------------------------------------------------------------

    def _event(self) -> None:
        """What was applied before something else was written can no longer be undone, unless nothing was."""
        for _, receipt in self.done[-1:]:
            if self.ledger.last != receipt.after:
                with pytest.raises(Outdated):
                    self.ledger.undo(receipt)
                self.done.clear()

    def _decided(self, group: Group) -> Decision | None:
        try:
            return self.ledger.decide(group)
        except PaiError:
            return None

    def _apply(self, data: st.DataObject, decision: Applicable) -> None:
        decision = self._with_more(data, decision)
        before = state_of(self.ledger)
        receipt = self.ledger.apply(decision)
        after = state_of(self.ledger)
        self._decided(Group("probe", "a", (Member(1, 1),), 10))
        self._decided(Group("probe", "a", (Member(1, 1),), -1))
        wrote = bool(receipt.entries)
        self.ledger.undo(receipt)
        assert state_of(self.ledger) == before, "an undo left a trace"
        if wrote:
            with pytest.raises(Outdated):
                self.ledger.undo(receipt)
        if not data.draw(st.booleans()):
            return
        receipt = self.ledger.apply(decision)
        assert state_of(self.ledger)[:-1] == after[:-1], "the second time something else was written"
        self.done.append((before, receipt))

    def _with_more(self, data: st.DataObject, decision: Applicable) -> Applicable:
        """The same with CPU and memory; or the place kept though it is free."""
        holds: tuple[tuple[Need, str], ...] = ()
        if isinstance(decision, Bound | Preempt):
            numbers = data.draw(st.lists(st.integers(0, 9), max_size=3, unique=True))
            nodes = st.sampled_from(sorted(self.ledger.nodes))
            holds = tuple((Need(TaskUid(f"job-{number}"), 1 + number, 1), data.draw(nodes)) for number in numbers)
        frees = tuple(TaskUid(f"job-{number}") for number in data.draw(st.lists(st.integers(0, 9), max_size=2)))
        match decision:
            case Bound(placement, displaced, cancelled, plan, version):
                held = self.ledger.groups.get(placement.group.name)
                entry = self._entry(data, placement.group)
                if held is None and plan is not None and placement.group.priority >= 0 and data.draw(st.booleans()):
                    return Keep(placement, plan, version, holds, entry)
                return Bound(placement, displaced, cancelled, plan, version, (), holds, frees, entry)
            case Preempt(placement, displaced, cancelled, plan, version, victims=victims):
                entry = self._entry(data, placement.group)
                return Preempt(placement, displaced, cancelled, plan, version, (), holds, frees, entry, victims=victims)
            case Wait(name, reason, drops, version):
                return Wait(name, reason, drops, version, frees)
            case _:
                return decision

    @staticmethod
    def _entry(data: st.DataObject, group: Group) -> Entry | None:
        """The entry of the queue that gets the place, if it was asked for one."""
        return Entry(group, "alice", 1) if data.draw(st.booleans()) else None


def state_of(ledger: Ledger) -> tuple[object, ...]:
    """Everything a decision may depend on, orders included; the version last."""
    looked = fingerprint(ledger)
    every: list[Ranking[Any]] = [
        *(chain.ranking for chain in ledger.chains.values()),
        *(quotas.ranking for quotas in (*ledger.quotas.values(), *ledger.pinned.values())),
    ]
    rankings = [
        (list(ranking.count), [(rank, [str(each) for each in nodes]) for rank, nodes in _ranked(ranking)])
        for ranking in every
    ]
    holders = [
        (
            [(held.group.name, mask) for held, mask in node.running.items()],
            [(held.group.name, mask) for held, mask in node.reserving.items()],
        )
        for nodes in ledger.nodes.values()
        for node in nodes
    ]
    held = [
        (
            name,
            each.state,
            each.displaced_by,
            each.serial,
            list(each.ordinals),
            each.stored,
            [other.group.name for other in each.pursuers],
            [(spot.node.name, spot.mask, str(spot.unit), str(spot.cell)) for spot in each.spots],
        )
        for name, each in ledger.groups.items()
    ]
    owners = [
        ([each.group.name for each in quotas.oldest_first()], dict(quotas.owned))
        for quotas in (*ledger.quotas.values(), *ledger.pinned.values())
    ]
    room = ledger.room
    cpu = [(node, room.free(node), sorted(room.held_by(job))) for node in room.nodes for job in [JobUid("job")]]
    ports = [dict(ledger.ports.taken(machine)) for machine in ("m1", "m2")]
    leased = {owner: set(places) for owner, places in ledger.ports._by_owner.items()}
    entries = {state.entry.group.name: state for state in ledger.entries}
    return (rankings, holders, held, owners, cpu, ports, leased, entries, ledger.serial, looked[:-1], ledger.version)


def _ranked(ranking: Ranking[Any]) -> list[tuple[object, list[object]]]:
    return [(rank, list(nodes)) for rank, nodes in sorted(ranking._lists.items()) if nodes]


QUIET = settings(deadline=None, stateful_step_count=25, suppress_health_check=list(HealthCheck))

TestHistories = Histories.TestCase
TestHistories.settings = settings(QUIET, max_examples=200)


@pytest.mark.parametrize("mutant", mutants.LEDGERS, ids=lambda mutant: f"{mutant[0].__name__}.{mutant[1]}")
def test_a_ledger_that_forgets_is_found_out(mutant: tuple[type, str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*mutant)
    wrong = settings(QUIET, max_examples=300, derandomize=True, phases=[Phase.generate], report_multiple_bugs=False)
    with pytest.raises((AssertionError, Bug, KeyError)):
        run_state_machine_as_test(Histories, settings=wrong)
