"""Nodes that go away, are emptied or closed, and pods that others remove: a free retry elsewhere, told as it was."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pai_backend.engine.kubernetes import naming
from pai_backend.model.ids import TaskUid
from tests.kubernetes.cluster.cluster import Cluster
from tests.kubernetes.faults.audit import settled
from tests.kubernetes.faults.jobs import Wanted, obedient, patient
from tests.kubernetes.faults.product import Product, Site, product_on, timed
from tests.kubernetes.pod_cases import SHORT_OF_MEMORY, SHUTS_DOWN, changed_kubelet, shut_down_under

pytestmark = pytest.mark.asyncio(loop_scope="session")

Record = Callable[[str, object], None]


async def pod_of(product: Product, wanted: Wanted) -> str:
    """The pod that a job runs in now."""
    return naming.task_name(TaskUid(str((await product.task(wanted))["uid"])))


async def second_run(product: Product, wanted: Wanted, why: str) -> str:
    """Wait for the run after the one that was taken away, and see that it was told and free; the node."""

    def again(job: dict[str, Any]) -> bool:
        return bool(job["taskRoles"][0]["taskStatuses"][0]["attempt"] == 1 and job["state"] == "RUNNING")

    await product.until(wanted, again, "to run again")
    node = await product.running(wanted)
    told = await product.told(wanted)
    assert any(line.startswith("retry 1 free=True") for line in told), told
    assert any(f" {why} " in line for line in told if line.startswith("task ended")), told
    return node


async def test_a_kubelet_that_is_away_for_a_moment_is_not_noticed(product: Product, faulty: Cluster) -> None:
    steady = await product.submit(patient("steady"))
    node = faulty.nodes[await product.running(steady)]
    await product.hand_in(2)
    await node.kill("kubelet")
    await node.start_kubelet()
    await faulty.kubectl.until_ready(node.name)
    await product.release(steady)
    await settled(product)
    assert not [line for line in await product.told(steady) if line.startswith("retry")]


async def test_a_node_that_is_silent_is_told_of_with_its_age(product: Product, faulty: Cluster) -> None:
    """Before the cluster itself calls it not ready, and while it does."""
    steady = await product.submit(patient("silent"))
    node = faulty.nodes[await product.running(steady)]
    await node.kill("kubelet")
    try:
        said = re.compile(rf"node {node.name} has not reported for \d+ s")
        job = await product.until(steady, lambda job: said.search(str(job["doubt"])), "to tell that its node is silent")
        assert (job["state"], "not ready" in job["doubt"]) == ("RUNNING", False), job["doubt"]
        why = (await product.client.get(f"/api/v2/jobs/{steady.name}/why")).json()
        assert said.search(why["doubt"]), why
    finally:
        await node.start_kubelet()
        await faulty.kubectl.until_ready(node.name)
    await product.until(steady, lambda job: not job["doubt"], "to be certain again")
    await product.release(steady)
    await settled(product)


async def test_a_node_away_past_the_deadline_costs_a_free_retry_on_another(
    product: Product, faulty: Cluster, record_property: Record
) -> None:
    """The first run goes on over there and ends too: that counts for nothing; its pod goes when the node is back."""
    moved = await product.submit(patient("moved", attempts=2))
    node = faulty.nodes[await product.running(moved)]
    await node.kill("kubelet")
    try:
        with timed(record_property, "recovered_s_node_lost"):
            elsewhere = await second_run(product, moved, "lost")
        assert elsewhere != node.name
        await product.release(moved)
        await product.ended(moved)
    finally:
        await node.start_kubelet()
        await faulty.kubectl.until_ready(node.name)
    await settled(product)
    assert len([line for line in product.site.lines() if line.startswith("moved ")]) == 2


async def test_pods_that_others_remove_are_run_again_and_told_as_they_went(
    product: Product, record_property: Record
) -> None:
    by_hand, forced, evicted = [patient(name, attempts=2) for name in ("by-hand", "by-force", "by-eviction")]
    for each in (by_hand, forced, evicted):
        await product.submit(each)
    for each in (by_hand, forced, evicted):
        await product.running(each)
    kubectl = product.site.kubectl
    await kubectl("delete", "pod", await pod_of(product, by_hand), "--wait=false")
    await kubectl("delete", "pod", await pod_of(product, forced), "--force", "--grace-period=0", "--wait=false")
    pod = await pod_of(product, evicted)
    wish = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": kubectl.namespace}}
    path = f"/api/v1/namespaces/{kubectl.namespace}/pods/{pod}/eviction"
    await kubectl("create", "--raw", path, "-f", "-", given=json.dumps(wish))
    with timed(record_property, "recovered_s_three_pods_removed"):
        await second_run(product, by_hand, "vanished")
        await second_run(product, forced, "vanished")
        await second_run(product, evicted, "drained")
    for each in (by_hand, forced, evicted):
        await product.release(each)
    await settled(product)


async def test_a_node_that_runs_short_of_memory_has_not_let_a_task_succeed(product: Product, faulty: Cluster) -> None:
    """Its kubelet tells the command to end, which exits with 0, and the pod says that it has succeeded."""
    moved = await product.submit(obedient("short-of-memory", attempts=2))
    node = await product.running(moved)
    async with changed_kubelet(faulty, node, **SHORT_OF_MEMORY):
        assert await second_run(product, moved, "evicted") != node
    await product.release(moved)
    await settled(product)


async def test_a_node_that_is_shut_down_has_not_let_a_task_succeed(product: Product, faulty: Cluster) -> None:
    moved = await product.submit(obedient("shut-down", attempts=2))
    node = await product.running(moved)
    await faulty.nodes[node].start_logind()
    async with changed_kubelet(faulty, node, **SHUTS_DOWN):
        await shut_down_under(product.site.kubectl, faulty, node, await pod_of(product, moved))
        assert await second_run(product, moved, "lost") != node
    await product.release(moved)
    await settled(product)


async def test_a_task_that_fills_its_disk_has_not_succeeded(site: Site, tmp_path: Path) -> None:
    """Of which the pod says nothing at all, since its command exits with 0 when it is told to end."""
    async with product_on(site, tmp_path / "small", {"ephemeral_storage_mb": 20}) as product:
        fills = "trap 'exit 0' TERM; dd if=/dev/zero of=big bs=1M count=40; sleep 600 & wait"
        wanted = await product.submit(Wanted("fills-its-disk", fills))
        job = await product.ended(wanted)
        exit_ = (await product.task(wanted))["exit"]
        assert (job["state"], exit_["reason"]) == ("FAILED", "storage-exceeded"), exit_


async def test_a_node_is_drained_and_closed_and_nothing_starts_there_until_it_is_opened(
    product: Product, faulty: Cluster, record_property: Record
) -> None:
    kubectl = faulty.kubectl
    moved = await product.submit(patient("drained", attempts=2))
    node = await product.running(moved)
    (other,) = {"carol", "dan"} - {node}
    try:
        drain = asyncio.create_task(kubectl("drain", node, "--delete-emptydir-data", "--timeout=100s"))
        with timed(record_property, "recovered_s_drain"):
            assert await second_run(product, moved, "drained") == other
        await drain
        await kubectl("cordon", other)
        await product.until_closed(other)  # before, a task would be put there, refused and put back into the queue
        closed = await product.submit(Wanted("waits-for-a-node"))
        job = await product.until(closed, lambda job: "cordon" in str(job["why"]), "to say what it waits for")
        assert job["state"] == "WAITING"
    finally:
        await kubectl("uncordon", node, other)
    await product.release(moved)
    await settled(product)
