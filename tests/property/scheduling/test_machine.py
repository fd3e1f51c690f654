"""Random operations on random clusters: the laws hold after each, and two clusters fed alike answer alike."""

from __future__ import annotations

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

from pai_backend.model.errors import Bug, PaiError
from pai_backend.scheduling import Bound, ClusterConfig, Decision, Group, Ledger, Outdated, Preempt, State, Wait
from pai_backend.scheduling.cells.tree import Held
from tests.conformance.hived import invariants
from tests.mutants import scheduling as mutants
from tests.property.scheduling.clusters import configs, fingerprint, groups


class Scheduling(RuleBasedStateMachine):
    """Drives a cluster and its twin; whatever one answers, the other must."""

    cluster: Ledger
    twin: Ledger

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[str, Group] = {}
        self.count = 0

    @initialize(config=configs())
    def start(self, config: ClusterConfig) -> None:
        self.cluster, self.twin = Ledger(config), Ledger(config)

    # -- what is done ----------------------------------------------------------------------------------------------

    @rule(data=st.data())
    def submit(self, data: st.DataObject) -> None:
        self.count += 1
        group = data.draw(groups(self.cluster.config, f"g{self.count}"))
        if self._ask(group, self._suggested(data)):
            self.known[group.name] = group

    @precondition(lambda self: self._waiting())
    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(self._waiting()))
        self._ask(self.known[name], self._suggested(data))

    @precondition(lambda self: self.known)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.known)))
        for cluster in (self.cluster, self.twin):
            cluster.release(name)
        del self.known[name]

    @rule(data=st.data())
    def health(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.cluster.nodes)))
        healthy = data.draw(st.booleans())
        bad = data.draw(st.lists(st.integers(0, 3), max_size=2)) if healthy else []
        note(f"{name} healthy={healthy} but {bad}")
        for cluster in (self.cluster, self.twin):
            cluster.set_node_health(name, healthy=healthy, bad_devices=bad)

    @rule()
    def upgrade(self) -> None:
        assert self.cluster.upgrade() == self.twin.upgrade()

    @precondition(lambda self: self._elastic())
    @rule(data=st.data())
    def grow(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(self._elastic()))
        before = fingerprint(self.cluster)
        ours, theirs = self.cluster.decide_growth(name), self.twin.decide_growth(name)
        assert ours == theirs
        assert fingerprint(self.cluster) == before, "deciding changed something"
        if isinstance(ours, Bound):
            had = self.cluster.placements()[name].pods
            now = ours.placement.pods
            assert had.items() < now.items(), "growing moved a pod, or did not grow"
            self._commit(ours, theirs)

    @rule()
    def restart(self) -> None:
        """A new process with the stored placements and the same health: nobody loses anything."""
        before = {name: (held.chain, held.displaced_by) for name, held in self.cluster.groups.items()}
        lost = {name for name, held in self.cluster.groups.items() if _unknown_leaves(held)}
        for which in ("cluster", "twin"):
            old = getattr(self, which)
            fresh = Ledger(old.config)
            for name, nodes in old.nodes.items():
                fresh.set_node_health(name, healthy=True, bad_devices=[i for n in nodes for i in n.devices(n.broken)])
            restored = fresh.restore(old.placements().values())
            assert restored.missing.keys() <= lost
            assert all(before[name][1] for name in restored.displaced), "a restart took somebody's quota"
            setattr(self, which, fresh)
        for name, held in self.cluster.groups.items():
            assert held.chain == before[name][0]

    @rule(config=configs())
    def reconfigure(self, config: ClusterConfig) -> None:
        """Another configuration: every running group runs on."""
        running = set(self.cluster.placements())
        try:
            assert self.cluster.reconfigure(config) == self.twin.reconfigure(config)
        except ValueError:
            pytest.fail("a running group's leaf was given to two groups")
        assert set(self.cluster.placements()) == running

    @rule(data=st.data())
    def trial(self, data: st.DataObject) -> None:
        """What is done in a trial is undone, to the order of lists."""
        before = fingerprint(self.cluster)
        with self.cluster.trial() as trial:
            for name in data.draw(st.lists(st.sampled_from(sorted(self.known)), max_size=2)) if self.known else []:
                trial.release(name)
            group = data.draw(groups(self.cluster.config, "trial"))
            try:
                trial.apply(trial.decide(group))
            except PaiError as error:
                note(error.message)
            trial.set_node_health(next(iter(trial.nodes)), healthy=data.draw(st.booleans()))
            trial.upgrade()
        assert fingerprint(self.cluster) == before, "a trial left a trace"

    # -- what must hold --------------------------------------------------------------------------------------------

    @invariant()
    def laws(self) -> None:
        if hasattr(self, "cluster"):
            assert invariants.after_operation(self.cluster) == []

    @invariant()
    def twins(self) -> None:
        if hasattr(self, "cluster"):
            # Numbers of versions are never given twice, and only one of the two has made trials.
            ours, theirs = fingerprint(self.cluster)[:-1], fingerprint(self.twin)[:-1]
            assert ours == theirs, "the same operations led to another state"

    def teardown(self) -> None:
        if hasattr(self, "cluster"):
            assert invariants.when_empty(self.cluster) == []

    # -- helpers of the rules --------------------------------------------------------------------------------------

    def _ask(self, group: Group, suggested: list[str] | None) -> bool:
        """Ask both, compare, commit. False when the request itself was wrong."""
        held = self.cluster.groups.get(group.name)
        before = fingerprint(self.cluster)
        try:
            ours = self.cluster.decide(group, suggested)
        except PaiError as error:
            note(f"{group.name} refused: {error.message}")
            return held is not None
        assert fingerprint(self.cluster) == before, "deciding changed something"
        theirs = self.twin.decide(group, suggested)
        assert ours == theirs, "the same state gave another answer"
        assert invariants.of_decision(self.cluster, group, ours) == []
        note(f"{group} -> {ours}")
        self._allowed(ours, suggested)
        self._commit(ours, theirs)
        return True

    def _allowed(self, decision: Decision, suggested: list[str] | None) -> None:
        if isinstance(decision, Bound | Preempt) and suggested is not None:
            assert {pod.node for pod in decision.placement.pods.values()} <= set(suggested), (
                "a node that was not suggested"
            )

    def _commit(self, ours: Decision, theirs: Decision) -> None:
        self.cluster.apply(ours)
        self.twin.apply(theirs)
        if not isinstance(ours, Wait):
            with pytest.raises(Outdated):
                self.cluster.apply(ours)

    def _suggested(self, data: st.DataObject) -> list[str] | None:
        if data.draw(st.integers(0, 3)):
            return None
        return data.draw(st.lists(st.sampled_from(sorted(self.cluster.nodes)), unique=True))

    def _waiting(self) -> list[str]:
        running = {name for name, held in self.cluster.groups.items() if held.state is not State.PREEMPTING}
        return sorted(
            name for name, group in self.known.items() if name not in running and self._asks_what_exists(group)
        )

    def _asks_what_exists(self, group: Group) -> bool:
        return group.vc in self.cluster.config.virtual_clusters

    def _elastic(self) -> list[str]:
        return sorted(
            name
            for name, held in self.cluster.groups.items()
            if held.state is State.ALLOCATED
            and not held.displaced_by
            and held.spots
            and held.stored is not None
            and len(held.spots) == len(held.stored.pods) < held.group.pods
            and self._asks_what_exists(held.group)
        )


def _unknown_leaves(held: Held) -> bool:
    """Whether it runs on leaves that left the configuration."""
    stored = 0 if held.stored is None else sum(len(pod.cells) for pod in held.stored.pods.values())
    return sum(spot.mask.bit_count() for spot in held.spots) < stored


QUIET = settings(deadline=None, stateful_step_count=20, suppress_health_check=list(HealthCheck))

TestScheduling = Scheduling.TestCase
TestScheduling.settings = settings(QUIET, max_examples=40)


@pytest.mark.parametrize("mutant", mutants.CLUSTERS, ids=lambda mutant: f"{mutant[0].__name__}.{mutant[1]}")
def test_a_wrong_cluster_is_found_out(mutant: tuple[type, str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*mutant)
    wrong = settings(QUIET, max_examples=300, derandomize=True, phases=[Phase.generate], report_multiple_bugs=False)
    with pytest.raises((AssertionError, Bug, AttributeError, StopIteration)):
        run_state_machine_as_test(Scheduling, settings=wrong)
