"""Nodes that close and open while jobs run and wait: taints, labels and cordons under the controller."""

from __future__ import annotations

from pathlib import Path

import pytest

from pai_backend.model.job import Job, Phase
from pai_backend.model.labels import Effect, NodeRule, Operator, Taint, Toleration
from pai_backend.model.node import Node
from pai_backend.model.waiting import Cause, ChangeKind, LackOf
from pai_backend.scheduling.terms import NodeRules
from pai_backend.testing.builders import make_role, make_spec
from tests.support.scripted_cluster import Cluster, cluster, on_gpu
from tests.support.scripted_engine import lab_node
from tests.unit.controller.test_explaining import explained

TAINT = Taint(key="maintenance", effect=Effect.NO_EXECUTE)


def tainted(node: Node) -> Node:
    return node.model_copy(update={"taints": (TAINT,)})


def cordoned(node: Node) -> Node:
    return node.model_copy(update={"schedulable": False})


async def told(lab: Cluster, job: Job) -> Job:
    """The job once it has been told why it waits."""
    return await lab.until(job.uid, lambda now: bool(now.why))


@pytest.mark.asyncio
async def test_a_cordon_keeps_new_tasks_off_and_its_end_lets_them_start(tmp_path: Path) -> None:
    carol = lab_node("carol")
    async with cluster(tmp_path, cordoned(carol)) as lab:
        job = await told(lab, await lab.submit(on_gpu()))
        assert job.why == "waits for 1 TITANX GPU: it may not use carol (cordoned)"
        waiting = await explained(lab, job)
        assert [(lack.node, lack.what) for lack in waiting.lacks] == [("carol", LackOf.CORDONED)]
        assert waiting.texts["en"].remedy == "If an administrator uncordoned carol, it would start now."
        lab.engine.show(carol)
        await lab.running(job)


@pytest.mark.asyncio
async def test_a_taint_ends_nothing_that_runs_and_keeps_off_what_is_new(tmp_path: Path) -> None:
    carol = lab_node("carol", gpus=2)
    async with cluster(tmp_path, carol, lab_node("dan", gpus=0)) as lab:
        first = await lab.running(await lab.submit(on_gpu()))
        lab.engine.show(tainted(carol))
        # What the loop has written after that knows of the taint.
        await lab.running(await lab.submit(make_spec(roles=[make_role()])))
        second = await told(lab, await lab.submit(on_gpu()))
        waiting = await explained(lab, second)
        assert (waiting.cause, [(lack.what, lack.detail) for lack in waiting.lacks]) == (
            Cause.LINEAR,
            [(LackOf.TAINT, "maintenance:NoExecute")],
        )
        assert [(change.kind, change.nodes, change.detail) for change in waiting.changes] == [
            (ChangeKind.TOLERATE, ("carol",), "maintenance:NoExecute")
        ]
        assert "carol has the taint maintenance:NoExecute" in waiting.texts["en"].sentence
        assert (await lab.store.jobs.get(first.uid)).tasks[0].phase is Phase.RUNNING
        lab.engine.show(carol)
        await lab.running(second)


@pytest.mark.asyncio
async def test_a_job_takes_the_node_whose_labels_it_asks_for_and_waits_for_it(tmp_path: Path) -> None:
    carol, dan = (
        lab_node(name).model_copy(update={"labels": {"zone": zone}}) for name, zone in (("carol", "a"), ("dan", "b"))
    )
    asking = on_gpu().model_copy(update={"node_selector": {"zone": "b"}})
    async with cluster(tmp_path, carol, dan) as lab:
        first = await lab.running(await lab.submit(asking))
        assert first.tasks[0].placement is not None
        assert first.tasks[0].placement.node == "dan"
        second = await told(lab, await lab.submit(asking))
        waiting = await explained(lab, second)
        assert [(change.kind, change.nodes, change.detail) for change in waiting.changes][-1:] == [
            (ChangeKind.DROP_LABEL, ("carol",), "zone=b")
        ]
        lab.engine.show(carol.model_copy(update={"labels": {"zone": "b"}}))
        again = await lab.running(second)
        assert again.tasks[0].placement is not None
        assert again.tasks[0].placement.node == "carol"


@pytest.mark.asyncio
async def test_a_job_without_gpus_is_told_which_nodes_it_may_not_use(tmp_path: Path) -> None:
    async with cluster(tmp_path, tainted(lab_node("carol")), cordoned(lab_node("dan"))) as lab:
        job = await told(lab, await lab.submit(make_spec(roles=[make_role()])))
        assert job.why == (
            "waits for 1 CPU and 100 MiB of memory: it may not use carol (taint maintenance:NoExecute), dan (cordoned)"
        )
        lab.engine.show(lab_node("dan"))
        started = await lab.running(job)
        assert started.tasks[0].placement is not None
        assert started.tasks[0].placement.node == "dan"


@pytest.mark.asyncio
async def test_what_a_sku_tolerates_is_in_the_plans_of_its_tasks_and_of_no_others(tmp_path: Path) -> None:
    """An engine that hands tasks to a cluster has to tell it."""
    tolerated = (Toleration(key="maintenance", operator=Operator.EXISTS),)
    rules = NodeRules({"TITANX": NodeRule(tolerations=tolerated)})
    async with cluster(tmp_path, tainted(lab_node("carol")), lab_node("dan", gpus=0), rules=rules) as lab:
        await lab.running(await lab.submit(on_gpu()))
        await lab.running(await lab.submit(make_spec(roles=[make_role()])))
        plans = {plan.placement.node: plan.tolerations for plan in await lab.engine.started(2)}
    assert plans == {"carol": tolerated, "dan": ()}
