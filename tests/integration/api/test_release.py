"""Letting go of kept tasks over HTTP."""

from __future__ import annotations

from datetime import timedelta

import httpx
import pytest

from pai_backend.model.job import Job, Phase, State, TaskExit
from pai_backend.store.base import NewEvent
from tests.support.api_site import BOB, ROOT, ApiSite
from tests.support.documents import scm_document

PATH = "/api/v2/jobs/alice~hello/release"


async def kept_job(api: ApiSite, client: httpx.AsyncClient) -> Job:
    """A job of two tasks, both kept, as a controller would have left it."""
    answer = await client.post("/api/v2/jobs", content=scm_document("hello"))
    assert answer.status_code == 202, answer.text
    job = await api.store.jobs.find("alice~hello")
    lease = await api.store.leadership.acquire("test", 60, job.submitted_at)
    assert lease is not None
    changes: dict[str, object] = {
        "phase": Phase.KEPT,
        "state": State.FAILED,
        "exit": TaskExit(code=3, at=job.submitted_at),
        "kept_until": job.submitted_at + timedelta(days=7),
    }
    tasks = tuple(task.model_copy(update=changes) for task in job.tasks)
    after = job.model_copy(update={"tasks": tasks, "state": State.RUNNING, "phase": Phase.KEPT})
    return await api.store.jobs.save(
        after, seen=job, epoch=lease.epoch, events=[NewEvent("task.kept")], at=job.submitted_at
    )


@pytest.mark.asyncio
async def test_all_kept_tasks_are_let_go_and_asking_again_is_fine(api: ApiSite) -> None:
    async with api.client() as client:
        job = await kept_job(api, client)
        first = await client.post(PATH)
        again = await client.post(PATH)
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json()["tasks"] == ["worker-0", "worker-1"]
    assert first.json()["message"] == "job hello: released: worker-0, worker-1"
    body = again.json()
    assert (body["status"], body["tasks"]) == (202, [])
    assert body["message"] == "job hello: nothing to release: no such task is kept"
    assert (await api.store.jobs.get(job.uid)).released == tuple(task.uid for task in job.tasks)


@pytest.mark.asyncio
async def test_tasks_can_be_named_one_or_several(api: ApiSite) -> None:
    async with api.client() as client:
        await kept_job(api, client)
        one = await client.post(f"{PATH}?task=worker-1")
        both = await client.post(f"{PATH}?task=worker-1,worker-0")
    assert one.json()["tasks"] == ["worker-1"]
    assert both.json()["tasks"] == ["worker-0"]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("query", "status", "code", "said"),
    [
        ("?task=worker-2", 404, "NoTaskError", "worker-2"),
        ("?task=worker-0,boss-0", 404, "NoTaskError", "boss-0"),
        ("?task=worker-0,", 404, "NoTaskError", "has no task "),
        ("?task=", 404, "NoTaskError", "has no task ''"),
        ("?tasks=worker-0", 400, "InvalidParametersError", "tasks"),
    ],
)
async def test_a_wrong_name_lets_nothing_go_and_says_what_there_is(
    api: ApiSite, query: str, status: int, code: str, said: str
) -> None:
    async with api.client() as client:
        job = await kept_job(api, client)
        answer = await client.post(f"{PATH}{query}")
    assert answer.status_code == status
    body = answer.json()
    assert body["code"] == code
    assert said in body["message"]
    assert body["hint"]
    assert (await api.store.jobs.get(job.uid)).released == ()


@pytest.mark.asyncio
async def test_only_the_owner_and_administrators_may(api: ApiSite) -> None:
    async with api.client() as alice, api.client(BOB) as bob, api.client(ROOT) as root:
        await kept_job(api, alice)
        assert (await bob.post(PATH)).json()["code"] == "NoJobError"
        assert (await alice.post("/api/v2/jobs/nothing/release")).json()["code"] == "NoJobError"
        assert (await root.post(PATH)).json()["tasks"] == ["worker-0", "worker-1"]


@pytest.mark.asyncio
async def test_the_detail_shows_phase_deadline_exit_and_remedy(api: ApiSite) -> None:
    async with api.client() as client:
        job = await kept_job(api, client)
        detail = (await client.get("/api/v2/jobs/alice~hello")).json()
    task = detail["taskRoles"][0]["taskStatuses"][0]
    assert (task["state"], task["phase"]) == ("FAILED", "kept for debugging")
    assert task["keptUntil"].startswith((job.submitted_at + timedelta(days=7)).strftime("%Y-%m-%dT%H:%M"))
    assert (task["exit"]["status"], task["exit"]["phrase"]) == (3, "CommandFailed")
