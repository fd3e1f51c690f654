"""Small groups of few kinds under tight caps: whoever a cap has room for is let go on, whatever becomes of the others.

The machine of :mod:`tests.property.scheduling.test_queue_machine` draws groups so large that a cap hardly ever has room
for one again.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule, run_state_machine_as_test

from pai_backend.scheduling import Group, Member
from pai_backend.scheduling.queue import Cap, Entry, Patience, Policy, VcCaps
from pai_backend.scheduling.queue.policy import scopes
from tests.mutants import queue as mutants
from tests.property.scheduling.test_queue_machine import QUIET, Waiting
from tests.unit.scheduling.core.clusters import cluster

NODES = """
physicalCluster:
  cellTypes:
    NODE: {childCellType: GPU, childCellNumber: 4, isNodeLevel: true}
  physicalCells:
    - {cellType: NODE, cellAddress: n0}
    - {cellType: NODE, cellAddress: n1}
    - {cellType: NODE, cellAddress: n2}
virtualClusters:
  a: {virtualCells: [{cellType: NODE, cellNumber: 2}]}
  b: {virtualCells: [{cellType: NODE, cellNumber: 1}]}
"""
CONFIG = cluster(NODES).config
USERS = ("alice", "bob", "carol")
POLICIES = st.builds(
    lambda total, inside, user, overtaken: Policy(
        user=Cap(gpus=user), vc=VcCaps(Cap(gpus=total), Cap(gpus=inside)), patience=Patience(overtaken)
    ),
    st.sampled_from([None, 4, 6]),
    st.sampled_from([None, 3, 4]),
    st.sampled_from([None, 3, 4]),
    st.integers(1, 3),
)


class Capped(Waiting):
    """One kind of GPU, and groups of one task, so that most of them are alike."""

    @initialize(policy=POLICIES)
    def start(self, policy: Policy) -> None:
        self.set_up(CONFIG, policy)

    @rule(
        leaves=st.integers(1, 4),
        vc=st.sampled_from(["a", "a", "b"]),
        user=st.sampled_from(USERS),
        priority=st.sampled_from([0, 0, 0, 10]),
        needs=st.sampled_from([None, None, "much"]),
    )
    def submit(self, leaves: int, vc: str, user: str, priority: int, needs: str | None) -> None:
        self.count += 1
        group = Group(f"g{self.count}", vc, (Member(1, leaves),), priority)
        self.enter(Entry(group, user, self.count, needs))

    @precondition(lambda self: self.count % 6 == 5)
    @rule()
    def reconfigure(self) -> None:
        """As it was; everybody is sorted in anew."""
        for queue in (self.queue, self.twin):
            queue.ledger.reconfigure(CONFIG)
        self.advance()


TestCapped = Capped.TestCase
# Without explaining, which traces every line and takes minutes.
TestCapped.settings = settings(QUIET, max_examples=150, phases=[each for each in Phase if each is not Phase.explain])


LIVE_POLICIES = st.builds(
    lambda policy, jobs, user_jobs: replace(
        policy,
        user=replace(policy.user, jobs=user_jobs),
        vc=replace(policy.vc, user=replace(policy.vc.user, jobs=jobs)),
    ),
    POLICIES,
    st.sampled_from([None, 1, 2]),
    st.sampled_from([None, 1, 3]),
)


class LiveCaps(Capped):
    """Caps on jobs too, all of which change while groups run and wait."""

    @initialize(policy=LIVE_POLICIES)
    def start(self, policy: Policy) -> None:
        self.before: dict[str, Entry] = {}
        self.set_up(CONFIG, policy)

    @rule(policy=LIVE_POLICIES)
    def set_policy(self, policy: Policy) -> None:
        """Other caps: nothing ends, and what has room now starts."""
        self.before = self._placed()
        for queue in (self.queue, self.twin):
            queue.set_policy(policy)
        self.advance()
        assert set(self.before) <= set(self._placed())

    @invariant()
    def caps(self) -> None:
        """Who started since the caps were changed exceeds none, with what ran before and still runs."""
        if not hasattr(self, "queue"):
            return
        placed = self._placed()
        self.before = {name: entry for name, entry in self.before.items() if name in placed}
        for entry in (entry for name, entry in placed.items() if name not in self.before):
            for scope, cap in scopes(self.queue.policy, entry):
                own = [each for each in placed.values() if scope in dict(scopes(self.queue.policy, each))]
                assert cap.gpus is None or sum(each.group.leaves for each in own) <= cap.gpus
                assert cap.jobs is None or len(own) <= cap.jobs

    def _placed(self) -> dict[str, Entry]:
        """Who runs or has cells kept."""
        kept = {name: claim.ticket.entry for name, claim in self.queue.claims.items()}
        return {**self.queue.running, **kept}


TestLiveCaps = LiveCaps.TestCase
TestLiveCaps.settings = settings(QUIET, max_examples=60, phases=[each for each in Phase if each is not Phase.explain])


@pytest.mark.parametrize("mutant", mutants.CAPPED, ids=lambda mutant: f"{mutant[0].__name__}.{mutant[1]}")
def test_a_queue_that_forgets_who_waits_for_a_cap_is_found_out(
    mutant: tuple[type, str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(*mutant)
    wrong = settings(QUIET, max_examples=400, derandomize=True, phases=[Phase.generate], report_multiple_bugs=False)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        run_state_machine_as_test(Capped, settings=wrong)
