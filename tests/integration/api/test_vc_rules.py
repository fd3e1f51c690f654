"""The rules of a virtual cluster over HTTP and by `pai vc`: who reads and changes them, and what they refuse."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from pai_backend.api.context import CellRules
from pai_backend.model.vc_rules import LongestRun
from pai_backend.scheduling.queue import Cap, Policy, VcCaps
from pai_backend.store.auditing import AuditFilter
from tests.integration.api.test_cells import document, machine
from tests.integration.api.test_groups import acls
from tests.integration.api.test_groups import put as put_group
from tests.integration.api.test_key_commands import Pai
from tests.integration.api.test_scopes import token_of
from tests.support.api_site import ALICE, BOB, ROOT, ApiSite, running_api
from tests.support.documents import scm_document
from tests.support.lab_config import two_vcs

PATH = "/api/v2/virtual-clusters/vc1/rules"


@pytest_asyncio.fixture
async def lab(tmp_path: Path) -> AsyncIterator[ApiSite]:
    """Everyone may use ``vc1``, and bob manages ``default``; the settings limit runs to an hour."""
    policy = Policy(vc=VcCaps(user=Cap(gpus=4), longest_run=LongestRun(timedelta(hours=1))))
    cells = CellRules(two_vcs(), policy=policy)
    async with running_api(tmp_path, cells=cells, nodes=[machine("carol"), machine("dan")]) as site:
        await put_group(site, "groups/default", extension=acls(virtualClusters=["vc1"]))
        await put_group(site, "users/bob", manages=["default"])
        yield site


async def put(site: ApiSite, token: str, vc: str = "vc1", **rules: Any) -> tuple[int, dict[str, Any]]:
    async with site.client(token) as client:
        answer = await client.put(f"/api/v2/virtual-clusters/{vc}/rules", json=rules)
        return answer.status_code, answer.json()


@pytest.mark.asyncio
async def test_managers_and_administrators_change_them_and_who_may_use_it_reads_them(lab: ApiSite) -> None:
    assert (await put(lab, ALICE, mostJobsPerUser=1))[0] == 403
    assert (await put(lab, BOB, mostJobsPerUser=1))[0] == 403, "he manages another one"
    assert (await put(lab, BOB, "default", mostJobsPerUser=1))[0] == 200
    assert (await put(lab, ROOT, "nowhere", mostJobsPerUser=1))[0] == 404
    code, found = await put(lab, ROOT, mostJobsPerUser=2, images=["registry.lab/*"], longestRunS=60)
    assert (code, found["mayChange"], found["changedBy"]) == (200, True, "root")
    assert found["inForce"] == {"mostGpusPerUser": 4, "mostJobsPerUser": 2, "longestRunS": 3600}
    assert found["fromConfiguration"] == ["mostGpusPerUser", "longestRunS"]
    async with lab.client(ALICE) as alice, lab.client(BOB) as bob:
        read = (await alice.get(PATH)).raise_for_status().json()
        assert read == {**found, "mayChange": False}
        assert (await bob.get(PATH)).json()["mayChange"] is False
        assert (await alice.get("/api/v2/virtual-clusters/default/rules")).status_code == 403
        assert (await bob.get("/api/v2/virtual-clusters/default/rules")).json()["mayChange"] is True
    _, found = await put(lab, ROOT, images=None)
    assert (found["rules"]["images"], found["rules"]["mostJobsPerUser"]) == (None, 2), "what is left out stays"
    events = await lab.store.audit.page(AuditFilter(types=("virtual-cluster.rules-changed",), limit=10))
    done = [(each.by, each.subject, each.detail) for each in reversed(events) if each.result == "done"]
    assert done == [
        ("bob", "default", "most_jobs_per_user: 1"),
        ("root", "vc1", "most_jobs_per_user: 2, longest_run_s: 60, images: ['registry.lab/*']"),
        ("root", "vc1", "images: no rule"),
    ]
    refused = [(each.by, each.result) for each in events if each.result != "done"]
    assert {by for by, _ in refused} == {"alice", "bob"}


@pytest.mark.asyncio
async def test_a_token_of_one_virtual_cluster_reads_and_changes_that_one_alone(lab: ApiSite) -> None:
    token = str((await token_of(lab, ROOT, "read,admin", virtualCluster="vc1"))["token"])
    assert (await put(lab, token, mostJobsPerUser=1))[0] == 200
    assert (await put(lab, token, "default", mostJobsPerUser=1))[0] == 403
    async with lab.client(token) as client:
        assert (await client.get(PATH)).status_code == 200
        assert (await client.get("/api/v2/virtual-clusters/default/rules")).status_code == 403
    reader = str((await token_of(lab, ROOT, "read"))["token"])
    assert (await put(lab, reader, mostJobsPerUser=1))[0] == 403


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "wrong",
    [
        {"mostJobsPerUser": -1},
        {"mostGpusPerUser": "many"},
        {"longestRunS": 1},
        {"idleForS": 7200},
        {"idleBelowPercent": 5},
        {"idleBelowPercent": 0, "idleForS": 7200},
        {"idleBelowPercent": 101, "idleForS": 7200},
        {"idleBelowPercent": 5, "idleForS": 60},
        {"images": ["a b"]},
        {"images": [""]},
        {"images": ["x"] * 101},
        {"priorities": ["urgent"]},
        {"colour": "red"},
    ],
)
async def test_what_is_no_rule_changes_nothing(lab: ApiSite, wrong: dict[str, Any]) -> None:
    assert (await put(lab, ROOT, **wrong))[0] == 400
    assert await lab.store.vc_rules.all() == {}


@pytest.mark.asyncio
async def test_a_submission_that_breaks_them_is_refused_with_its_place_and_what_is_allowed(lab: ApiSite) -> None:
    await put(lab, ROOT, images=["registry.lab/*"], gpuTypes=["A100"], priorities=["oppo"])
    async with lab.client(ALICE) as alice:
        for path in ("jobs", "validate", "trial"):
            answer = await alice.post(f"/api/v2/{path}", content=document("hello", "vc1"))
            assert answer.status_code == (400 if path == "jobs" else 200)
            if path == "trial":
                assert answer.json()["outcome"] is None
                continue
            faults = answer.json()["errors"]
            assert [each["path"] for each in faults] == [
                "$.extras.hivedScheduler.jobPriorityClass",
                "$.extras.hivedScheduler.taskRoles.train.skuType",
                "$.taskRoles.train.dockerImage",
            ]
            assert "does not allow the image none (task role train)" in faults[2]["message"]
            assert faults[2]["hint"].startswith("Choose an image that matches: registry.lab/*;")
            assert faults[2]["line"] is not None
            assert faults[2]["column"] is not None
        v1 = json.loads(scm_document("old", virtualCluster="vc1"))
        refused = (await alice.post("/api/v2/jobs", content=json.dumps(v1))).json()["errors"]
        assert [each["path"] for each in refused[1:]] == ["$.gpuType", "$.image"]
        await put(lab, ROOT, images=None, gpuTypes=None, priorities=None)
        assert (await alice.post("/api/v2/jobs", content=document("hello", "vc1"))).status_code == 202


@pytest.mark.asyncio
async def test_pai_vc_shows_and_sets_them(
    lab: ApiSite, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pai = Pai(lab, monkeypatch, capsys)
    code, out, _ = await pai("vc", "show", "vc1")
    assert code == 0
    assert "GPUs of each user:" in out
    assert "1h, by the configuration of the backend" in out
    words = ["--images", "registry.lab/*,python", "--idle-below", "5%", "--idle-for", "2h", "--most-jobs-per-user", "3"]
    code, out, err = await pai("vc", "set", "vc1", *words, token=ROOT)
    assert (code, err) == (0, "")
    assert "registry.lab/*, python" in out
    assert "jobs whose GPUs work less than 5 % for 2h are stopped after a warning" in out
    code, out, _ = await pai("vc", "set", "vc1", "--idle-warn", "--clear", "images", token=ROOT)
    assert "owners of jobs whose GPUs work less than 5 % for 2h are warned" in out
    assert "registry.lab" not in out
    code, out, _ = await pai("vc", "set", "vc1", "--clear", "idle", token=ROOT)
    assert "no rule" in out
    assert (await lab.store.vc_rules.all())["vc1"].rules.most_jobs_per_user == 3
    for wrong in ([], ["--images", "x", "--clear", "images"], ["--idle-below", "5%"]):
        code, _, err = await pai("vc", "set", "vc1", *wrong, token=ROOT)
        assert code != 0
        assert err
    code, _, err = await pai("vc", "set", "vc1", "--most-jobs-per-user", "1")
    assert (code != 0, "managers" in err) == (True, True)
