"""What OpenPAI's JavaScript SDK asks about a site besides jobs: storages, groups, kinds of hardware, nodes, pods."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from pai_backend.api.wire import MEDIA_TYPE
from pai_backend.engine.base import EngineError
from pai_backend.model.job import Phase, State
from pai_backend.model.node import Gpu, Node
from pai_backend.storage.local_files import LocalFiles
from pai_backend.storage.reach import TeamMount
from pai_backend.storage.room import FileRoom
from tests.integration.api.test_openpai_jobs import placed, saved, submitted
from tests.support.api_site import BOB, ROOT, ApiSite, running_api
from tests.support.documents import scm_document

NODE = Node(
    name="carol",
    address="10.0.0.1",
    machine="laptop",
    cpus=8,
    memory_mb=16_384,
    gpus=(Gpu(index=0, type="TITANX"),),
    schedulable=False,
)
MOUNTS = (
    TeamMount("models", "hdfs://nn/models", users=("bob",)),
    TeamMount("datasets", "nfs://user:hunter2@server/data"),
)


@pytest_asyncio.fixture
async def site(tmp_path: Path) -> AsyncIterator[ApiSite]:
    files = FileRoom(LocalFiles(tmp_path / "fs"), mounts=MOUNTS)
    async with running_api(tmp_path, files=files, nodes=[NODE]) as running:
        yield running


@pytest.mark.asyncio
async def test_storages_are_those_that_are_granted_and_never_say_where_they_are(site: ApiSite) -> None:
    async with site.client() as alice, site.client(BOB) as bob:
        mine = (await alice.get("/api/v2/storages")).json()
        theirs = (await bob.get("/api/v2/storages")).json()
        default = [(await bob.get(f"/api/v2/storages?{query}")).json() for query in ("default", "default=true")]
        one = await alice.get("/api/v2/storages/datasets")
        refused = [await alice.get(f"/api/v2/storages/{name}") for name in ("models", "nowhere")]
    assert mine == {"storages": [{"name": "datasets", "share": True, "volumeName": "datasets"}]}
    assert [each["name"] for each in theirs["storages"]] == ["datasets", "models"]
    assert default == [{"storages": []}] * 2
    assert (one.json()["type"], one.json()["data"]) == ("nfs", {})
    assert "hunter2" not in one.text
    assert [(each.status_code, each.json()["code"]) for each in refused] == [(404, "NoStorageError")] * 2
    assert refused[0].json()["message"].replace("models", "nowhere") == refused[1].json()["message"]


@pytest.mark.asyncio
async def test_groups_are_everybody_and_administrators(site: ApiSite) -> None:
    async with site.client() as alice, site.client(ROOT) as root:
        groups = (await alice.get("/api/v2/groups")).json()
        one = (await alice.get("/api/v2/groups/admingroup")).json()
        admins = [await client.get("/api/v2/groups/admingroup/userlist") for client in (alice, root)]
        everybody = (await root.get("/api/v2/groups/default/userlist")).json()
        missing = await alice.get("/api/v2/groups/nobody")
    assert [each["groupname"] for each in groups] == ["default", "admingroup"]
    assert one["extension"]["acls"] == {
        "admin": True,
        "virtualClusters": ["default", "research"],
        "manages": [],
        "everything": True,
        "storageConfigs": ["datasets"],
    }
    assert [[each["username"] for each in answer.json()] for answer in admins] == [[], ["root"]]
    assert {"alice", "bob", "root"} <= {each["username"] for each in everybody}
    assert (missing.status_code, missing.json()["code"]) == (404, "NoGroupError")


@pytest.mark.asyncio
@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_administrators_see_nodes_and_pods_as_kubernetes_tells_of_them(site: ApiSite, version: str) -> None:
    async with site.client() as alice, site.client(ROOT) as root:
        job = await submitted(site, alice)
        await saved(site, job, {"tasks": placed(job).tasks, "state": State.RUNNING, "phase": Phase.RUNNING})
        refused = [await alice.get(f"/api/{version}/kubernetes/{what}") for what in ("nodes", "pods")]
        nodes = (await root.get(f"/api/{version}/kubernetes/nodes")).json()
        pods = (await root.get(f"/api/{version}/kubernetes/pods")).json()
    assert [each.status_code for each in refused] == [403, 403]
    ((node,), first) = nodes["items"], pods["items"][0]
    assert (nodes["kind"], node["metadata"]["name"], node["spec"]["unschedulable"]) == ("NodeList", "carol", True)
    assert node["status"]["capacity"] == {"cpu": "8", "memory": "16384Mi", "nvidia.com/gpu": "1"}
    assert node["status"]["conditions"] == [{"type": "Ready", "status": "True", "message": ""}]
    assert {pod["metadata"]["name"] for pod in pods["items"]} == {task.uid for task in job.tasks}
    assert (first["spec"]["nodeName"], first["status"]) == ("carol", {"phase": "Running", "hostIP": "127.0.0.1"})
    assert first["metadata"]["labels"] == {"userName": "alice", "jobName": "hello", "virtualCluster": "default"}


@pytest.mark.asyncio
async def test_a_slash_behind_a_path_changes_nothing(site: ApiSite) -> None:
    async with site.client() as alice:
        await submitted(site, alice)
        for path in ("users", "users/me", "jobs", "jobs/alice~hello", "virtual-clusters", "storages", "tokens"):
            plain, slashed = [await alice.get(f"/api/v2/{path}{end}") for end in ("", "/")]
            assert (plain.status_code, plain.json()) == (slashed.status_code, slashed.json())
            assert plain.status_code == 200
        assert (await alice.get("/api/v2/jobs//")).status_code == 404


@pytest.mark.asyncio
async def test_kinds_of_hardware_stand_below_their_virtual_cluster_too(site: ApiSite) -> None:
    async with site.client() as alice:
        below = await alice.get("/api/v2/virtual-clusters/default/sku-types")
        asked = await alice.get("/api/v2/cluster/sku-types?vc=default")
        missing = await alice.get("/api/v2/virtual-clusters/nowhere/sku-types")
    assert below.json() == asked.json() == {"TITANX": {"gpu": 1, "cpu": 8, "memory": 16_384}}
    assert (missing.status_code, missing.json()["code"]) == (404, "NoVirtualClusterError")


@pytest.mark.asyncio
async def test_what_an_engine_that_is_away_is_needed_for_is_unavailable_and_the_job_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "the API server cannot be reached"

    async def away(*_arguments: object) -> tuple[int, int]:
        raise EngineError(words)

    async with running_api(tmp_path, nodes=[NODE], troubles=[words]) as site, site.client() as alice:
        monkeypatch.setattr(type(site.engine), "log_extent", away)
        job = await submitted(site, alice)
        answer = await alice.get(f"/api/v2/jobs/{job.id}/logs")
        detail = (await alice.get(f"/api/v2/jobs/{job.id}", headers={"Accept": MEDIA_TYPE})).json()
    assert (answer.status_code, answer.json()["code"]) == (503, "UnavailableError")
    assert words in answer.json()["message"]
    assert detail["doubt"] == f"What is shown may be out of date: {words}."


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("field", "value", "status"),
    [
        ("codeDir", "hdfs://nn/code", 400),
        ("codeDir", "/shared/code", 400),
        ("outputDir", "$PAI_DEFAULT_FS_URI/out", 202),
        ("outputDir", "hdfs://nn/out", 400),
        ("outputDir", "/mnt/out", 202),
        ("codeDir", "", 202),
    ],
)
async def test_what_cannot_be_fetched_is_refused_before_it_waits(
    tmp_path: Path, field: str, value: str, status: int
) -> None:
    async with running_api(tmp_path, can_stage=False) as site, site.client() as alice:
        answer = await alice.post("/api/v2/jobs", content=scm_document("staged", **{field: value}))
    assert answer.status_code == status, answer.text
    if status == 400:
        (fault,) = answer.json()["errors"]
        assert (fault["path"], "inputs_image" in fault["hint"]) == (f"$.{field}", True)
        assert fault["line"]
