"""Changing places in the queue over HTTP."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.support.api_site import ALICE, BOB, ROOT, ApiSite
from tests.support.documents import scm_document


async def submit(client: httpx.AsyncClient, *names: str, vc: str = "default") -> None:
    for name in names:
        answer = await client.post("/api/v2/jobs", content=scm_document(name, virtualCluster=vc))
        assert answer.status_code == 202, answer.text


async def move(client: httpx.AsyncClient, job: str, **where: str) -> httpx.Response:
    return await client.post(f"/api/v2/jobs/{job}/move", json=where)


async def order(api: ApiSite) -> list[str]:
    """All that wait, as an administrator sees them in line."""
    async with api.client(ROOT) as root:
        clusters = (await root.get("/api/v2/cluster/use")).json()["virtualClusters"]
    rows = [row for cluster in clusters for row in cluster["queue"]]
    return [row["id"] for row in sorted(rows, key=lambda row: row["position"])]


@pytest.mark.asyncio
async def test_users_change_places_among_their_own_jobs(api: ApiSite) -> None:
    async with api.client(ALICE) as alice, api.client(BOB) as bob:
        await submit(alice, "a1")
        await submit(bob, "b1")
        await submit(alice, "a2", "a3")
        answer = await move(alice, "alice~a3", before="a1")
        assert await order(api) == ["alice~a3", "bob~b1", "alice~a1", "alice~a2"]
        again = await move(alice, "a3", before="alice~a1")
        last = await move(alice, "a3", to="last")
    assert (answer.status_code, answer.json()["message"]) == (202, "job a3 is number 1 of its priority now")
    assert answer.json()["jobs"] == [
        {"id": "alice~a3", "place": 1, "was": 4},
        {"id": "alice~a1", "place": 3, "was": 1},
        {"id": "alice~a2", "place": 4, "was": 3},
    ]
    assert (again.json()["message"], again.json()["jobs"]) == ("job a3 is there already", [])
    assert last.json()["message"] == "job a3 is number 4 of its priority now"
    assert await order(api) == ["alice~a1", "bob~b1", "alice~a2", "alice~a3"]


@pytest.mark.asyncio
async def test_an_administrator_moves_a_job_past_anybody(api: ApiSite) -> None:
    async with api.client(ALICE) as alice, api.client(BOB) as bob, api.client(ROOT) as root:
        await submit(alice, "a1", "a2")
        await submit(bob, "b1")
        answer = await move(root, "bob~b1", after="alice~a1")
        assert await order(api) == ["alice~a1", "bob~b1", "alice~a2"]
        await move(root, "alice~a2", to="first")
        history = (await bob.get("/api/v2/jobs/b1/events?after=1")).json()["data"]
    assert answer.json()["jobs"] == [{"id": "bob~b1", "place": 2, "was": 3}]
    assert await order(api) == ["alice~a2", "alice~a1", "bob~b1"]
    assert [(event["type"], event["payload"]["by"]) for event in history] == [("job.moved", "root")]


@pytest.mark.asyncio
async def test_jobs_of_others_are_as_if_they_were_not_there(api: ApiSite) -> None:
    async with api.client(ALICE) as alice, api.client(BOB) as bob:
        await submit(alice, "a1")
        await submit(bob, "b1")
        refused = [await move(alice, "bob~b1", to="first"), await move(alice, "a1", after="bob~b1")]
    assert [(each.status_code, each.json()["code"]) for each in refused] == [(404, "NoJobError")] * 2
    assert await order(api) == ["alice~a1", "bob~b1"]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"before": "a2", "after": "a2"},
        {"before": "a2", "to": "first"},
        {"to": "middle"},
        {"before": ""},
        {"behind": "a2"},
    ],
)
async def test_a_place_is_named_once(api: ApiSite, body: dict[str, Any]) -> None:
    async with api.client() as client:
        await submit(client, "a1", "a2")
        answer = await client.post("/api/v2/jobs/a1/move", json=body)
    assert (answer.status_code, answer.json()["code"]) == (400, "InvalidParametersError")
    assert answer.json()["errors"]
    assert await order(api) == ["alice~a1", "alice~a2"]


@pytest.mark.asyncio
async def test_without_cells_the_queue_is_one_for_all_virtual_clusters(api: ApiSite) -> None:
    async with api.client() as client:
        await submit(client, "a1")
        await submit(client, "a2", vc="research")
        assert (await move(client, "a2", before="a1")).status_code == 202
        stopped = await client.put("/api/v2/jobs/a1/executionType", json={"value": "STOP"})
        late = await move(client, "a1", to="first")
    assert stopped.status_code == 202
    assert (late.status_code, late.json()["code"]) == (409, "NotWaitingJobError")
    assert late.json()["message"] == "The job alice~a1 does not wait for its turn."
