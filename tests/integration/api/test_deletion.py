"""Deleting jobs over HTTP."""

from __future__ import annotations

import httpx
import pytest

from pai_backend.model.job import Job, Phase, State
from pai_backend.store.base import NewEvent
from tests.support.api_site import BOB, ROOT, ApiSite
from tests.support.documents import scm_document

PATH = "/api/v2/jobs/alice~hello"
OURS = {"Accept": "application/vnd.jupyter-pai+json"}


async def finished_job(api: ApiSite, client: httpx.AsyncClient) -> Job:
    """A job that has ended, as a controller would have left it."""
    answer = await client.post("/api/v2/jobs", content=scm_document("hello"))
    assert answer.status_code == 202, answer.text
    job = await api.store.jobs.find("alice~hello")
    lease = await api.store.leadership.acquire("test", 60, job.submitted_at, force=True)
    assert lease is not None
    tasks = tuple(task.model_copy(update={"phase": Phase.ENDED, "forgotten": True}) for task in job.tasks)
    after = job.model_copy(
        update={"tasks": tasks, "state": State.FAILED, "phase": Phase.ENDED, "completed_at": job.submitted_at}
    )
    return await api.store.jobs.save(
        after, seen=job, epoch=lease.epoch, events=[NewEvent("job.exit")], at=job.submitted_at
    )


@pytest.mark.asyncio
async def test_a_deleted_job_is_answered_like_one_that_never_was_and_its_name_is_free(api: ApiSite) -> None:
    async with api.client() as client:
        job = await finished_job(api, client)
        never = (await client.get("/api/v2/jobs/alice~other")).json()

        answer = await client.delete(PATH)

        body = answer.json()
        assert (answer.status_code, body["status"]) == (202, 202)
        assert body["message"] == "job hello is deleted; its outputs in storages are kept"
        for name in ("alice~hello", "hello", job.alias, job.uid):
            for path in ("", "/config", "/events", "/logs", "/ssh", "/job-attempts"):
                gone = await client.get(f"/api/v2/jobs/{name}{path}")
                assert (gone.status_code, gone.json()["code"]) == (404, "NoJobError")
                assert gone.json()["message"] == never["message"].replace("alice~other", name)
            assert (await client.delete(f"/api/v2/jobs/{name}")).status_code == 404
        assert (await client.get("/api/v2/jobs", headers=OURS)).json() == []
        again = await client.post("/api/v2/jobs", content=scm_document("hello"))
    assert again.status_code == 202
    assert (await api.store.jobs.find("alice~hello")).alias == job.alias


@pytest.mark.asyncio
async def test_only_its_owner_and_administrators_delete_a_job(api: ApiSite) -> None:
    async with api.client() as client, api.client(BOB) as bob, api.client(ROOT) as root:
        await finished_job(api, client)

        assert (await bob.delete(PATH)).status_code == 404
        assert (await root.delete(PATH)).status_code == 202
        assert (await client.get(PATH)).status_code == 404


@pytest.mark.asyncio
async def test_a_job_that_waits_is_refused_with_the_remedy(api: ApiSite) -> None:
    async with api.client() as client:
        await client.post("/api/v2/jobs", content=scm_document("hello"))

        answer = await client.delete(PATH)

        assert (answer.status_code, answer.json()["code"]) == (409, "NotFinishedJobError")
        assert "pai stop alice~hello" in answer.json()["hint"]
        assert (await client.get(PATH)).status_code == 200
