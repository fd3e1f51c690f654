"""Lists of jobs of some GPU types: over REST, in Python, and by ``pai list --gpu-type``."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterable

import httpx
import pytest

from jupyter_pai.api import AsyncClient
from jupyter_pai.commands.arguments import gpu_types
from jupyter_pai.endpoint import Endpoint
from pai_backend.model.job import Phase, State
from pai_backend.testing.builders import make_placement
from tests.integration.api.test_bad_input import assert_is_error
from tests.integration.api.test_key_commands import Pai
from tests.integration.api.test_openpai_jobs import PLAIN, saved, submitted
from tests.integration.api.test_tokens_of_one_cluster import limited
from tests.integration.api.test_users import pai
from tests.support.api_site import ALICE, BOB, ROOT, ApiSite

pytestmark = pytest.mark.asyncio
__all__ = ["pai"]


async def fill(api: ApiSite) -> None:
    """Alice's job that asked for no type and got K80, and one of another cluster; and Bob's."""
    async with api.client() as alice, api.client(BOB) as bob:
        took = await submitted(api, alice, "took", gpuType=None)
        await submitted(api, alice, "asked", gpuType="K80", virtualCluster="research")
        await submitted(api, alice, "other")
        await submitted(api, bob, "theirs", gpuType="K80")
    place = make_placement(gpus=[0], gpu_type="K80")
    tasks = tuple(
        task.model_copy(update={"state": State.RUNNING, "phase": Phase.RUNNING, "placement": place})
        for task in took.tasks
    )
    await saved(api, took, {"state": State.RUNNING, "phase": Phase.RUNNING, "tasks": tasks})


async def names(client: httpx.AsyncClient, gpu_type: str, **more: str) -> set[str]:
    answer = await client.get("/api/v2/jobs", params={"gpuType": gpu_type, **more})
    assert answer.status_code == 200, answer.text
    return {each["name"] for each in answer.json()}


async def test_each_caller_finds_jobs_of_some_types_among_those_that_they_see(api: ApiSite) -> None:
    await fill(api)
    async with api.client() as alice, api.client(BOB) as bob, api.client(ROOT) as root:
        assert await names(alice, "K80") == {"took", "asked"}
        assert await names(alice, "K80,TITANX") == {"took", "asked", "other"}
        assert await names(alice, "K80", vc="research") == {"asked"}
        assert await names(alice, "K80", state="RUNNING") == {"took"}
        assert await names(alice, "k80") == set()
        assert await names(alice, "") == {"took", "asked", "other"}
        assert await names(bob, "K80,TITANX") == {"theirs"}
        assert await names(root, "K80") == {"took", "asked", "theirs"}
    async with api.client(await limited(api, ALICE, "research")) as client:
        assert await names(client, "K80,TITANX") == {"asked"}


async def test_rows_tell_the_types_in_both_shapes(api: ApiSite) -> None:
    await fill(api)
    told = {"took": ["K80"], "asked": ["K80"], "other": ["TITANX"]}
    async with api.client() as client:
        for headers in ({}, PLAIN):
            rows = (await client.get("/api/v2/jobs", headers=headers)).json()
            assert {row["name"]: row["gpuTypes"] for row in rows} == told


@pytest.mark.parametrize("nonsense", ["V100\n", "V" * 256, "V100,\x7f"])
async def test_a_type_that_no_gpu_can_have_is_refused_with_its_place_and_an_example(
    api: ApiSite, nonsense: str
) -> None:
    async with api.client() as client:
        answer = await client.get("/api/v2/jobs", params={"gpuType": nonsense})
    body = assert_is_error(answer, 400, "InvalidParametersError")
    assert body["errors"][0]["path"] == "?gpuType"
    assert "V100,A100" in body["message"]


async def test_pai_and_python_list_jobs_of_a_type(api: ApiSite, pai: Pai) -> None:
    await fill(api)
    assert {row["name"] for row in await pai.json("list", "--gpu-type", "K80")} == {"took", "asked"}
    code, out, _ = await pai("list", "--gpu-type", "H100")
    assert (code, out) == (0, "No jobs.\n")
    async with AsyncClient(Endpoint(api.url, ALICE)) as client:
        assert {job["name"] for job in await client.jobs(gpu_type="K80")} == {"took", "asked"}


async def test_tab_offers_the_types_of_the_clusters_nodes(
    api: ApiSite, pai: Pai, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAI_TOKEN", ALICE)
    offered: Iterable[str] = await asyncio.to_thread(gpu_types, argparse.Namespace())
    assert list(offered) == ["TITANX"]
