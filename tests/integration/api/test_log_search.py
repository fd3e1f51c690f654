"""Regular expressions over a task's log, and a whole log as a file."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from pai_backend.api import line_search
from pai_backend.api.services import logs
from tests.integration.api.test_scrubbed_logs import COVERED, LINE, SECRET, running
from tests.support.api_site import BOB, ApiSite

PATH = "/api/v2/jobs/alice~job/logs"


async def searched(api: ApiSite, pattern: str, **query: str | int) -> dict[str, Any]:
    async with api.client() as client:
        answer = await client.get(f"{PATH}/search", params={"pattern": pattern, **query})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.asyncio
async def test_lines_are_found_with_their_offsets_colours_and_chinese(api: ApiSite) -> None:
    text = "epoch 1 \x1b[32mloss 0.5\x1b[0m\n第二行\nEPOCH 2 loss 0.25\n".encode()
    await running(api, text, ended=True)
    found = await searched(api, "1 loss|第二")
    assert found == {
        "matches": [
            {"offset": 0, "text": "epoch 1 loss 0.5"},
            {"offset": text.index("第".encode()), "text": "第二行"},
        ],
        "next": len(text),
        "complete": True,
    }
    assert len((await searched(api, "epoch", ignoreCase="true"))["matches"]) == 2
    assert [match["offset"] for match in (await searched(api, "loss", offset=10))["matches"]] == [
        10,
        text.index(b"EPOCH"),
    ]


@pytest.mark.asyncio
async def test_a_long_log_is_searched_part_by_part(api: ApiSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "SEARCHED_BYTES", 1000)
    monkeypatch.setattr(logs, "MAX_MATCHES", 7)
    text = b"".join(b"line %04d%s\n" % (number, b"!" if number % 3 == 0 else b"") for number in range(400))
    await running(api, text, ended=True)
    offsets, at, complete = [], 0, False
    while not complete:
        found = await searched(api, "!$", offset=at)
        assert len(found["matches"]) <= 7
        assert found["next"] > at or found["complete"]
        offsets += [match["offset"] for match in found["matches"]]
        at, complete = found["next"], found["complete"]
    assert offsets == [text.index(b"line %04d" % number) for number in range(0, 400, 3)]


@pytest.mark.asyncio
async def test_an_expression_that_takes_exponential_time_is_refused_and_holds_up_nobody(
    api: ApiSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_search, "CPU_S", 1)
    await running(api, b"a" * 60 + b"b\n", ended=True)
    async with api.client() as client:
        slow = asyncio.create_task(client.get(f"{PATH}/search", params={"pattern": "(a+)+$"}))
        assert (await client.get("/api/v2/jobs/alice~job")).status_code == 200
        answer = await slow
        invalid = await client.get(f"{PATH}/search", params={"pattern": "(a"})
    assert (answer.status_code, answer.json()["message"]) == (400, "The regular expression takes too long.")
    assert invalid.status_code == 400
    assert "unterminated" in invalid.json()["message"]


@pytest.mark.asyncio
async def test_secrets_are_neither_found_nor_downloaded_and_others_get_nothing(api: ApiSite) -> None:
    await running(api, LINE * 3000, ended=True)
    assert (await searched(api, SECRET))["matches"] == []
    assert len((await searched(api, r"login with \*+ done"))["matches"]) == 500
    async with api.client() as client:
        whole = await client.get(PATH, params={"download": "true", "offset": len(LINE), "limit": 1})
    assert whole.content == COVERED * 2999
    assert whole.headers["Content-Disposition"] == "attachment; filename=log.txt"
    async with api.client(BOB) as client:
        for query in ({"pattern": "login"}, {"download": "true"}):
            answer = await client.get(f"{PATH}/search" if "pattern" in query else PATH, params=query)
            assert (answer.status_code, json.loads(answer.content)["code"]) == (404, "NoJobError")
