"""Nodes that refuse tasks: others hold there what the controller does not see."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from pai_backend.controller import seen_nodes
from pai_backend.model.ids import TaskUid
from pai_backend.model.job import Job, Phase
from pai_backend.model.node import Gpu, Node, Others
from pai_backend.scheduling.request import Need
from pai_backend.testing.builders import make_role, make_spec
from tests.support.scripted_cluster import Cluster, cluster, on_gpu
from tests.support.scripted_engine import lab_node

UID = TaskUid("j0123456789abcdef-0-0-0")
AWAY = "waits for 1 TITANX GPU: GPUs held by pods that are not of this backend on "


def node_of(lab: Cluster, uid: TaskUid) -> str:
    return next(plan.placement.node for plan in lab.engine.starts if plan.uid == uid)


async def refused(lab: Cluster, job: Job) -> Job:
    """The nodes of the job's tasks refuse them; the job once it was placed again, or told why it is not."""
    for task in job.tasks:
        await lab.engine.exit(task.uid, reason="refused")
    return await lab.until(
        job.uid, lambda now: now.attempt > job.attempt and (now.tasks[0].phase is Phase.RUNNING or "waits" in now.why)
    )


@pytest.mark.asyncio
async def test_what_a_node_refuses_goes_to_another_one_at_once(tmp_path: Path) -> None:
    async with cluster(tmp_path, lab_node("carol"), lab_node("dan"), lab_node("eve")) as lab:
        job = await lab.running(await lab.submit(on_gpu()))
        seen = []
        for _ in range(2):
            seen.append(node_of(lab, job.tasks[0].uid))
            job = await refused(lab, job)
            assert job.backoff_until is None
        seen.append(node_of(lab, job.tasks[0].uid))
        assert sorted(seen) == ["carol", "dan", "eve"]


@pytest.mark.asyncio
async def test_it_waits_where_all_refuse_and_starts_once_the_engine_tells_of_room(tmp_path: Path) -> None:
    carol = lab_node("carol")
    async with cluster(tmp_path, carol) as lab:
        job = await refused(lab, await lab.running(await lab.submit(on_gpu())))
        assert job.why == AWAY + "carol (1)"
        lab.engine.show(carol.model_copy(update={"cpus": 9}))
        await lab.running(job)


@pytest.mark.asyncio
async def test_a_node_is_tried_again_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen_nodes, "FIRST", timedelta(seconds=0.3))
    async with cluster(tmp_path, lab_node("carol")) as lab:
        job = await lab.running(await lab.submit(on_gpu()))
        for _ in range(2):
            job = await lab.running(await refused(lab, job))
        assert len(await lab.engine.started(3)) == 3


@pytest.mark.asyncio
async def test_smaller_tasks_still_go_there_and_what_runs_there_is_left_alone(tmp_path: Path) -> None:
    """Of four GPUs one is used when two are refused: others hold two at least, so that one more is tried."""
    async with cluster(tmp_path, lab_node("carol", gpus=4)) as lab:
        first = await lab.running(await lab.submit(on_gpu()))
        pair = make_spec(roles=[make_role(gpus=2)], gpu_type="TITANX")
        second = await refused(lab, await lab.running(await lab.submit(pair)))
        assert second.tasks[0].phase is Phase.QUEUED
        await lab.running(await lab.submit(on_gpu()))
        assert (await lab.store.jobs.get(first.uid)).tasks[0].phase is Phase.RUNNING


@pytest.mark.asyncio
async def test_what_every_node_refuses_is_tried_after_pauses(tmp_path: Path) -> None:
    """It may be its own fault: thousands of nodes are not to be gone through at full speed."""
    async with cluster(tmp_path, *(lab_node(f"node{number}") for number in range(8))) as lab:
        job = await lab.running(await lab.submit(on_gpu()))
        for _ in range(3):
            job = await lab.running(await refused(lab, job))
        await lab.engine.exit(job.tasks[0].uid, reason="refused")
        job = await lab.until(job.uid, lambda now: now.backoff_until is not None)
        assert len(lab.engine.starts) == 4


@pytest.mark.parametrize(
    ("gpus", "used", "others"), [(1, 1, Others(gpus=8)), (4, 4, Others(gpus=5)), (4, 8, Others(gpus=1))]
)
def test_others_hold_the_least_that_explains_a_refusal(gpus: int, used: int, others: Others) -> None:
    node: Node = lab_node("carol", gpus=8)
    need = Need(UID, cpus=1, memory_mb=100, gpus=gpus)
    assert seen_nodes.inferred(node, need, (1, 100, used)) == others


def test_what_asks_for_no_gpus_lacked_cpus() -> None:
    assert seen_nodes.inferred(lab_node("carol", gpus=8), Need(UID, cpus=1, memory_mb=100), (3, 100, 0)) == Others(
        cpus=6
    )


@pytest.mark.parametrize(
    ("gpu_type", "used", "others"),
    [
        ("MIG", 1, Others(gpus=3, by_type={"TITANX": 0, "MIG": 3})),
        ("TITANX", 8, Others(gpus=1, by_type={"TITANX": 1, "MIG": 0})),
        ("", 9, Others(gpus=3)),
    ],
)
def test_of_a_node_with_several_types_it_was_the_type_that_was_asked_for(
    gpu_type: str, used: int, others: Others
) -> None:
    whole = lab_node("carol", gpus=8)
    slices = tuple(Gpu(index=1000 + index, type="MIG") for index in range(3))
    node = whole.model_copy(update={"gpus": (*whole.gpus, *slices)})
    need = Need(UID, cpus=1, memory_mb=100, gpus=1, gpu_type=gpu_type)
    assert seen_nodes.inferred(node, need, (1, 100, used)) == others


def test_refusals_of_two_types_stand_side_by_side() -> None:
    one, other = (Others(gpus=2, by_type={"A": a, "B": b}) for a, b in ((2, 0), (0, 1)))
    assert seen_nodes.most(one, other).by_type == {"A": 2, "B": 1}
