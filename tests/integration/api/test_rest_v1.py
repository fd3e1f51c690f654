"""OpenPAI's REST v1: its paths, words and statuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from pai_backend.model.job import Phase, State
from tests.integration.api.test_openpai_jobs import placed, saved, submitted
from tests.support.api_site import BOB, ROOT, ApiSite, running_api
from tests.support.documents import scm_document

PLAIN_V1 = {"jobName": "old", "image": "example/one", "killAllOnCompletedTaskNumber": 1, "taskRoles": []}
ROLE = {"name": "main", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 256, "gpuNumber": 0, "command": "true"}


@pytest.mark.asyncio
@pytest.mark.parametrize("path", ["/api/v1/jobs", "/api/v1/user/alice/jobs", "/rest-server/api/v1/jobs"])
async def test_a_submission_answers_201_with_its_location_and_the_job(api: ApiSite, path: str) -> None:
    async with api.client() as client:
        answer = await client.post(path, content=scm_document())
        there = await client.get(answer.headers["location"])
    assert (answer.status_code, answer.json()["name"]) == (201, "hello")
    assert answer.headers["location"] == "/api/v1/user/alice/jobs/hello"
    assert answer.json()["jobStatus"]["state"] == "WAITING"
    assert there.json()["debugId"] == answer.json()["debugId"]
    assert "x-warning" not in answer.headers


@pytest.mark.asyncio
async def test_put_submits_under_the_name_of_the_path_and_refuses_a_second(api: ApiSite) -> None:
    async with api.client() as client:
        first = await client.put("/api/v1/jobs/mine", content=scm_document("other"))
        second = await client.put("/api/v1/user/alice/jobs/mine", content=scm_document("other"))
        foreign = await client.put("/api/v1/user/bob/jobs/his", content=scm_document())
        posted = await client.post("/api/v1/user/bob/jobs", content=scm_document())
    assert (first.status_code, first.json()["name"]) == (201, "mine")
    assert (second.status_code, second.json()["code"]) == (409, "ConflictJobError")
    assert [(each.status_code, each.json()["code"]) for each in (foreign, posted)] == [(403, "ForbiddenUserError")] * 2


@pytest.mark.asyncio
async def test_an_obsolete_field_is_followed_and_warned_of_in_a_header(api: ApiSite) -> None:
    v1 = scm_document("old", gpuType=None, killAllOnCompletedTaskNumber=1)
    async with api.client() as client:
        answer = await client.post("/api/v1/jobs", content=v1)
    assert answer.status_code == 201, answer.text
    assert "killAllOnCompletedTaskNumber is obsolete" in answer.headers["x-warning"]


@pytest.mark.asyncio
async def test_a_job_that_is_being_stopped_runs_in_the_words_of_v1(api: ApiSite) -> None:
    async with api.client() as client:
        job = await submitted(api, client)
        stopping = placed(job, state=State.STOPPING, phase=Phase.STOPPING)
        await saved(api, job, {"tasks": stopping.tasks, "state": State.STOPPING, "phase": Phase.STOPPING})
        detail = (await client.get("/api/v1/jobs/hello")).json()
        rows = (await client.get("/api/v1/jobs?state=RUNNING")).json()
        v2 = (await client.get("/api/v2/jobs?state=RUNNING")).json()
    assert (detail["jobStatus"]["state"], [row["state"] for row in rows], v2) == ("RUNNING", ["RUNNING"], [])


@pytest.mark.asyncio
async def test_the_same_job_is_at_both_paths_with_everything_below_them(api: ApiSite) -> None:
    document = scm_document()
    async with api.client() as client:
        job = await submitted(api, client)
        await saved(api, job, {"tasks": placed(job).tasks, "state": State.RUNNING, "phase": Phase.RUNNING})
        for base in ("/api/v1/jobs/hello", "/api/v1/user/alice/jobs/hello"):
            assert (await client.get(base)).json()["name"] == "hello"
            assert (await client.get(f"{base}/config")).content == document
            ssh = (await client.get(f"{base}/ssh")).json()
            here, (first, second) = ssh["gateway"], ssh["containers"]
            assert (first["sshIp"], first["sshPort"]) == (here["host"], here["port"]), "no user has a way around it"
            assert first["knownHosts"] == second["knownHosts"] == here["knownHosts"][0]
            assert [first["sshUser"], second["sshUser"]] == [each["alias"] for each in here["entries"]][1:]
            stopped = await client.put(f"{base}/executionType", json={"value": "STOP"})
            assert stopped.status_code == 202


@pytest.mark.asyncio
async def test_ssh_of_a_job_that_waits_is_404_as_in_openpai(api: ApiSite) -> None:
    async with api.client() as client:
        await submitted(api, client)
        for path in ("/api/v1/jobs/hello/ssh", "/api/v1/user/alice/jobs/hello/ssh", "/api/v2/jobs/alice~hello/ssh"):
            answer = await client.get(path, headers={"Accept": "*/*"})
            assert (answer.status_code, answer.json()["code"]) == (404, "NoJobSshInfoError")


@pytest.mark.asyncio
async def test_lists_of_a_user_are_for_that_user_and_admins(api: ApiSite) -> None:
    async with api.client() as alice, api.client(BOB) as bob, api.client(ROOT) as root:
        await submitted(api, alice, "hers")
        await submitted(api, bob, "his")
        own = (await alice.get("/api/v1/user/alice/jobs")).json()
        foreign = (await bob.get("/api/v1/user/alice/jobs")).json()
        of_admin = (await root.get("/api/v1/user/bob/jobs")).json()
        everything = (await root.get("/api/v1/jobs?order=name,ASC")).json()
    assert [[row["name"] for row in rows] for rows in (own, foreign, of_admin, everything)] == [
        ["hers"],
        [],
        ["his"],
        ["hers", "his"],
    ]


@pytest.mark.asyncio
@pytest.mark.parametrize("way", ["", "/config", "/ssh"])
async def test_a_job_of_another_user_looks_like_none_at_all(api: ApiSite, way: str) -> None:
    async with api.client() as alice, api.client(BOB) as bob:
        await submitted(api, alice)
        hidden = await bob.get(f"/api/v1/user/alice/jobs/hello{way}")
        absent = await bob.get(f"/api/v1/user/alice/jobs/nothing{way}")
    assert hidden.status_code == absent.status_code == 404
    assert hidden.json()["message"].replace("hello", "nothing") == absent.json()["message"]


@pytest.mark.asyncio
async def test_a_document_error_is_400_in_v1_too(api: ApiSite) -> None:
    async with api.client() as client:
        answer = await client.post("/api/v1/jobs", content=scm_document(image=None))
    assert (answer.status_code, answer.json()["code"]) == (400, "InvalidProtocolError")


@pytest.mark.asyncio
async def test_virtual_clusters_and_skus_have_openpais_fields(api: ApiSite) -> None:
    async with api.client() as client:
        job = await submitted(api, client)
        await saved(api, job, {"tasks": placed(job).tasks, "state": State.RUNNING, "phase": Phase.RUNNING})
        one = (await client.get("/api/v2/virtual-clusters/default")).json()
        both = (await client.get("/api/v1/virtual-clusters")).json()
        nodes = (await client.get("/api/v2/virtual-clusters?nodes")).json()
        skus = (await client.get("/api/v2/cluster/sku-types?vc=default")).json()
        missing = [await client.get(path) for path in ("/api/v2/virtual-clusters/x", "/api/v2/cluster/sku-types?vc=x")]
    assert both["default"] == one
    used = {"cpu": 2, "memory": 2048, "gpu": 2, "vCores": 2, "GPUs": 2}
    assert (one["resourcesUsed"], one["status"]) == (used, "RUNNING")
    assert one["resourcesTotal"]["gpu"] == 1
    assert nodes == {"carol": {"gpuUsed": 4, "gpuAvailable": -3, "gpuTotal": 1}}  # the test placed what has no room
    assert skus == {"TITANX": {"gpu": 1, "cpu": 8, "memory": 16384}}
    assert [(each.status_code, each.json()["code"]) for each in missing] == [(404, "NoVirtualClusterError")] * 2


@pytest.mark.asyncio
async def test_without_a_token_lists_of_v1_are_there_where_the_administrator_says_so(
    api: ApiSite, tmp_path: Path
) -> None:
    """And nothing else is: no job, no document, no list of v2, and no bad token is overlooked."""
    lists = ("/api/v1/jobs", "/api/v1/user/alice/jobs", "/rest-server/api/v1/jobs?username=alice,bob")
    async with api.client(None) as stranger:
        assert [(await stranger.get(path)).status_code for path in lists] == [401] * 3
    (tmp_path / "open").mkdir()
    async with (
        running_api(tmp_path / "open", anonymous_v1_list=True) as site,
        site.client() as alice,
        site.client(BOB) as bob,
        site.client(None) as stranger,
    ):
        await submitted(site, alice, "hers")
        await submitted(site, bob, "his")
        rows = [[row["name"] for row in (await stranger.get(path)).json()] for path in lists]
        others = ("/api/v2/jobs", "/api/v1/jobs/alice~hers", "/api/v1/jobs/alice~hers/config", "/api/v1/user/alice")
        refused = [(await stranger.get(path)).status_code for path in others]
        refused.append((await stranger.post("/api/v1/jobs", content=scm_document())).status_code)
        refused.append((await stranger.get(lists[0], headers={"Authorization": "Bearer wrong"})).status_code)
        own = [row["name"] for row in (await bob.get(lists[0])).json()]
    assert rows == [["his", "hers"], ["hers"], ["his", "hers"]]
    assert refused == [401] * 6
    assert own == ["his"]
