"""Addresses of the tasks of an attempt: what of them is known, when the list is complete, who is told of it."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pai_backend.engine.kubernetes.hosts import COMPLETE, Peer, Roll, addresses_in, peer_of
from pai_backend.engine.kubernetes.objects import slim_pod
from pai_backend.engine.kubernetes.pods.owner import PodOwner
from pai_backend.engine.kubernetes.pods.pod import build_pod
from pai_backend.model.pod_settings import PodSettings

from .pods.conftest import MakePlan, make_plan, owner, settings

__all__ = ["make_plan", "owner", "settings"]


def peer(host: str, address: str = "", *, run: int = 0, awaits: int = 1, over: bool = False, has: str = "") -> Peer:
    return Peer(f"{host}-{run}", host, run, address, awaits, has, over)


def roll(*peers: Peer) -> Roll:
    made = Roll()
    for each in peers:
        made.see(each)
    return made


class TestPeer:
    """What a pod says about itself."""

    def test_a_pod_of_a_job_with_peers_is_one(
        self, make_plan: MakePlan, owner: PodOwner, settings: PodSettings
    ) -> None:
        plan = make_plan(job_tasks=3, job_placed=2, role="worker", index=1)
        pod = slim_pod(build_pod(plan, owner, settings))
        pod["status"] = {"podIP": "10.0.0.7", "phase": "Running"}
        found = peer_of(pod)
        assert found is not None
        assert (found.host, found.address, found.awaits, found.over) == ("worker-1", "10.0.0.7", 2, False)
        assert str(plan.uid).endswith(f"-{found.run}")

    def test_one_that_is_being_deleted_is_over(
        self, make_plan: MakePlan, owner: PodOwner, settings: PodSettings
    ) -> None:
        pod = build_pod(make_plan(job_tasks=2), owner, settings)
        pod["metadata"]["deletionTimestamp"] = "2026-11-21T00:00:00Z"
        found = peer_of(pod)
        assert found is not None
        assert found.over

    def test_whose_launcher_leaves_the_hosts_alone_is_none(
        self, make_plan: MakePlan, owner: PodOwner, settings: PodSettings
    ) -> None:
        by_dns = PodSettings.model_validate({"runtime_image": "r", "names": "dns"})
        assert peer_of(build_pod(make_plan(job_tasks=1), owner, settings)) is None
        assert peer_of(build_pod(make_plan(job_tasks=2), owner, by_dns)) is None

    def test_a_pod_that_is_not_ours_is_none(self) -> None:
        pod: dict[str, Any] = {"metadata": {"name": "x", "annotations": {"jupyter-pai/peers": "many"}}}
        assert peer_of(pod) is None


class TestRoll:
    """The list of an attempt."""

    def test_it_is_complete_when_all_that_are_placed_have_an_address(self) -> None:
        found = roll(peer("a-0", "10.0.0.1", awaits=2))
        assert not found.complete
        assert found.text() == "10.0.0.1\ta-0\n"
        found.see(peer("b-0", "10.0.0.2", awaits=2))
        assert found.text() == f"10.0.0.1\ta-0\n10.0.0.2\tb-0\n{COMPLETE}\n"

    def test_a_task_that_runs_again_is_waited_for(self) -> None:
        """Its old address may be somebody else's by now."""
        found = roll(peer("a-0", "10.0.0.1", awaits=2), peer("b-0", "10.0.0.2", awaits=2, over=True))
        assert found.complete
        found.see(peer("b-0", run=1, awaits=2))
        assert (found.complete, found.addresses()) == (False, {"a-0": "10.0.0.1"})
        found.see(peer("b-0", "10.0.0.9", run=1, awaits=2))
        assert (found.complete, found.addresses()["b-0"]) == (True, "10.0.0.9")

    def test_a_task_that_is_gone_keeps_its_last_address(self) -> None:
        found = roll(peer("a-0", "10.0.0.1", awaits=2), peer("b-0", "10.0.0.2", awaits=2))
        found.lose("b-0-0")
        assert found.text().endswith(f"10.0.0.2\tb-0\n{COMPLETE}\n")

    def test_what_was_written_earlier_is_recalled_but_never_wins(self) -> None:
        found = roll(peer("a-0", "10.0.0.1", awaits=2))
        found.recall({"a-0": "10.9.9.9", "b-0": "10.0.0.2"})
        assert (found.complete, found.addresses()) == (True, {"a-0": "10.0.0.1", "b-0": "10.0.0.2"})

    def test_kubelets_of_pods_that_are_over_or_know_it_are_let_be(self) -> None:
        found = roll(peer("a-0", "1", has="new"), peer("b-0", "2", has="old"), peer("c-0", "3", has="old", over=True))
        assert [each.host for each in found.to_touch("new")] == ["b-0"]

    def test_only_what_may_change_the_list_is_news(self) -> None:
        found = roll(peer("a-0", "10.0.0.1"))
        assert not found.see(peer("a-0", "10.0.0.1", has="new"))
        assert found.see(peer("a-0", "10.0.0.1", over=True))

    @given(
        st.lists(
            st.tuples(st.sampled_from(["a-0", "a-1", "b-0"]), st.integers(0, 3), st.sampled_from(["", "1", "2", "3"])),
            max_size=12,
        )
    )
    def test_the_text_says_what_is_known_and_no_more(self, seen: list[tuple[str, int, str]]) -> None:
        found = roll(*(peer(host, address, run=run, awaits=2) for host, run, address in seen))
        assert addresses_in(found.text()) == found.addresses()
        assert found.text().endswith(f"{COMPLETE}\n") is found.complete
