"""Small groups of few kinds under tight caps: whoever a cap has room for is let go on, whatever becomes of the others.

The machine of :mod:`tests.property.scheduling.test_queue_machine` draws groups so large that a cap hardly ever has room
for one again.
"""

from __future__ import annotations

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule, run_state_machine_as_test

from pai_backend.scheduling import Group, Member
from pai_backend.scheduling.queue import Cap, Entry, Patience, Policy, VcCaps
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


@pytest.mark.parametrize("mutant", mutants.CAPPED, ids=lambda mutant: f"{mutant[0].__name__}.{mutant[1]}")
def test_a_queue_that_forgets_who_waits_for_a_cap_is_found_out(
    mutant: tuple[type, str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(*mutant)
    wrong = settings(QUIET, max_examples=400, derandomize=True, phases=[Phase.generate], report_multiple_bugs=False)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        run_state_machine_as_test(Capped, settings=wrong)
