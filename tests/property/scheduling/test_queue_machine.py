"""Random arrivals, ends and faults through the queue: order, caps, patience and the cluster's laws hold after each."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, Phase, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from pai_backend.model.errors import PaiError
from pai_backend.scheduling import Bound, ClusterConfig, Ledger, Outdated, Wait
from pai_backend.scheduling.core.decision import Enqueue, EntryState, Stage
from pai_backend.scheduling.explain import apply, changes, explain
from pai_backend.scheduling.queue import Cap, Entry, Pass, Patience, Policy, Queue, VcCaps
from pai_backend.scheduling.queue.entry import Scope, kind_of, line_of
from pai_backend.scheduling.queue.kind import Variant
from pai_backend.scheduling.queue.policy import Usage, scopes
from pai_backend.scheduling.request import Key
from tests.mutants import queue as mutants
from tests.property.scheduling.clusters import VCS, configs, groups
from tests.property.scheduling.test_ledger import state_of
from tests.support.cell_laws import audit
from tests.support.suggesting import Suggesting

START = datetime(2026, 1, 1, tzinfo=UTC)
USERS = ("alice", "bob")
CAPS = st.builds(Cap, st.sampled_from([None, None, 2, 4]), st.sampled_from([None, None, 3, 6]))
POLICIES = st.builds(
    lambda total, user, overtaken: Policy(vc=VcCaps(total, user), patience=Patience(overtaken, timedelta(minutes=10))),
    CAPS,
    CAPS,
    st.integers(1, 3),
)


class Waiting(RuleBasedStateMachine):
    """Drives a queue and its twin on equal clusters; whatever one does, the other must."""

    queue: Queue

    def __init__(self) -> None:
        super().__init__()
        self.now = START
        self.count = 0
        self.blocked: set[str] = set()
        """Nodes without CPU to spare."""
        self.deferred: set[str] = set()
        """Groups that were deferred, until nodes or cells change."""

    @initialize(config=configs(most_nodes=2), policy=POLICIES)
    def start(self, config: ClusterConfig, policy: Policy) -> None:
        self.set_up(config, policy)

    def set_up(self, config: ClusterConfig, policy: Policy) -> None:
        one, other = Ledger(config), Ledger(config)
        self.queue = Queue(one, policy, decider=Suggesting(one, self.suggested))
        self.twin = Straight(other, policy, decider=Suggesting(other, self.suggested))
        self.overtaken: dict[str, int] = {}

    def suggested(self, entry: Entry) -> frozenset[str] | None:
        if entry.needs is None:
            return None
        return frozenset(self.queue.ledger.nodes) - self.blocked

    # -- what is done ----------------------------------------------------------------------------------------------

    @rule(
        data=st.data(),
        user=st.sampled_from(USERS),
        needs=st.sampled_from([None, "much"]),
        sweep=st.sampled_from(["", "", "rates", "seeds"]),
    )
    def submit(self, data: st.DataObject, user: str, needs: str | None, sweep: str) -> None:
        self.count += 1
        group = data.draw(groups(self.queue.ledger.config, f"g{self.count}", lazy=True))
        at_once = max(group.pods, 2) if sweep else None
        self.enter(Entry(group, user, self.count, needs, sweep=sweep, sweep_tasks=at_once))

    def enter(self, entry: Entry) -> None:
        """It waits in both queues from now on, if the cluster has something for it."""
        group = entry.group
        try:
            self.queue.add(entry)
        except PaiError as error:
            note(f"{group.name} refused: {error.message}")
            return
        self.twin.add(entry)
        note(f"submitted {entry}")
        line = self.queue.waiting[group.name].line
        if line is not None and self._sleeps_beside(line.variant):
            # The nodes refused its like and have not changed since.
            self.deferred.add(group.name)
        self.advance()

    @precondition(lambda self: self.queue.running or self.queue.claims or self.queue.waiting)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        every = sorted([*self.queue.running, *self.queue.claims, *self.queue.waiting])
        name = data.draw(st.sampled_from(every))
        note(f"{name} ended")
        self.queue.release(name)
        self.twin.release(name)
        self.advance()

    @precondition(lambda self: self.queue.running)
    @rule(data=st.data(), deferred=st.booleans())
    def put_back(self, data: st.DataObject, deferred: bool) -> None:
        name = data.draw(st.sampled_from(sorted(self.queue.running)))
        for queue in (self.queue, self.twin):
            (queue.defer if deferred else queue.put_back)(name)
        assert name in self.queue.waiting
        if deferred:
            entry = self.queue.waiting[name].entry
            self.deferred |= {
                each
                for each, ticket in self.queue.waiting.items()
                if ticket.line is not None
                and ticket.line.variant.asleep
                and kind_of(ticket.entry.group) == kind_of(entry.group)
            }
        before, claims = self._places(), dict(self.queue.claims)
        self.advance()
        stayed = all(self._places().get(each) == place for each, place in before.items())
        # Cells that were kept for somebody may have been offered to all before they were kept again.
        stayed = stayed and all(self.queue.claims.get(each) is claim for each, claim in claims.items())
        assert not deferred or not stayed or name in self.queue.waiting, "it was asked again though nothing changed"

    @rule(data=st.data())
    def health(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.queue.ledger.nodes)))
        healthy = data.draw(st.booleans())
        note(f"{name} healthy={healthy}")
        for queue in (self.queue, self.twin):
            queue.set_node_health(name, healthy=healthy)
        self.advance()

    @rule(data=st.data())
    def cpu(self, data: st.DataObject) -> None:
        self.blocked = set(data.draw(st.lists(st.sampled_from(sorted(self.queue.ledger.nodes)), max_size=2)))
        note(f"no CPU left on {self.blocked}")
        for queue in (self.queue, self.twin):
            queue.nodes_changed()
        self.advance()

    @rule(minutes=st.sampled_from([1, 5, 10]))
    def pass_time(self, minutes: int) -> None:
        self.now += timedelta(minutes=minutes)
        note(f"{minutes} minutes later")
        self.advance()

    @precondition(lambda self: self.count % 6 == 5)
    @rule(config=configs(most_nodes=2))
    def reconfigure(self, config: ClusterConfig) -> None:
        note("another configuration")
        for queue in (self.queue, self.twin):
            queue.ledger.reconfigure(config)
        self.advance()

    @precondition(lambda self: len(self.queue.waiting) > 1)
    @rule(data=st.data())
    def reorder(self, data: st.DataObject) -> None:
        """Two of one queue change places, as jobs that are moved do: they leave, and line up with the other's turn."""
        name = data.draw(st.sampled_from(sorted(self.queue.waiting)))
        mine = self.queue.waiting[name].entry
        others = [each.entry for each in self.queue.waiting.values() if each.entry.key[0] == mine.key[0]]
        theirs = data.draw(st.sampled_from(others))
        note(f"{mine.group.name} and {theirs.group.name} change places")
        for queue in (self.queue, self.twin):
            for entry in {mine.group.name: mine, theirs.group.name: theirs}:
                queue.release(entry)
            queue.line_up(replace(mine, order=theirs.order))
            if theirs is not mine:
                queue.line_up(replace(theirs, order=mine.order))
        self.advance()

    # -- what must hold --------------------------------------------------------------------------------------------

    def advance(self) -> None:
        """One pass after another until nothing is left to ask, each of them checked."""
        self.deferred = {name for name in self.deferred if name in self.queue.waiting}
        for _ in range(20):
            before = self._waiting_keys()
            answer, other = self.passed(self.queue), self.twin.advance(self.now)
            self.compare(answer, other)
            decided = [f"{type(each).__name__} {each.placement.group.name}" for each in answer.decided]
            note(f"pass: {decided}, kept {answer.held_back}")
            self._same_kind_in_order(answer, before)
            if not answer.more:
                assert self.queue.is_settled, "somebody is still to be asked, and the pass did not tell"
                return
        pytest.fail("passes do not come to an end")

    def passed(self, queue: Queue) -> Pass:
        """A pass that is decided twice before it is applied: deciding changes nothing."""
        answer = Pass(upgraded=queue.upgrade())
        before = (memory(queue), state_of(queue.ledger))
        decided = queue.decide(self.now)
        assert (memory(queue), state_of(queue.ledger)) == before, "deciding left a trace"
        again = queue.decide(self.now)
        assert again == decided, "the same question had another answer"
        queue.apply(again)
        with pytest.raises(Outdated):
            queue.apply(decided)
        return replace(again, upgraded=answer.upgraded)

    def compare(self, answer: Pass, other: Pass) -> None:
        """What was decided and then applied is what is decided step by step, also where one asks no more."""
        assert answer == other, "the same operations led to another answer"
        assert memory(self.queue)[:-1] == memory(self.twin)[:-1], "what was applied is not what was decided"
        assert state_of(self.queue.ledger)[:-1] == state_of(self.twin.ledger)[:-1]

    def _sleeps_beside(self, variant: Variant) -> bool:
        """Whether a group that was deferred is asked again only together with this variant."""
        lines = (self.queue.waiting[name].line for name in self.deferred if name in self.queue.waiting)
        return variant.asleep and any(line is not None and line.variant is variant for line in lines)

    def _places(self) -> dict[str, object]:
        """Who has which cells, and on whose account. What moves frees cells, so that others are asked again."""
        return {
            name: ([(spot.node.name, spot.mask) for spot in held.spots], held.displaced_by)
            for name, held in self.queue.ledger.groups.items()
        }

    def _waiting_keys(self) -> dict[str, Entry]:
        return {name: ticket.entry for name, ticket in self.queue.waiting.items()}

    def _same_kind_in_order(self, answer: Pass, before: dict[str, Entry]) -> None:
        """Of equal groups of one user with equal needs, the earlier starts first."""
        for started in [self.queue.running[name] for name in answer.started]:
            for name, entry in before.items():
                same = kind_of(entry.group) == kind_of(started.group) and entry.user == started.user
                equal = same and entry.needs == started.needs and entry.group.members == started.group.members
                equal = equal and entry.group.vc == started.group.vc
                if equal and entry.key < started.key and name in self.queue.waiting:
                    pytest.fail(f"{started.group.name} started before {name}")

    @invariant()
    def laws(self) -> None:
        """The cluster's own laws: a reservation never breaks what others are promised."""
        if hasattr(self, "queue"):
            audit(self.queue.ledger)
            assert set(self.queue.ledger.groups) == {*self.queue.running, *self.queue.claims}

    @invariant()
    def tables_follow_the_ledger(self) -> None:
        """Whatever the queue remembers of its entries follows from the ledger."""
        if hasattr(self, "queue"):
            assert tables(self.queue) == derived(self.queue)

    @invariant()
    def caps(self) -> None:
        """What runs, counted anew, exceeds no cap."""
        if not hasattr(self, "queue"):
            return
        used: dict[object, list[Entry]] = {}
        entries = [*self.queue.running.values()]
        entries += [claim.ticket.entry for claim in self.queue.claims.values()]
        for entry in entries:
            for scope, cap in scopes(self.queue.policy, entry):
                used.setdefault((scope, cap), []).append(entry)
        for (_, cap), own in used.items():  # type: ignore[misc]
            assert cap.tasks is None or sum(entry.group.pods for entry in own) <= cap.tasks
            assert cap.gpus is None or sum(entry.group.leaves for entry in own) <= cap.gpus
            assert cap.jobs is None or len({entry.job for entry in own}) <= cap.jobs

    @invariant()
    def nobody_waits_for_nothing(self) -> None:
        """After a pass nobody could start who is not at a cap, behind somebody who is, or behind kept cells."""
        if not hasattr(self, "queue") or not self.queue.is_settled:
            return
        for queue in (self.queue, self.twin):
            for name, ticket in queue.waiting.items():
                if ticket.line is None or queue.gates.blocking(ticket.entry) or name in self.deferred:
                    continue
                decision = queue.ledger.decide(ticket.entry.group, queue.decider.suggest(ticket.entry))
                assert isinstance(decision, Wait), f"{name} waits and could have {decision}"

    @invariant()
    def patience(self) -> None:
        """Nobody who is first is overtaken more often than patience allows."""
        if hasattr(self, "queue"):
            for name, ticket in self.queue.waiting.items():
                assert ticket.overtaken <= self.queue.policy.patience.overtaken, f"{name} was overtaken too often"

    @precondition(lambda self: self.queue.is_settled and self.queue.waiting)
    @rule(data=st.data())
    def suggestions_work(self, data: st.DataObject) -> None:
        """Each suggested change really starts the group, and leaves everybody else where they are."""
        name = data.draw(st.sampled_from(sorted(self.queue.waiting)))
        version = self.queue.ledger.version
        found = changes(self.queue, self.queue.waiting[name].entry, self.now, VCS)
        assert changes(self.twin, self.twin.waiting[name].entry, self.now, VCS) == found
        told = explain(self.queue, name, self.now, vcs=VCS)
        assert told == explain(self.twin, name, self.now, vcs=VCS)
        assert told.changes == found
        assert all(text.sentence and text.remedy for text in told.texts.values())
        assert self.queue.ledger.version == version, "asking why changed something"
        if not found:
            return
        change = data.draw(st.sampled_from(found))
        entry = self.queue.waiting[name].entry
        changed = Entry(apply(entry.group, change), entry.user, entry.order, entry.needs)
        note(f"{name} with {change}")
        running = set(self.queue.running)
        for queue in (self.queue, self.twin):
            queue.release(name)
            queue.add(changed)
        self.advance()
        assert name in self.queue.running, f"{change} did not start {name}"
        assert running < set(self.queue.running)


class Undoing(Waiting):
    """The same, with decisions that are undone."""

    @rule(data=st.data())
    def start_and_undo(self, data: st.DataObject) -> None:
        """One more enters, gets a place whatever the caps say, and both are undone: all tables are as before."""
        self.count += 1
        entry = Entry(data.draw(groups(self.queue.ledger.config, f"g{self.count}", lazy=True)), "alice", self.count)
        for queue in (self.queue, self.twin):
            try:
                queue.check(entry)
            except PaiError:
                return
            before = tables(queue)
            entered = queue.ledger.apply(Enqueue(entry))
            assert entry.group.name in queue.waiting
            waiting = tables(queue)
            decision = queue.decider.decide(entry)
            if not isinstance(decision, Wait):
                placed = queue.ledger.apply(replace(decision, entry=entry))
                assert entry.group.name in (queue.running if isinstance(decision, Bound) else queue.claims)
                assert tables(queue) == derived(queue)
                queue.ledger.undo(placed)
                assert tables(queue) == waiting
            queue.ledger.undo(entered)
            assert tables(queue) == before
        self.advance()


class Cold(Waiting):
    """The same beside a twin that forgets who was asked: a memory saves questions, and decides nothing.

    Only what was deferred is more than a memory, and only of passes that come to their end the answers are the same.
    """

    @rule()
    def put_back(self) -> None:
        """Not here: see above."""

    def advance(self) -> None:
        self.twin.forget()
        super().advance()

    def compare(self, answer: Pass, other: Pass) -> None:
        assert (answer.decided, answer.returned, answer.held_back) == (other.decided, other.returned, other.held_back)
        assert tables(self.queue) == tables(self.twin)


class Straight(Queue):
    """A queue that applies each step for good as soon as it is decided, and asks for the next then."""

    def advance(self, now: datetime) -> Pass:
        answer = Pass(upgraded=self.upgrade())
        state_of(self.ledger)  # which settles orders, of both queues at the same time
        self._go_through(answer, now)
        self.version = self.ledger.version
        return answer


def memory(queue: Queue) -> tuple[object, ...]:
    """All that a queue remembers; at last how far it has looked, which it finds out again by itself."""
    kinds = {
        key: (kind.pending, kind.shelved, kind.stuck, {each: _variant(it) for each, it in kind.variants.items()})
        for key, kind in queue.index.kinds.items()
    }
    tickets = [*queue.waiting.values(), *(claim.ticket for claim in queue.claims.values())]
    patience = {ticket.entry.group.name: (ticket.overtaken, ticket.first_since) for ticket in tickets}
    claims = [(name, claim.lanes, claim.least, claim.may_fit_elsewhere) for name, claim in queue.claims.items()]
    first = {lane: ticket.entry.group.name for lane, ticket in queue.first.items()}
    failed = {lane: list(known) for lane, known in queue.failed._kinds.items() if known}
    asleep = {chain: {each.key for each in known} for chain, known in queue.index._at_nodes.items() if known}
    stuck = [kind.key for kind in queue.stuck]
    walks = {each: shelf.cursor for each, shelf in queue.index._walked.items()}
    lazily = (walks, dict(queue.gates._loosened))
    known = (tables(queue), kinds, patience, claims, first, failed, asleep, stuck, dict(queue.displaced))
    return (*known, queue.version == queue.ledger.version, lazily)


def _variant(variant: Variant) -> tuple[object, ...]:
    lines = {owner: (line.parked, [each.key for each in line.tickets]) for owner, line in variant.lines.items()}
    return variant.asleep, variant.woken_by, lines


def tables(queue: Queue) -> tuple[object, ...]:
    """Who waits, in which order, for whom cells are kept, who runs, and what the caps count."""
    return (
        {name: ticket.entry for name, ticket in queue.waiting.items()},
        {line: keys for line, keys in queue.order.items() if keys},
        {name: (claim.ticket.entry, claim.victims, claim.held_back) for name, claim in queue.claims.items()},
        dict(queue.running),
        _used(queue.gates.usage),
    )


def derived(queue: Queue) -> tuple[object, ...]:
    """The same, from the ledger alone."""
    by_stage: dict[Stage, dict[str, EntryState]] = {stage: {} for stage in Stage}
    usage, order = Usage(queue.policy), dict[str, list[Key]]()
    for state in queue.ledger.entries:
        by_stage[state.stage][state.entry.group.name] = state
        if state.stage is Stage.WAITING:
            order.setdefault(line_of(state.entry.group), []).append(state.entry.key)
        else:
            usage.add(state.entry)
    return (
        {name: state.entry for name, state in by_stage[Stage.WAITING].items()},
        {line: sorted(keys) for line, keys in order.items()},
        {name: (state.entry, state.victims, state.held_back) for name, state in by_stage[Stage.KEPT].items()},
        {name: state.entry for name, state in by_stage[Stage.RUNNING].items()},
        _used(usage),
    )


def _used(usage: Usage) -> dict[Scope, tuple[int, int]]:
    return {scope: (used.tasks, used.gpus) for scope, used in usage._used.items()}


QUIET = settings(deadline=None, stateful_step_count=30, suppress_health_check=list(HealthCheck))

TestWaiting = Waiting.TestCase
# Without explaining, which traces every line and takes minutes.
TestWaiting.settings = settings(QUIET, max_examples=150, phases=[each for each in Phase if each is not Phase.explain])


TestUndoing = Undoing.TestCase
TestUndoing.settings = settings(TestWaiting.settings, max_examples=50)


TestCold = Cold.TestCase
TestCold.settings = settings(TestWaiting.settings, max_examples=50)


@pytest.mark.parametrize("mutant", mutants.UNDONE, ids=lambda mutant: f"{mutant[0].__name__}.{mutant[1]}")
def test_a_queue_that_cannot_undo_what_it_remembers_is_found_out(
    mutant: tuple[type, str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(*mutant)
    wrong = settings(QUIET, max_examples=100, derandomize=True, phases=[Phase.generate], report_multiple_bugs=False)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(Undoing, settings=wrong)


@pytest.mark.parametrize("mutant", mutants.RANDOM, ids=lambda mutant: f"{mutant[0].__name__}.{mutant[1]}")
def test_a_wrong_queue_is_found_out(mutant: tuple[type, str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*mutant)
    wrong = settings(QUIET, max_examples=2000, derandomize=True, phases=[Phase.generate], report_multiple_bugs=False)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        run_state_machine_as_test(Waiting, settings=wrong)
