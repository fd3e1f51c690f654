"""The link to a job's private key: once, in time, for its owner."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import httpx
import pytest

from pai_backend.access.keys import public_line
from pai_backend.api.services.job_keys import LINK_LIFE, JobKeyService
from pai_backend.model.errors import Forbidden
from pai_backend.model.job import Job, Phase, State
from pai_backend.store.base import job_key_slots
from tests.integration.api.test_openpai_jobs import PLAIN, placed, saved, submitted
from tests.support.api_site import BOB, ROOT, ApiSite


async def running(api: ApiSite, client: httpx.AsyncClient) -> Job:
    job = await submitted(api, client)
    return await saved(api, job, {"tasks": placed(job).tasks, "state": State.RUNNING, "phase": Phase.RUNNING})


async def link(client: httpx.AsyncClient, path: str = "/api/v2/jobs/alice~hello/ssh") -> str:
    answer = await client.get(path, headers=PLAIN)
    assert answer.status_code == 200, answer.text
    text: str = answer.json()["keyPair"]["privateKeyDirectDownloadLink"]
    return text


@pytest.mark.asyncio
async def test_the_link_gives_the_jobs_key_once_and_without_a_token(api: ApiSite) -> None:
    async with api.client() as client, httpx.AsyncClient() as anybody:
        job = await running(api, client)
        address = await link(client)
        first = await anybody.get(address)
        second = await anybody.get(address)
    assert first.status_code == 200
    assert public_line(first.text) == public_line(await api.store.task_keys.get(job_key_slots(job.uid)[0]) or "")
    assert 'filename="hello"' in first.headers["content-disposition"]
    assert first.headers["cache-control"] == "no-store"
    assert (second.status_code, second.json()["code"]) == (403, "ForbiddenUserError")


@pytest.mark.asyncio
async def test_each_answer_has_a_link_of_its_own_to_the_same_key(api: ApiSite) -> None:
    async with api.client() as client, httpx.AsyncClient() as anybody:
        await running(api, client)
        paths = ("/api/v2/jobs/alice~hello/ssh", "/api/v1/jobs/hello/ssh", "/api/v1/user/alice/jobs/hello/ssh")
        keys = {(await anybody.get(await link(client, path))).text for path in paths}
    assert len(keys) == 1
    assert "PRIVATE KEY" in keys.pop()


@pytest.mark.asyncio
async def test_nobody_else_gets_a_link_and_a_changed_one_is_worth_nothing(api: ApiSite) -> None:
    async with api.client() as client, api.client(BOB) as bob, api.client(ROOT) as root, httpx.AsyncClient() as anybody:
        await running(api, client)
        refused = await bob.get("/api/v2/jobs/alice~hello/ssh", headers=PLAIN)
        of_admin = await anybody.get(await link(root))
        address = await link(client)
        wrong = [
            await anybody.get(address.replace("/hello?", "/other?")),
            await anybody.get(address[:-3] + "abc"),
            await anybody.get(address.partition("?")[0]),
        ]
        good = await anybody.get(address)
    assert refused.status_code == 404
    assert of_admin.status_code == 403, "the key is its owner's alone"
    assert [each.status_code for each in wrong] == [403, 403, 400]
    assert good.status_code == 200, "the wrong tries have not used it up"


@pytest.mark.asyncio
async def test_a_link_expires_and_ends_with_its_users_rights(api: ApiSite) -> None:
    async with api.client() as client:
        await running(api, client)
        late, after = await link(client), await link(client)
    ticket = httpx.URL(late).params["ticket"]
    later = dataclasses.replace(api.ctx, clock=lambda: api.ctx.clock() + LINK_LIFE + timedelta(seconds=1))
    with pytest.raises(Forbidden):
        await JobKeyService(later).redeem(ticket, "hello", "")
    accounts = vars(api.ctx.identity.accounts)["_accounts"]
    del accounts["alice"]
    with pytest.raises(Forbidden):
        await JobKeyService(api.ctx).redeem(httpx.URL(after).params["ticket"], "hello", "")


@pytest.mark.asyncio
async def test_our_shape_has_no_link(api: ApiSite) -> None:
    async with api.client() as client:
        await running(api, client)
        ours = (await client.get("/api/v2/jobs/hello/ssh")).json()
        theirs = (await client.get("/api/v2/jobs/hello/ssh", headers=PLAIN)).json()
        api.gateway.clear()
        without_gateway = await client.get("/api/v2/jobs/hello/ssh", headers=PLAIN)
    assert "keyPair" not in ours
    assert theirs["gateway"] == ours
    assert without_gateway.status_code == 503
