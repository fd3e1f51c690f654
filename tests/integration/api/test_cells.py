"""Quotas at submit, who may use which virtual cluster, and cells as HiveD's inspect API shows them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from pai_backend.api.context import CellRules
from pai_backend.lifecycle.events import Placed
from pai_backend.lifecycle.step import stepped
from pai_backend.model.job import Job
from pai_backend.model.node import Gpu, Node, Placement
from pai_backend.scheduling.jobs.placer import Placer
from pai_backend.testing.builders import T0
from tests.support import job_queue
from tests.support.api_site import ALICE, BOB, ROOT, ApiSite, running_api
from tests.support.lab_config import two_vcs


def machine(name: str) -> Node:
    return Node(
        name=name,
        address="127.0.0.1",
        machine="laptop",
        cpus=8,
        memory_mb=16384,
        gpus=(Gpu(index=0, type="TITANX", simulated=True),),
    )


NODES = [machine("carol"), machine("dan")]
VCS = ("default", "vc1")


@pytest_asyncio.fixture
async def lab(tmp_path: Path) -> AsyncIterator[ApiSite]:
    """The seeds' lab; bob may only use ``vc1``."""
    async with running_api(tmp_path, cells=CellRules(two_vcs(), {"bob": ("vc1",)}), nodes=NODES) as site:
        yield site


def document(name: str, vc: str = "vc1", *, tasks: int = 1, gpus: int = 1, **extras: Any) -> bytes:
    role = {
        "instances": tasks,
        "dockerImage": "i",
        "resourcePerInstance": {"cpu": 1, "memoryMB": 100, "gpu": gpus},
        "commands": ["true"],
    }
    return json.dumps(
        {
            "protocolVersion": 2,
            "name": name,
            "type": "job",
            "prerequisites": [{"type": "dockerimage", "name": "i", "uri": "none"}],
            "taskRoles": {"train": role},
            "defaults": {"virtualCluster": vc},
            "extras": extras,
        }
    ).encode()


def hived(**more: Any) -> dict[str, Any]:
    return {"taskRoles": {"train": more}}


@pytest.mark.asyncio
async def test_a_gang_beyond_the_quota_is_refused_with_the_numbers(lab: ApiSite) -> None:
    async with lab.client(ALICE) as client:
        refused = await client.post("/api/v2/jobs", content=document("four", "default", tasks=4))
        grows = await client.post("/api/v2/jobs", content=document("grows", "default", tasks=4, gangAllocation=False))
        guest = document("guest", "default", tasks=4, hivedScheduler={"jobPriorityClass": "oppo"})
        lent = await client.post("/api/v2/jobs", content=guest)
    assert (refused.status_code, refused.json()["code"]) == (400, "InvalidProtocolError")
    assert "requests 4 SKUs, which exceeds the maximum of 1 SKUs in VC default" in refused.json()["message"]
    assert (grows.status_code, lent.status_code) == (202, 202)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("asked", "path", "said"),
    [
        (hived(skuType="V100"), "skuType", "there are no cells of type V100"),
        (hived(skuType="GPU-C"), "skuType", "the virtual cluster vc1 has no cells of type GPU-C"),
        (hived(pinnedCellId="mine"), "pinnedCellId", "the virtual cluster vc1 has no pinned cell mine"),
    ],
)
async def test_cells_that_are_not_there_are_named_with_their_place(
    lab: ApiSite, asked: dict[str, Any], path: str, said: str
) -> None:
    async with lab.client(ALICE) as client:
        answer = await client.post("/api/v2/jobs", content=document("odd", hivedScheduler=asked))
        jobs = (await client.get("/api/v2/jobs")).json()
    (fault,) = answer.json()["errors"]
    assert (answer.status_code, fault["path"]) == (400, f"$.extras.hivedScheduler.taskRoles.train.{path}")
    assert said in fault["message"]
    assert fault["line"] == 1
    assert fault["column"] > 1
    assert jobs == []


@pytest.mark.asyncio
async def test_a_virtual_cluster_that_is_not_granted_is_forbidden(lab: ApiSite) -> None:
    async with lab.client(BOB) as client:
        answer = await client.post("/api/v2/jobs", content=document("mine", "default"))
        granted = await client.post("/api/v2/jobs", content=document("mine", "vc1"))
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (403, "$.defaults.virtualCluster")
    assert granted.status_code == 202


async def placed(lab: ApiSite, name: str) -> Job:
    """The job on the cells that a controller would give it."""
    job = await lab.store.jobs.find(name)
    placer = Placer(two_vcs())
    for node in NODES:
        placer.set_node(node)
    found = job_queue.placed(placer, job)
    assert found
    places = {
        uid: Placement(
            node=place.node,
            address="127.0.0.1",
            machine="laptop",
            gpus=place.gpus,
            cells=place.cells,
            chain=place.chain,
            owned=place.owned,
        )
        for uid, place in found.items()
    }
    lease = await lab.store.leadership.acquire("test", 60, T0)
    assert lease is not None
    return await lab.store.jobs.save(stepped(job, Placed(places), T0), seen=job, epoch=lease.epoch, events=[], at=T0)


@pytest.mark.asyncio
async def test_cells_show_who_uses_them_and_groups_are_their_owners_alone(lab: ApiSite) -> None:
    async with lab.client(ALICE) as client, lab.client(BOB) as other, lab.client(ROOT) as admin:
        assert (await client.post("/api/v2/jobs", content=document("train"))).status_code == 202
        await placed(lab, "alice~train")
        cells = (await client.get("/api/v2/cluster/cells")).json()
        same = (await client.get("/v1/inspect/clusterstatus")).json()
        machines = (await client.get("/v1/inspect/clusterstatus/physicalcluster")).json()
        quotas = (await client.get("/v1/inspect/clusterstatus/virtualclusters/")).json()
        quota = (await client.get("/v1/inspect/clusterstatus/virtualclusters/vc1")).json()
        group = (await client.get("/v1/inspect/affinitygroups/alice~train/default")).json()
        seen = [
            [each["metadata"]["name"] for each in (await who.get("/v1/inspect/affinitygroups/")).json()["items"]]
            for who in (client, other, admin)
        ]
        hidden = await other.get("/v1/inspect/affinitygroups/alice~train/default")
        unknown = await client.get("/v1/inspect/clusterstatus/virtualclusters/vc9")
    assert cells == same
    assert (cells["physicalCluster"], cells["virtualClusters"]) == (machines, quotas)
    assert [(cell["cellAddress"], cell["cellState"], cell["vc"]) for cell in machines] == [
        ("carol", "Free", None),
        ("dan", "Used", "vc1"),
    ]
    assert quotas["vc1"] == quota
    assert quota[0]["physicalCell"]["cellAddress"] == "dan"
    assert group["status"]["physicalPlacement"] == {"dan": [0]}
    assert (group["status"]["priority"], group["status"]["state"]) == (10, "Allocated")
    assert seen == [["alice~train/default"], [], ["alice~train/default"]]
    assert (hidden.status_code, unknown.status_code) == (404, 404)


@pytest.mark.asyncio
async def test_a_virtual_cluster_shows_what_it_owns_and_uses(lab: ApiSite) -> None:
    async with lab.client(ALICE) as client:
        await client.post("/api/v2/jobs", content=document("train"))
        await placed(lab, "alice~train")
        clusters = (await client.get("/api/v2/virtual-clusters")).json()
    assert clusters["vc1"]["resourcesGuaranteed"] == {"cpu": 2, "memory": 4096, "gpu": 1, "vCores": 2, "GPUs": 1}
    assert [(clusters[name]["capacity"], clusters[name]["usedCapacity"]) for name in ("default", "vc1")] == [
        (50, 0),
        (50, 50),
    ]


@pytest.mark.asyncio
async def test_the_kinds_that_are_told_are_the_configurations_and_can_be_asked_for(lab: ApiSite) -> None:
    async with lab.client() as client:
        told = {vc: (await client.get("/api/v2/cluster/sku-types", params={"vc": vc})).json() for vc in VCS}
        every = (await client.get("/api/v2/cluster/sku-types")).json()
        unit = {"gpu": 1, "cpu": 2, "memory": 4096}
        assert told == {"default": {"GPU-C": unit}, "vc1": {"GPU-D": unit}}
        assert every == {"GPU-C": unit, "GPU-D": unit}
        for vc, kinds in told.items():
            for kind in kinds:
                sku: dict[str, Any] = {"hivedScheduler": {"taskRoles": {"train": {"skuType": kind}}}}
                answer = await client.post("/api/v2/jobs", content=document(f"of-{kind}", vc, **sku))
                assert answer.status_code == 202, answer.text
