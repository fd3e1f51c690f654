"""A gang starts whole: while one of its pods cannot come, no other has a node or runs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.kubernetes.cluster.cluster import Cluster
from tests.kubernetes.cluster.commands import NotInTime, until
from tests.kubernetes.cluster.images import BUSYBOX
from tests.kubernetes.cluster.kubectl import Json, Kubectl
from tests.kubernetes.events import until_told
from tests.kubernetes.faults.jobs import LINE
from tests.kubernetes.faults.obstacles import SAID, a_rule_against, take_room
from tests.kubernetes.faults.product import END, LIMIT_S, Product, Site, product_on
from tests.support.documents import scm_document

pytestmark = pytest.mark.asyncio(loop_scope="session")

TASKS = "app.kubernetes.io/name=jupyter-pai-task"


class Gang:
    """A job of two tasks, ``a`` and ``b``, each of which asks for so many CPUs."""

    def __init__(self, product: Product, name: str, cpus: int = 1) -> None:
        self.product, self.name, self._cpus = product, name, cpus

    async def submit(self) -> None:
        common = {"taskNumber": 1, "cpuNumber": self._cpus, "memoryMB": 100, "gpuNumber": 0, "command": LINE}
        roles = [{"name": name, **common} for name in "ab"]
        document = scm_document(self.name, taskRoles=roles, gpuType="", image=BUSYBOX)
        about = {"name": self.name, "filename": "job.json"}
        answer = await self.product.client.post("/api/v2/jobs", content=document, params=about)
        assert answer.status_code == 202, answer.text

    async def job(self) -> Json:
        return dict((await self.product.client.get(f"/api/v2/jobs/{self.name}")).json())

    async def until(self, said: str) -> Json:
        """The job once it, or one of its events, has these words."""
        last: Json = {}

        async def says() -> bool:
            last.clear()
            last.update(await self.job())
            events = await self.product.client.get(f"/api/v2/jobs/{self.name}/events")
            return said in str(last) or said in events.text

        try:
            await until(says, f"{self.name} to say {said!r}", LIMIT_S, 0.1)
        except NotInTime as late:
            raise NotInTime(f"{late}: {last}\n{self.product.log()}") from None
        return last

    async def ended(self) -> str:
        """Its state once it has ended."""

        async def over() -> bool:
            return (await self.job())["state"] in END

        await until(over, f"{self.name} to end", LIMIT_S, 0.1)
        return str((await self.job())["state"])

    async def stop(self) -> None:
        path = f"/api/v2/jobs/{self.name}/executionType"
        assert (await self.product.client.put(path, json={"value": "STOP"})).status_code == 202

    def runs(self) -> int:
        """How many commands of it have run."""
        return sum(line.startswith(self.name) for line in self.product.site.lines())


async def pods(kubectl: Kubectl) -> list[Json]:
    return list((await kubectl.get("pods", "-l", TASKS))["items"])


async def until_gone(kubectl: Kubectl) -> None:
    """Wait until the cluster has no pod and no plan of a task any longer."""

    async def none() -> bool:
        secrets = (await kubectl.get("secrets", "-l", TASKS))["items"]
        return not await pods(kubectl) and not any(each.get("data") for each in secrets)

    await until(none, "nothing to be left of the tasks", LIMIT_S, 0.2)


@asynccontextmanager
async def room_for_one_pod(kubectl: Kubectl) -> AsyncIterator[None]:
    """A quota that refuses every second pod, until the block ends."""
    await kubectl("create", "quota", "one", "--hard=pods=1")
    await kubectl("wait", "--for=jsonpath={.status.hard.pods}=1", "quota/one", "--timeout=60s")
    try:
        yield
    finally:
        await kubectl("delete", "quota", "one", "--ignore-not-found")


@asynccontextmanager
async def none_has_a_node(kubectl: Kubectl) -> AsyncIterator[None]:
    """Fails when a pod of a task has a node at some time while the block runs."""
    found: list[str] = []

    async def look() -> None:
        while True:
            found.extend(each["metadata"]["name"] for each in await pods(kubectl) if each["spec"].get("nodeName"))
            await asyncio.sleep(0.1)

    looking = asyncio.create_task(look())
    try:
        yield
    finally:
        looking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await looking
    assert not found, f"pods that had a node: {sorted(set(found))}"


@pytest.mark.parametrize("binding", ["scheduler", "direct"])
async def test_while_a_quota_refuses_one_pod_no_other_has_a_node_also_after_a_crash(
    site: Site, tmp_path: Path, binding: str
) -> None:
    kubectl = site.kubectl
    async with product_on(site, tmp_path / "backend", {"binding": binding}) as product:
        gang = Gang(product, "halved")
        async with room_for_one_pod(kubectl), none_has_a_node(kubectl):
            await gang.submit()
            await gang.until("quota of its namespace is used up")
            (only,) = await pods(kubectl)
            assert only["spec"]["schedulingGates"] == [{"name": "jupyter-pai/gang"}]
            told = await until_told(kubectl, only["metadata"]["name"], {"Placed", "GangWaiting"})
            assert told["GangWaiting"] == "waits until the pods of all 2 tasks that start with it are made"
            assert product.kill_controller()
            await until(lambda: asyncio.sleep(0, "controller" in product.backend.children()), "the next one", LIMIT_S)
            await gang.until("quota of its namespace is used up")
        assert await gang.ended() == "SUCCEEDED"
        assert gang.runs() == 2
        told = await until_told(kubectl, only["metadata"]["name"], {"GangOpened"})
        assert " of the job halved (" in told["Placed"]
        assert told["Placed"].endswith(f" is placed on {only['metadata']['annotations']['jupyter-pai/node']}")
        await until_gone(kubectl)


async def test_a_gang_that_is_stopped_before_it_is_whole_leaves_nothing(site: Site, tmp_path: Path) -> None:
    kubectl = site.kubectl
    async with product_on(site, tmp_path / "backend") as product:
        gang = Gang(product, "given-up")
        async with room_for_one_pod(kubectl), none_has_a_node(kubectl):
            await gang.submit()
            await gang.until("quota of its namespace is used up")
            await gang.stop()
            assert await gang.ended() == "STOPPED"
            await until_gone(kubectl)
        assert gang.runs() == 0


async def test_a_gang_whose_room_is_taken_before_it_is_whole_holds_nothing_and_starts_when_there_is_room(
    site: Site, faulty: Cluster, tmp_path: Path
) -> None:
    """So many CPUs that each node has room for one task: others take those of one node."""
    kubectl = site.kubectl
    nodes = (await faulty.kubectl.get("nodes"))["items"]
    least = min(int(float(each["status"]["allocatable"]["cpu"])) for each in nodes)
    async with product_on(site, tmp_path / "backend", patience={"schedule_s": 3}) as product:
        gang = Gang(product, "robbed", cpus=least)
        async with none_has_a_node(kubectl):
            async with room_for_one_pod(kubectl.within(kubectl.namespace)):
                await gang.submit()
                await gang.until("quota of its namespace is used up")
                await take_room(faulty.kubectl, "dan", 0.5)
            await gang.until("has no room for its gang now")
            job = await gang.until(f"waits for {least} CPU")
            assert job["state"] == "WAITING"
        await faulty.kubectl("delete", "pod", "hog-dan", "--grace-period=1", "--timeout=60s")
        assert await gang.ended() == "SUCCEEDED"
        assert gang.runs() == 2
        await until_gone(kubectl)


async def test_a_rule_against_one_pod_of_a_gang_fails_it_before_another_runs(site: Site, tmp_path: Path) -> None:
    kubectl = site.kubectl
    async with product_on(site, tmp_path / "backend") as product, a_rule_against(kubectl, "b"):
        gang = Gang(product, "forbidden")
        async with none_has_a_node(kubectl):
            await gang.submit()
            assert await gang.ended() == "FAILED"
            await until_gone(kubectl)
        assert SAID in str(await gang.job())
        assert gang.runs() == 0
