"""Who uses the cluster and who waits, as each user is told; and that telling costs nothing while nothing changes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from bench.scheduling import config as pool
from pai_backend.api import snapshot
from pai_backend.api.context import CellRules
from pai_backend.api.snapshot import Snapshots
from pai_backend.engine.use_series import UseSample, UseSeries
from pai_backend.model.job import Job, Phase, State
from pai_backend.model.node import Gpu, Node
from pai_backend.scheduling.config.model import Sku
from pai_backend.scheduling.jobs.change import rebuilt
from pai_backend.scheduling.queue import Cap, Policy
from pai_backend.testing.builders import T0
from tests.integration.api.test_cells import document, machine, placed
from tests.support.api_site import ALICE, BOB, ROOT, ApiSite, running_api
from tests.support.interpreter_steps import counted
from tests.support.lab_config import two_vcs

CACHED_STEPS = 500_000  # 85,000 for the largest answer, most of them to receive it
"""Time of the processor that a look at 1,000 nodes may take when nothing has changed; this client's is in it."""


@pytest_asyncio.fixture
async def lab(tmp_path: Path) -> AsyncIterator[ApiSite]:
    """The seeds' lab; bob may only use ``vc1``."""
    nodes = [machine("carol"), machine("dan")]
    policy = Policy(users={"bob": Cap(gpus=1)})
    async with running_api(tmp_path, cells=CellRules(two_vcs(), {"bob": ("vc1",)}, policy=policy), nodes=nodes) as site:
        yield site


async def use(client: httpx.AsyncClient) -> dict[str, Any]:
    answer = await client.get("/api/v2/cluster/use")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def submit(client: httpx.AsyncClient, name: str, vc: str = "vc1", **extras: Any) -> None:
    answer = await client.post("/api/v2/jobs", content=document(name, vc, **extras))
    assert answer.status_code == 202, answer.text


@pytest.mark.asyncio
async def test_cells_are_counted_by_who_claims_them(lab: ApiSite) -> None:
    async with lab.client() as client:
        empty = await use(client)
        await submit(client, "train")
        await placed(lab, "alice~train")
        full = await use(client)
    cells = [
        {(row["name"], cell["leafType"]): cell for row in told["virtualClusters"] for cell in row["cells"]}
        for told in (empty, full)
    ]
    assert cells[0]["vc1", "GPU-D"] == {
        "leafType": "GPU-D",
        "pinnedCell": "",
        "shapes": {"GPU-D-NODE": 1},
        "owned": 1,
        "guaranteed": 0,
        "opportunistic": 0,
        "reserved": 0,
        "bad": 0,
        "free": 1,
    }
    changed = cells[1]["vc1", "GPU-D"]
    assert (changed["guaranteed"], changed["free"]) == (1, 0)
    assert cells[0]["default", "GPU-C"] == cells[1]["default", "GPU-C"]
    assert [(node["name"], node["gpus"], node["usedGpus"], node["badGpus"]) for node in full["nodes"]] == [
        ("carol", 1, 0, 0),
        ("dan", 1, 1, 0),
    ]


@pytest.mark.asyncio
async def test_an_opportunistic_job_uses_what_another_owns(lab: ApiSite) -> None:
    async with lab.client() as client:
        await submit(client, "guest", tasks=2, gangAllocation=False, hivedScheduler={"jobPriorityClass": "oppo"})
        await placed(lab, "alice~guest")
        (_, vc1) = (await use(client))["virtualClusters"]
    assert [(cell["leafType"], cell["owned"], cell["opportunistic"], cell["free"]) for cell in vc1["cells"]] == [
        ("GPU-D", 1, 1, 1),
        ("GPU-C", 0, 1, 0),
    ]
    assert [(job["id"], job["gpus"], job["opportunistic"]) for job in vc1["running"]] == [("alice~guest", 2, True)]


@pytest.mark.asyncio
async def test_names_of_others_are_for_administrators(lab: ApiSite) -> None:
    async with lab.client(ALICE) as alice, lab.client(BOB) as bob, lab.client(ROOT) as root:
        await submit(alice, "train")
        await placed(lab, "alice~train")
        await submit(alice, "next")
        await submit(bob, "mine")
        told = [(await use(client))["virtualClusters"][1] for client in (alice, bob, root)]
        granted = [row["granted"] for row in (await use(bob))["virtualClusters"]]
        most = [(await use(client))["virtualClusters"][1]["mostGpus"] for client in (alice, bob)]
    assert [[job["id"] for job in vc1["running"]] for vc1 in told] == [["alice~train"], [], ["alice~train"]]
    assert [(vc1["unlistedJobs"], vc1["unlistedGpus"], vc1["waiting"]) for vc1 in told] == [
        (0, 0, 2),
        (1, 1, 2),
        (0, 0, 2),
    ]
    assert [[(job["id"], job["position"], job["waiting"]) for job in vc1["queue"]] for vc1 in told] == [
        [("alice~next", 1, 2)],
        [("bob~mine", 2, 2)],
        [("alice~next", 1, 2), ("bob~mine", 2, 2)],
    ]
    assert "alice" not in str(told[1])
    assert granted == [False, True]
    assert most == [None, 1]


@pytest.mark.asyncio
async def test_without_configured_cells_everybody_shares_what_there_is(tmp_path: Path) -> None:
    lost = machine("dan").model_copy(update={"ready": False, "reason": "its agent is away"})
    async with running_api(tmp_path, nodes=[machine("carol"), lost]) as site, site.client() as client:
        told = await use(client)
    assert (told["shared"], [row["name"] for row in told["virtualClusters"]]) == (True, ["default", "research"])
    for row in told["virtualClusters"]:
        (cells,) = row["cells"]
        assert (cells["leafType"], cells["owned"], cells["bad"], cells["free"]) == ("TITANX", 2, 1, 1)
    assert [(node["name"], node["badGpus"], node["reason"]) for node in told["nodes"]] == [
        ("carol", 0, ""),
        ("dan", 1, "its agent is away"),
    ]


@pytest.mark.asyncio
async def test_a_machine_without_gpus_has_no_cells(tmp_path: Path) -> None:
    bare = machine("laptop").model_copy(update={"gpus": ()})
    async with running_api(tmp_path, nodes=[bare]) as site, site.client() as client:
        told = await use(client)
        await client.post("/api/v2/jobs", content=document("cpu", "default", gpus=0))
        waiting = await use(client)
    assert [row["cells"] for row in told["virtualClusters"]] == [[], []]
    assert [(node["gpus"], node["cpus"], node["usedCpus"]) for node in told["nodes"]] == [(0, 8, 0)]
    assert [job["name"] for job in waiting["virtualClusters"][0]["queue"]] == ["cpu"]


@pytest.mark.asyncio
async def test_the_cluster_is_rebuilt_once_for_each_change(lab: ApiSite, monkeypatch: pytest.MonkeyPatch) -> None:
    built = []

    def counted(*args: Any, **kwargs: Any) -> Any:
        built.append(args)
        return rebuilt(*args, **kwargs)

    monkeypatch.setattr(snapshot, "rebuilt", counted)
    paths = ("/api/v2/cluster/use", "/api/v2/cluster/cells", "/v1/inspect/clusterstatus/virtualclusters/vc1")
    async with lab.client() as client, lab.client(BOB) as bob:
        before = [(await client.get(path)).content for path in paths for _ in range(3)]
        await use(bob)
        assert len(built) == 1
        await submit(client, "train")
        assert [(await client.get(path)).content for path in paths] != before[::3]
        assert len(built) == 2
        await placed(lab, "alice~train")
        (found,) = (await client.get("/v1/inspect/affinitygroups/")).json()["items"]
    assert found["metadata"]["name"] == "alice~train/default"
    assert len(built) == 3


@pytest.mark.asyncio
async def test_another_configuration_or_node_is_seen_at_once(lab: ApiSite) -> None:
    nodes, rules = [machine("carol")], CellRules()
    snapshots = Snapshots(lab.store, lambda: nodes, lambda: rules)
    first = await snapshots.now()
    assert await snapshots.now() is first
    nodes.append(machine("dan"))
    second = await snapshots.now()
    assert list(second.placer.ledger.nodes) == ["carol", "dan"]
    nodes[1] = nodes[1].model_copy(update={"ready": False})
    third = await snapshots.now()
    assert third is not second
    rules = CellRules(two_vcs())
    fourth = await snapshots.now()
    assert list(fourth.placer.ledger.config.virtual_clusters) == ["default", "vc1"]
    assert await snapshots.now() is fourth


@pytest.mark.asyncio
async def test_a_look_at_a_thousand_nodes_is_quick_while_nothing_changes(tmp_path: Path) -> None:
    config = pool(1000)
    gpus = tuple(Gpu(index=index, type="GPU") for index in range(8))
    names = [cell.address for cell in config.physical[0].children]
    nodes = [Node(name=name, address="10.0.0.1", machine=name, cpus=64, memory_mb=2**19, gpus=gpus) for name in names]
    object.__setattr__(config, "skus", {"GPU": Sku(gpu=1, cpu=4, memory="32768Mi")})
    async with running_api(tmp_path, cells=CellRules(config), nodes=nodes) as site, site.client(ROOT) as client:
        for path in ("/api/v2/cluster/use", "/v1/inspect/affinitygroups/", "/api/v2/cluster/cells"):
            assert (await client.get(path)).status_code == 200
            with counted() as steps:
                answer = await client.get(path)
            assert answer.status_code == 200
            print(f"{path}: {steps.taken} steps, {len(answer.content)} bytes")
            assert steps.taken < CACHED_STEPS


async def begun(lab: ApiSite, job: Job) -> Job:
    """The job with its tasks running."""
    lease = await lab.store.leadership.latest()
    assert lease is not None
    tasks = tuple(task.model_copy(update={"phase": Phase.RUNNING, "state": State.RUNNING}) for task in job.tasks)
    runs = job.model_copy(update={"tasks": tasks, "phase": Phase.RUNNING, "state": State.RUNNING})
    return await lab.store.jobs.save(runs, seen=job, epoch=lease.epoch, events=[], at=T0)


@pytest.mark.asyncio
async def test_what_tasks_use_is_told_to_their_owner_and_administrators(lab: ApiSite) -> None:
    async with lab.client(ALICE) as alice, lab.client(BOB) as bob, lab.client(ROOT) as root:
        await submit(alice, "train")
        task = (await begun(lab, await placed(lab, "alice~train"))).tasks[0]
        assert lab.ctx.log_place is not None
        series, now = UseSeries(lab.ctx.log_place.path), int(lab.ctx.clock().timestamp())
        for look in range(120):
            series.append(task.uid, UseSample(now - 600 * look, 1.5, 2048, float(look), 512, 0))
        rows = [(await each.get("/api/v2/cluster/tasks?points=4")).json()["data"] for each in (alice, bob, root)]
        found = (await alice.get("/api/v2/jobs/train/metrics?seconds=6300&points=3")).json()
        refused = [
            (await bob.get("/api/v2/jobs/alice~train/metrics")).status_code,
            (await alice.get("/api/v2/jobs/train/metrics?role=nobody")).json()["code"],
        ]
        await lab.store.recovery.add_log_place("another directory")
        away = await alice.get("/api/v2/jobs/train/metrics")
    assert [[row["job"] for row in told] for told in rows] == [["alice~train"], [], ["alice~train"]]
    assert (rows[0][0]["node"], rows[0][0]["now"]["memoryMb"], len(rows[0][0]["trend"])) == ("dan", 2048, 4)
    (shown,) = found["tasks"]
    assert [point["gpuPercent"] for point in shown["samples"]] == [9.0, 5.5, 1.5]
    assert refused == [404, "NoTaskError"]
    assert (away.status_code, away.json()["code"]) == (503, "UnavailableError")
