"""A job whose cluster or node is away says so, and does not only look as it did."""

from __future__ import annotations

from pai_backend.api.staleness import nodes_of, staleness
from pai_backend.model.job import Job, Phase, State
from pai_backend.model.node import Node
from pai_backend.testing.builders import make_job, make_placement, make_role, make_spec


def node(name: str, *, ready: bool = True, reason: str = "") -> Node:
    return Node(name=name, address=name, machine=name, cpus=1, memory_mb=100, ready=ready, reason=reason)


def running(*names: str, state: State = State.RUNNING) -> Job:
    job = make_job(spec=make_spec(roles=[make_role(instances=len(names))]), state=state, phase=Phase.RUNNING)
    tasks = (
        task.model_copy(update={"state": State.RUNNING, "phase": Phase.RUNNING, "placement": make_placement(name)})
        for task, name in zip(job.tasks, names, strict=True)
    )
    return job.model_copy(update={"tasks": tuple(tasks)})


def test_a_job_on_nodes_that_are_well_is_certain() -> None:
    assert staleness(running("carol", "dan"), [node("carol"), node("dan"), node("eve", ready=False)], (), {}) == ""


def test_a_cluster_that_is_away_is_told_of_every_job_that_is_not_over() -> None:
    trouble = ["nodes were last known to be current 14 s ago: the API server cannot be reached"]
    for job in (running("carol"), make_job()):
        assert staleness(job, [], trouble, {}) == f"What is shown may be out of date: {trouble[0]}."
    assert staleness(running("carol", state=State.SUCCEEDED), [], trouble, {}) == ""


def test_a_node_that_is_not_ready_is_told_with_its_reason() -> None:
    job = running("carol", "dan", "dan")
    nodes = [node("carol"), node("dan", ready=False, reason="Kubelet stopped posting node status.")]
    said = "node dan is not ready (Kubelet stopped posting node status.)"
    assert staleness(job, nodes, (), {}) == f"What is shown of its tasks may be out of date: {said}."
    names = [f"n{number}" for number in range(5)]
    many = staleness(running(*names), [node(name, ready=False) for name in names], (), {})
    assert many.endswith("node n2 is not ready (no reason is given), the same for 2 more nodes.")


def test_a_node_that_is_silent_is_told_before_the_cluster_calls_it_not_ready() -> None:
    job = running("carol", "dan")
    nodes = [node("carol"), node("dan")]
    said = "node dan has not reported for 12 s"
    assert staleness(job, nodes, (), {"dan": 12.4}) == f"What is shown of its tasks may be out of date: {said}."
    later = [node("carol"), node("dan", ready=False, reason="NodeStatusUnknown")]
    assert f"{said} and is not ready (NodeStatusUnknown)" in staleness(job, later, (), {"dan": 12.4})


def test_only_the_nodes_that_a_job_holds_may_cast_a_doubt_on_it() -> None:
    assert nodes_of(running("carol", "dan", "dan")) == ["carol", "dan"]
    assert nodes_of(running("carol", state=State.SUCCEEDED)) == []
    assert staleness(running("carol"), [node("carol"), node("dan")], (), {"dan": 60.0}) == ""
