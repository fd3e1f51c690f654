"""Jobs over HTTP: what is sent, what is stored, what comes back."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from pai_backend.api.context import ApiContext
from pai_backend.launch.directories import TaskReach
from pai_backend.model.job import Desired, State
from tests.support.api_site import BOB, ROOT, ApiSite, running_api
from tests.support.documents import scm_document


async def submit(client: httpx.AsyncClient, name: str = "hello", **changes: object) -> dict[str, Any]:
    answer = await client.post("/api/v2/jobs", content=scm_document(name, **changes))
    assert answer.status_code == 202, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def end(api: ApiSite, name: str) -> None:
    """Let the controller's side end the job."""
    job, now = await api.store.jobs.find(name), datetime.now(UTC)
    lease = await api.store.leadership.acquire("test", 60, now, force=True)
    assert lease is not None
    ended = job.model_copy(update={"state": State.STOPPED, "completed_at": now})
    await api.store.jobs.save(ended, seen=job, epoch=lease.epoch, events=[], at=now)


@pytest.mark.asyncio
async def test_a_submitted_job_is_stored_waiting_with_a_task_for_each_instance(api: ApiSite) -> None:
    async with api.client() as client:
        body = await submit(client)
    job = await api.store.jobs.find("alice~hello")
    assert job.state is State.WAITING
    assert [task.uid for task in job.tasks] == [f"{job.uid}-0-0-0", f"{job.uid}-0-1-0"]
    assert [event.type for event in await api.store.events.of_job(job.uid)] == ["job.submitted"]
    assert body["uid"] == job.uid
    assert (body["status"], body["message"]) == (202, "job hello is submitted")


@pytest.mark.asyncio
async def test_detail_shows_stable_names_before_anything_runs(api: ApiSite) -> None:
    async with api.client() as client:
        await submit(client)
        detail = (await client.get("/api/v2/jobs/hello")).json()
    assert detail["id"] == "alice~hello"
    assert detail["alias"] == "hello"
    assert detail["sshCommand"] == "ssh -p 2222 hello@127.0.0.1"
    assert [task["alias"] for task in detail["taskRoles"][0]["taskStatuses"]] == ["hello--worker-0", "hello--worker-1"]
    port = api.url.rpartition(":")[2]
    web = next(service for service in detail["services"] if service["label"] == "web")
    assert web["url"] == f"http://hello--web.localhost:{port}/"
    assert web["pathUrl"] == "/s/hello--web/"
    assert web["port"] is None
    assert all(service["label"] != "ssh" for service in detail["services"])


@pytest.mark.asyncio
async def test_the_name_parameter_replaces_the_documents_name(api: ApiSite) -> None:
    async with api.client() as client:
        await submit(client)
        again = await client.post("/api/v2/jobs?name=hello2", content=scm_document("hello"))
    assert again.status_code == 202
    assert again.json()["name"] == "hello2"


@pytest.mark.asyncio
async def test_a_submit_may_replace_the_job_that_has_the_name(api: ApiSite) -> None:
    async with api.client() as client:
        first = await submit(client)
        taken = await client.post("/api/v2/jobs", content=scm_document())
        second = await client.post("/api/v2/jobs?replace=true", content=scm_document())
        rows = (await client.get("/api/v2/jobs?order=submissionTime,ASC")).json()
    assert (taken.status_code, taken.json()["code"]) == (409, "ConflictJobError")
    assert second.status_code == 202, second.text
    assert (second.json()["name"], second.json()["alias"]) == ("hello", "hello")
    assert [row["name"] for row in rows] == [f"hello-{first['uid'][1:5]}", "hello"]
    assert (await api.store.jobs.get(first["uid"])).desired is Desired.STOP


@pytest.mark.asyncio
@pytest.mark.parametrize("by_query", [False, True])
async def test_a_job_is_not_called_like_anothers_uid(api: ApiSite, by_query: bool) -> None:
    """Whoever stops or reads a job by its uid means that one."""
    async with api.client() as client:
        uid = (await submit(client))["uid"]
        query = f"?name={uid}" if by_query else ""
        refused = await client.post(f"/api/v2/jobs{query}", content=scm_document("other" if by_query else uid))
        checked = (await client.post("/api/v2/validate", content=scm_document(uid))).json()
        taken = (await client.get(f"/api/v2/jobs/{uid}")).json()
    assert refused.status_code == 400
    fault = refused.json()["errors"][0]
    assert (fault["path"], fault["line"]) == (("?name", None) if by_query else ("$.jobName", 2))
    assert "has the form of a job uid" in fault["message"]
    assert (checked["valid"], checked["errors"][0]["path"]) == (False, "$.jobName")
    assert taken["name"] == "hello"


@pytest.mark.asyncio
@pytest.mark.parametrize("path", ["/api/v2/jobs/hello/config", "/api/v1/jobs/alice~hello/config"])
async def test_the_document_comes_back_byte_for_byte_and_as_no_page(api: ApiSite, path: str) -> None:
    """Whatever type its author gave it: a page of our origin could do all that its reader may."""
    text = b"// <script>alert(1)</script>\n" + scm_document()
    async with api.client() as client:
        sent = await client.post("/api/v2/jobs?filename=a.html", content=text, headers={"Content-Type": "text/html"})
        sent.raise_for_status()
        answer = await client.get(path)
    assert answer.content == text
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-disposition"] == "attachment"
    assert "sandbox" in answer.headers["content-security-policy"]


@pytest.mark.asyncio
async def test_validate_changes_nothing_and_tells_all_faults(api: ApiSite) -> None:
    async with api.client() as client:
        good = (await client.post("/api/v2/validate", content=scm_document())).json()
        bad = (await client.post("/api/v2/validate", content=scm_document(image=None, retryCount="many"))).json()
        jobs = (await client.get("/api/v2/jobs")).json()
    assert (good["valid"], good["name"], good["errors"]) == (True, "hello", [])
    assert good["spec"]["taskRoles"][0]["instances"] == 2
    assert bad["valid"] is False
    assert {fault["path"] for fault in bad["errors"]} == {"$.image", "$.retryCount"}
    assert jobs == []


@pytest.mark.asyncio
async def test_stop_is_recorded_once_and_may_be_repeated(api: ApiSite) -> None:
    async with api.client() as client:
        await submit(client)
        first = await client.put("/api/v2/jobs/alice~hello/executionType", json={"value": "STOP"})
        again = await client.put("/api/v2/jobs/hello/executionType", json={"value": "STOP"})
    job = await api.store.jobs.find("alice~hello")
    assert (first.status_code, again.status_code) == (202, 202)
    assert (first.json()["status"], first.json()["message"]) == (202, "job hello is asked to stop")
    types = [event.type for event in await api.store.events.of_job(job.uid)]
    assert types.count("job.stop-requested") == 1


@pytest.mark.asyncio
async def test_start_restarts_what_has_ended_and_leaves_alone_what_goes_on(api: ApiSite) -> None:
    path, start = "/api/v2/jobs/hello/executionType", {"value": "START"}
    async with api.client() as client, api.client(BOB) as bob:
        await submit(client)
        goes_on = await client.put(path, json=start)
        await client.put(path, json={"value": "STOP"})
        stopping = await client.put(path, json=start)
        await end(api, "alice~hello")
        foreign = await bob.put("/api/v2/jobs/alice~hello/executionType", json=start)
        started = await client.put("/api/v1/jobs/alice~hello/executionType", json=start)
        detail = (await client.get("/api/v2/jobs/hello")).json()
    assert (goes_on.status_code, goes_on.json()["message"]) == (202, "job hello is started already")
    assert (stopping.status_code, stopping.json()["code"]) == (403, "ReadOnlyJobError")
    assert "pai status --watch alice~hello" in stopping.json()["hint"]
    assert foreign.status_code == 404
    assert (started.status_code, started.json()["message"]) == (202, "job hello is restarted")
    assert (detail["state"], detail["alias"], detail["exit"]) == ("WAITING", "hello", None)


@pytest.mark.asyncio
async def test_a_job_that_could_not_be_submitted_now_is_not_restarted(
    api: ApiSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its virtual cluster was removed since: it would wait for ever."""
    async with api.client() as client, api.client(ROOT) as root:
        await submit(client, virtualCluster="research")
        await end(api, "alice~hello")
        monkeypatch.setattr(ApiContext, "virtual_clusters", ("default",))
        for who in (client, root):
            refused = await who.put("/api/v2/jobs/alice~hello/executionType", json={"value": "START"})
            assert (refused.status_code, refused.json()["code"]) == (403, "ReadOnlyJobError")
            assert "There is no virtual cluster research" in refused.json()["message"]
    assert (await api.store.jobs.find("alice~hello")).state is State.STOPPED


@pytest.mark.asyncio
async def test_list_pages_filters_and_counts(api: ApiSite) -> None:
    async with api.client() as client:
        for number in range(5):
            await submit(client, f"job{number}", virtualCluster="research" if number % 2 else "default")
        page = (await client.get("/api/v2/jobs?limit=2&offset=1&order=name,ASC&withTotalCount=true")).json()
        research = (await client.get("/api/v2/jobs?vc=research&state=WAITING,RUNNING")).json()
        newest = (await client.get("/api/v2/jobs?limit=1")).json()
    assert (page["totalCount"], [row["name"] for row in page["data"]]) == (5, ["job1", "job2"])
    assert {row["name"] for row in research} == {"job1", "job3"}
    assert newest[0]["name"] == "job4"
    assert newest[0]["totalGpuNumber"] == 2


@pytest.mark.asyncio
async def test_users_see_their_own_jobs_and_admins_see_all(api: ApiSite) -> None:
    async with api.client() as alice, api.client(BOB) as bob, api.client(ROOT) as root:
        await submit(alice)
        await submit(bob, "other")
        seen = {
            name: [row["id"] for row in (await client.get("/api/v2/jobs?order=name,ASC")).json()]
            for name, client in {"alice": alice, "bob": bob, "root": root}.items()
        }
        peeked = (await bob.get("/api/v2/jobs?username=alice&withTotalCount=true")).json()
    assert seen == {"alice": ["alice~hello"], "bob": ["bob~other"], "root": ["alice~hello", "bob~other"]}
    assert peeked == {"totalCount": 0, "data": []}


@pytest.mark.asyncio
@pytest.mark.parametrize("way", ["", "/config", "/events", "/logs", "/ssh", "/events/stream", "/logs/stream"])
async def test_a_job_of_another_user_looks_exactly_like_one_that_is_not_there(api: ApiSite, way: str) -> None:
    async with api.client() as alice, api.client(BOB) as bob:
        await submit(alice)
        hidden = await bob.get(f"/api/v2/jobs/alice~hello{way}")
        absent = await bob.get(f"/api/v2/jobs/alice~nothing{way}")
    assert hidden.status_code == absent.status_code == 404
    shown, expected = hidden.json(), absent.json()
    assert shown["code"] == "NoJobError"
    assert shown["message"].replace("hello", "nothing") == expected["message"]
    assert shown["hint"] == expected["hint"]


@pytest.mark.asyncio
async def test_another_user_cannot_stop_a_job(api: ApiSite) -> None:
    async with api.client() as alice, api.client(BOB) as bob:
        await submit(alice)
        answer = await bob.put("/api/v2/jobs/alice~hello/executionType", json={"value": "STOP"})
    assert answer.status_code == 404
    assert (await api.store.jobs.find("alice~hello")).desired.value == "START"


@pytest.mark.asyncio
async def test_nodes_show_what_is_in_use(api: ApiSite) -> None:
    async with api.client() as client:
        (node,) = (await client.get("/api/v2/cluster/nodes")).json()["data"]
    assert (node["name"], node["simulated"], len(node["gpus"])) == ("carol", True, 1)
    assert node["used"] == {"tasks": 0, "cpus": 0, "memoryMb": 0, "gpus": []}


@pytest.mark.asyncio
async def test_virtual_clusters_count_jobs_that_have_not_ended(api: ApiSite) -> None:
    async with api.client() as client:
        await submit(client)
        clusters = (await client.get("/api/v2/virtual-clusters")).json()
    assert {name: cluster["numJobs"] for name, cluster in clusters.items()} == {"default": 1, "research": 0}


@pytest.mark.asyncio
async def test_info_needs_no_token_and_tells_the_front_door(api: ApiSite) -> None:
    async with api.client(None) as client:
        info = (await client.get("/api/v2/info")).json()
    assert info == {
        "name": "test",
        "version": "1.2.3",
        "engine": "local",
        "ssh": {"host": "127.0.0.1", "port": 2222},
        "proxy": {"domain": "localhost", "baseUrl": api.url},
        "launcherType": "k8s",
        "authnMethod": "basic",
    }


@pytest.mark.asyncio
async def test_times_are_utc_in_iso_8601(api: ApiSite) -> None:
    before = datetime.now(UTC)
    async with api.client() as client:
        body = await submit(client)
    said = str(body["submissionTime"])
    assert said.endswith("Z")
    assert before <= datetime.fromisoformat(said) <= datetime.now(UTC)


@pytest.mark.asyncio
async def test_a_job_whose_results_would_be_lost_is_refused_with_the_remedy(tmp_path: Path) -> None:
    async with running_api(tmp_path, task_reach=TaskReach("/data/fs", ())) as site, site.client() as client:
        document = scm_document("lost", outputDir="$PAI_DEFAULT_FS_URI/out")
        answer = await client.post("/api/v2/jobs", content=document)
        assert (answer.status_code, answer.json()["code"]) == (404, "NoStorageError"), answer.text
        assert "$PAI_DEFAULT_FS_URI would be lost" in answer.text
        assert "storage.default_uri" in answer.text
        validation = (await client.post("/api/v2/validate", content=document)).json()
        assert not validation["valid"]
        assert validation["errors"][0]["path"] == "$.outputDir"
        await submit(client, "kept")
