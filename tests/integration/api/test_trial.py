"""What would become of a document, over HTTP, on a cluster whose nodes are given."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from pai_backend.api.context import CellRules
from tests.integration.api.test_cells import document, machine, placed
from tests.support.api_site import BOB, ApiSite, running_api
from tests.support.documents import scm_document
from tests.support.lab_config import two_vcs


@pytest_asyncio.fixture
async def lab(tmp_path: Path) -> AsyncIterator[ApiSite]:
    """The seeds' lab; bob may only use ``vc1``."""
    nodes = [machine("carol"), machine("dan")]
    async with running_api(tmp_path, cells=CellRules(two_vcs(), {"bob": ("vc1",)}), nodes=nodes) as site:
        yield site


async def trial(client: httpx.AsyncClient, text: bytes | str) -> dict[str, Any]:
    answer = await client.post("/api/v2/trial", content=text)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def asking(tasks: int, gpus: int, cpus: int = 1) -> str:
    value = json.loads(scm_document("tried"))
    value["taskRoles"][0] |= {"taskNumber": tasks, "gpuNumber": gpus, "cpuNumber": cpus}
    value.pop("gpuType", None)
    return json.dumps(value)


@pytest.mark.asyncio
async def test_what_fits_starts_and_nothing_is_submitted(lab: ApiSite) -> None:
    async with lab.client() as alice:
        for _ in range(3):
            assert await trial(alice, document("hello", "vc1")) == {"outcome": "starts", "waiting": None, "held": ""}
        assert (await alice.get("/api/v2/jobs")).json() == []


@pytest.mark.asyncio
async def test_what_is_wrong_is_told_by_validation_only(lab: ApiSite) -> None:
    async with lab.client() as alice:
        assert await trial(alice, b"{}") == {"outcome": None, "waiting": None, "held": ""}
        assert await trial(alice, document("hello", "nowhere")) == {"outcome": None, "waiting": None, "held": ""}


@pytest.mark.asyncio
async def test_without_cells_what_no_node_has_never_starts(tmp_path: Path) -> None:
    async with running_api(tmp_path, nodes=[machine("carol"), machine("dan")]) as site, site.client() as alice:
        gpus = len(machine("carol").gpus)
        assert (await trial(alice, asking(1, gpus)))["outcome"] == "starts"
        never = await trial(alice, asking(1, 64))
        assert never["outcome"] == "never"
        assert never["waiting"]["texts"]["en"]["sentence"]
        assert never["waiting"]["texts"]["zh_CN"]["sentence"]
        assert (await trial(alice, asking(1, 0, cpus=100_000)))["outcome"] == "never"
        assert (await trial(alice, asking(1, gpus)))["outcome"] == "starts"


@pytest.mark.asyncio
async def test_who_comes_behind_others_waits_and_is_told_only_of_what_is_granted(lab: ApiSite) -> None:
    async with lab.client() as alice, lab.client(BOB) as bob:
        for name, vc in (("first", "vc1"), ("second", "default")):
            assert (await alice.post("/api/v2/jobs", content=document(name, vc))).status_code == 202
            await placed(lab, f"alice~{name}")
        waits = await trial(bob, document("third", "vc1"))
        assert waits["outcome"] == "waits"
        assert [holder["group"] for holder in waits["waiting"]["holders"]] == ["alice~first"]
        assert "default" not in [change["vc"] for change in waits["waiting"]["changes"]]
        assert await trial(bob, document("third", "vc1")) == waits


@pytest.mark.asyncio
async def test_a_node_that_is_away_is_waited_for(tmp_path: Path) -> None:
    away = [machine(name).model_copy(update={"ready": False}) for name in ("carol", "dan")]
    async with running_api(tmp_path, nodes=away) as site, site.client() as alice:
        assert (await trial(alice, asking(1, 1)))["outcome"] == "waits"
        assert (await trial(alice, asking(1, 2)))["outcome"] == "never"
