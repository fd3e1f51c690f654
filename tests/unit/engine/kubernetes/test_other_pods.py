"""What pods of others hold of nodes: read from pods, summed by node, and told with the node."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_backend.engine.base import EngineEvent, NodeSeen
from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.objects import Object, slim_pod
from pai_backend.engine.kubernetes.other_pods import note_other_pod, other_pods, slim_other_pod
from pai_backend.engine.kubernetes.pod_requests import HELD, RequestsByNode, SharedRequests, requests_of
from pai_backend.engine.kubernetes.reported_nodes import ReportedNodes
from pai_backend.model.cluster_settings import NodeReading
from pai_backend.model.node import Others
from pai_backend.model.pod_settings import PodGpuSettings, PodSettings

NOW = datetime(2026, 11, 26, tzinfo=UTC)
GPU = "nvidia.com/gpu"


def container(restart: str = "", **requests: str) -> Object:
    made: Object = {"resources": {"requests": {name.replace("gpu", GPU): each for name, each in requests.items()}}}
    return {**made, "restartPolicy": restart} if restart else made


def pod(*containers: Object, uid: str = "u", node: str = "carol", labels: dict[str, str] | None = None) -> Object:
    about = {"name": uid, "namespace": "others", "uid": uid, "resourceVersion": "1", "labels": labels or {}}
    return {"metadata": about, "spec": {"nodeName": node, "containers": [*containers]}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, {}),
        ({"containers": [{}, {"resources": {"limits": {"cpu": "9"}}}]}, {}),
        ({"containers": [container(cpu="500m", gpu="1"), container(cpu="1", memory="1Gi")]}, (1.5, 2**30, 1)),
        # an init container that asks for more than all that run later, and one that asks for less
        ({"containers": [container(cpu="1")], "initContainers": [container(cpu="3", gpu="2")]}, (3, 0, 2)),
        ({"containers": [container(cpu="1")], "initContainers": [container(cpu="500m")]}, (1, 0, 0)),
        # a sidecar runs on beside what comes later: the other init container, and the containers
        (
            {
                "containers": [container(cpu="1")],
                "initContainers": [container("Always", cpu="1"), container(cpu="4"), container("Always", cpu="1")],
            },
            (5, 0, 0),
        ),
        (
            {"containers": [container(cpu="4")], "initContainers": [container("Always", cpu="1", gpu="1")]},
            (5, 0, 1),
        ),
        # of the pod as a whole, which beats its containers; and what its runtime takes
        ({"resources": {"requests": {"cpu": "2"}}, "containers": [container(cpu="1", gpu="1")]}, (2, 0, 1)),
        ({"containers": [container(cpu="1")], "overhead": {"cpu": "250m", "memory": "1Ki"}}, (1.25, 1024, 0)),
        ({"containers": [container(cpu="many", memory="1")]}, (0, 1, 0)),
        ({"containers": "nonsense", "initContainers": [3, None], "overhead": 7}, {}),
    ],
)
def test_what_a_pod_takes_from_its_node(spec: Object, expected: Any) -> None:
    found = {name: float(value) for name, value in requests_of({"spec": spec}).items() if value}
    wanted = dict(zip(("cpu", "memory", GPU), expected, strict=True)) if expected else {}
    assert found == {name: value for name, value in wanted.items() if value}


def selected(labels: dict[str, str], selector: str) -> bool:
    """As the API server reads ``key=value`` and ``key!=value``; the latter is true of what lacks the key."""
    return all(
        (labels.get(key.rstrip("!")) == value) is not key.endswith("!")
        for key, _, value in (each.partition("=") for each in selector.split(","))
    )


@pytest.mark.parametrize(
    ("labels", "followed"),
    [
        ({}, ["other pods"]),
        ({naming.MANAGED_BY: "Helm", naming.INSTANCE: "lab"}, ["other pods"]),
        ({naming.INSTANCE: "lab", naming.COMPONENT: "task"}, ["other pods"]),
        (naming.ours("lab"), []),
        (naming.ours("another"), ["pods of other backends"]),
    ],
)
def test_each_pod_that_is_no_task_of_this_backend_is_followed_once(labels: dict[str, str], followed: list[str]) -> None:
    resources = other_pods("lab")
    assert [each.name for each in resources if selected(labels, dict(each.query)["labelSelector"])] == followed


def test_nothing_else_is_kept_of_a_pod() -> None:
    found = pod(container(cpu="1"), labels={"secret": "x"})
    found["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": "swordfish"}]
    assert "swordfish" not in str(slim_other_pod(found))


PODS = st.tuples(st.sampled_from("abcd"), st.sampled_from(["", "carol", "dan"]), st.integers(0, 3), st.booleans())


@given(st.lists(PODS, max_size=30))
def test_sums_are_those_of_the_pods_that_are_there(steps: list[tuple[str, str, int, bool]]) -> None:
    held = RequestsByNode()
    there: dict[str, tuple[str, int]] = {}
    for uid, node, cpus, gone in steps:
        before = {name: held.on(name).get("cpu", 0) for name in ("carol", "dan")}
        found = slim_other_pod(pod(container(cpu=str(cpus)), uid=uid, node=node))
        changed = note_other_pod(held, found, gone=gone)
        there.pop(uid, None)
        if node and not gone:
            there[uid] = node, cpus
        for name in ("carol", "dan"):
            now = held.on(name).get("cpu", 0)
            assert now == sum(each for where, each in there.values() if where == name)
            assert now == before[name] or name in changed


def node(name: str, **allocatable: str) -> Object:
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-21T20:00:00Z"}
    room = {"cpu": "8", "memory": "16Gi", GPU: "4", **allocatable}
    return {"metadata": {"name": name, "uid": name}, "status": {"conditions": [ready], "allocatable": room}}


def seen(events: list[EngineEvent]) -> dict[str, Others]:
    return {event.node.name: event.node.others for event in events if isinstance(event, NodeSeen)}


@pytest.mark.parametrize("first", ["pods", "nodes"])
def test_a_node_is_told_again_when_others_hold_another_amount_of_it(first: str) -> None:
    reported = ReportedNodes(PodSettings(), NodeReading())
    stranger = slim_other_pod(pod(container(cpu="1500m", memory="1Gi", gpu="2")))
    if first == "pods":
        reported.note_other_pod(stranger, gone=False)
        assert reported.take() == [], "nothing is known of the node"
    reported.note(node("carol"), gone=False, now=NOW)
    reported.note(node("dan"), gone=False, now=NOW)
    reported.note_other_pod(stranger, gone=False)
    told = seen(reported.take())
    assert told == {"carol": Others(cpus=2, memory_mb=1024, gpus=2), "dan": Others()}
    reported.note_other_pod(stranger, gone=False)
    assert reported.take() == [], "another state of the pod, and the same requests"
    reported.note_other_pod(stranger, gone=True)
    assert seen(reported.take()) == {"carol": Others()}


@pytest.mark.parametrize(
    ("held", "spare", "cpus", "others"),
    [
        ({}, 0, 8, 0),
        ({"cpu": "0.1"}, 0, 8, 1),  # whole CPUs are given
        ({"cpu": "0.1"}, 0.5, 7, 0),  # which was spared for them
        ({"cpu": "0.9"}, 0.5, 7, 0),
        ({"cpu": "1.1"}, 0.5, 7, 1),
        ({"cpu": "99"}, 0, 8, 8),
    ],
)
def test_what_is_spared_for_others_is_theirs_first(held: dict[str, str], spare: float, cpus: int, others: int) -> None:
    reported = ReportedNodes(PodSettings(), NodeReading(spare_cpus=spare))
    reported.note(node("carol"), gone=False, now=NOW)
    reported.note_other_pod(slim_other_pod(pod(container(**held))), gone=False)
    told = [event.node for event in reported.take() if isinstance(event, NodeSeen)][-1]
    assert (told.cpus, told.others.cpus) == (cpus, others)


def test_gpus_that_no_device_plugin_counts_are_held_by_nobody() -> None:
    reported = ReportedNodes(PodSettings(gpus=PodGpuSettings(by="visible-devices")), NodeReading())
    labelled = node("carol")
    labelled["metadata"]["labels"] = {"jupyter-pai/gpu-count": "4"}
    reported.note(labelled, gone=False, now=NOW)
    reported.note_other_pod(slim_other_pod(pod(container(gpu="2"))), gone=False)
    assert {event.node.others.gpus for event in reported.take() if isinstance(event, NodeSeen)} == {0}
    assert Decimal(2) == requests_of(pod(container(gpu="2")))[GPU]


def task_pod(uid: str, place: str, phase: str = "Pending", **requests: str) -> Object:
    found = pod(container(**requests), uid=uid, node=place)
    return {**slim_pod({**found, "status": {"phase": phase}}), HELD: requests_of(found)}


class TestRoom:
    """Whether a node takes so much more now, by what pods of others and of tasks hold there."""

    @pytest.fixture
    def reported(self) -> ReportedNodes:
        found = ReportedNodes(PodSettings(), NodeReading())
        found.note(node("carol"), gone=False, now=NOW)
        return found

    def test_what_others_and_tasks_hold_counts_and_what_has_ended_or_has_its_gate_does_not(
        self, reported: ReportedNodes
    ) -> None:
        wanted = {"cpu": Decimal(1), GPU: Decimal(3)}
        assert reported.lacks("carol", wanted) == ""
        reported.note_other_pod(slim_other_pod(pod(container(gpu="1"))), gone=False)
        assert reported.lacks("carol", wanted) == ""
        reported.note_task_pod(task_pod("gated", "", gpu="4"), gone=False)
        reported.note_task_pod(task_pod("over", "carol", "Succeeded", gpu="4"), gone=False)
        assert reported.lacks("carol", wanted) == ""
        reported.note_task_pod(task_pod("runs", "carol", "Running", gpu="1"), gone=False)
        assert reported.lacks("carol", wanted) == (
            "its node carol has no room for its gang now: pods hold 2 of 4 nvidia.com/gpu, and the gang needs 3 there"
        )
        reported.note_task_pod(task_pod("runs", "carol", "Failed", gpu="1"), gone=False)
        assert reported.lacks("carol", wanted) == ""

    def test_what_the_node_does_not_have_is_lacking_and_nothing_asked_for_never_is(
        self, reported: ReportedNodes
    ) -> None:
        assert ": pods hold 0 of 0 rdma/hca, and the gang needs 1 there" in reported.lacks(
            "carol", {"rdma/hca": Decimal(1)}
        )
        assert reported.lacks("carol", {"rdma/hca": Decimal()}) == ""

    def test_memory_is_told_in_mib_and_parts_of_a_cpu_as_they_are(self, reported: ReportedNodes) -> None:
        reported.note_other_pod(slim_other_pod(pod(container(cpu="7500m", memory="1Gi"))), gone=False)
        said = reported.lacks("carol", {"memory": Decimal(16 * 2**30)})
        assert "pods hold 1024 MiB of 16384 MiB memory, and the gang needs 16384 MiB there" in said
        assert "pods hold 7.5 of 8 cpu, and the gang needs 10 there" in reported.lacks("carol", {"cpu": Decimal(10)})

    def test_a_node_that_is_gone_away_or_cordoned_takes_nothing(self, reported: ReportedNodes) -> None:
        assert "no longer part" in reported.lacks("dan", {})
        closed = node("carol")
        closed["spec"] = {"unschedulable": True}
        reported.note(closed, gone=False, now=NOW)
        assert reported.lacks("carol", {}) == "its node carol is cordoned"
        away = node("carol")
        away["status"]["conditions"][0] |= {"status": "Unknown", "message": "silent"}
        reported.note(away, gone=False, now=NOW)
        assert reported.lacks("carol", {}) == "its node carol is unavailable (silent)"
        reported.note(away, gone=True, now=NOW)
        assert "no longer part" in reported.lacks("carol", {})


def test_equal_requests_are_kept_once_and_others_apart() -> None:
    shared = SharedRequests()
    one, same, other = (pod(container(cpu=cpus), uid=cpus + uid) for uid, cpus in (("a", "1"), ("b", "1"), ("c", "2")))
    assert shared.of(one) is shared.of(same)
    assert [shared.of(each)["cpu"] for each in (one, other)] == [1, 2]
    beside = pod(container(cpu="1"), uid="d")
    beside["spec"]["initContainers"] = [container(cpu="5")]
    sidecar = json.loads(json.dumps(beside))
    sidecar["spec"]["initContainers"][0]["restartPolicy"] = "Always"
    assert [shared.of(each)["cpu"] for each in (beside, sidecar)] == [5, 6]
