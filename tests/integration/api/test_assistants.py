"""``pai mcp``: the real program, spoken to by the protocol's own client, over a running API."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.client import ConnectMode
from mcp.client.context import ClientRequestContext
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitRequestParams, ElicitResult, Implementation

from jupyter_pai.assistants.agreeing import word_for
from jupyter_pai.assistants.serving import make_server
from jupyter_pai.endpoint import Endpoint
from pai_backend.store.auditing import AuditFilter
from tests.integration.api.test_openpai_jobs import submitted
from tests.support.api_site import ALICE, BOB, ApiSite
from tests.support.documents import scm_document

PROGRAM = Implementation(name="probe", version="7")
READS = {"validate", "plan", "list_jobs", "show_job", "why", "logs", "metrics", "cluster"}
ERAS: list[ConnectMode] = ["auto", "legacy"]
PAI = str(Path(sys.executable).with_name("pai"))
TRAIN = scm_document("train").decode()


class Person:
    """Who sits at the assistant's program, and what they were asked."""

    def __init__(self, answer: bool | None) -> None:
        self.answer, self.asked = answer, list[str]()

    async def __call__(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        self.asked.append(params.message)
        if self.answer is None:
            return ElicitResult(action="cancel")
        return ElicitResult(action="accept", content={"agreed": self.answer})


def assistant(
    api: ApiSite,
    *,
    token: str = ALICE,
    person: Person | None = None,
    era: ConnectMode = "auto",
    read_only: bool = False,
) -> Client:
    """An assistant's program that speaks to the server that ``pai mcp`` makes."""
    server = make_server(lambda: Endpoint(api.url, token), read_only=read_only)
    return Client(server, client_info=PROGRAM, elicitation_callback=person, mode=era, read_timeout_seconds=60)


async def said(client: Client, tool: str, **arguments: object) -> str:
    """What a call says that succeeds."""
    result = await client.call_tool(tool, arguments)
    text = "".join(each.text for each in result.content if each.type == "text")
    assert not result.is_error, text
    return text


async def refused(client: Client, tool: str, **arguments: object) -> str:
    """What a call says that fails."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    text = "".join(each.text for each in result.content if each.type == "text")
    return text.removeprefix(f"Error executing tool {tool}: ")


async def value(client: Client, tool: str, **arguments: object) -> dict[str, Any]:
    """What a call gives as data."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return dict(result.structured_content)


async def states(api: ApiSite) -> dict[str, str]:
    """Alice's jobs."""
    async with api.client() as client:
        return {job["name"]: job["state"] for job in (await client.get("/api/v2/jobs")).json()}


@pytest.mark.asyncio
@pytest.mark.parametrize("era", ERAS)
async def test_a_job_is_submitted_and_stopped_once_the_user_agrees(api: ApiSite, era: ConnectMode) -> None:
    person = Person(True)
    async with assistant(api, person=person, era=era) as client:
        done = (await client.call_tool("submit", {"document": TRAIN})).structured_content
        assert done is not None
        assert done["id"] == "alice~train"
        await said(client, "stop", job="train")
    assert person.asked[0].splitlines()[0] == "Submit the job train?"
    assert "worker: 2 x (1 GPU, 1 CPU, 1024 MB): echo hello" in person.asked[0]
    assert person.asked[1:] == ["Stop the job alice~train, which is WAITING?"]
    events = await api.store.audit.page(AuditFilter(types=("job.*",), result="done"))
    assert [(each.type, each.by, each.detail) for each in reversed(events)] == [
        ("job.submitted", "alice", "assistant: probe 7"),
        ("job.execution", "alice", "STOP; assistant: probe 7"),
    ]


@pytest.mark.asyncio
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("answer", [False, None])
async def test_nothing_is_done_that_the_user_does_not_want(api: ApiSite, era: ConnectMode, answer: bool | None) -> None:
    async with api.client() as alice:
        await submitted(api, alice, "kept")
    async with assistant(api, person=Person(answer), era=era) as client:
        for tool, arguments in (("submit", {"document": TRAIN}), ("stop", {"job": "kept"})):
            word = word_for(["submit", TRAIN, None, False])  # of no use to who can ask
            told = await refused(client, tool, **arguments, confirmation=word)
            assert told == "The user does not want it. Nothing was done."
    assert await states(api) == {"kept": "WAITING"}


@pytest.mark.asyncio
@pytest.mark.parametrize("era", ERAS)
async def test_a_program_that_cannot_ask_shows_what_will_be_done_first(api: ApiSite, era: ConnectMode) -> None:
    async with assistant(api, era=era) as client:
        told = await refused(client, "submit", document=TRAIN)
        assert told.startswith("Nothing was done yet. Submit the job train?")
        word = told.rpartition("confirmation='")[2].rstrip("'.")
        other = await refused(client, "submit", document=TRAIN.replace("train", "other"), confirmation=word)
        assert "Nothing was done yet. Submit the job other?" in other
        assert await states(api) == {}
        await said(client, "submit", document=TRAIN, confirmation=word)
        assert "Nothing was done yet" in await refused(client, "stop", job="train", confirmation=word)
        assert await states(api) == {"train": "WAITING"}


@pytest.mark.asyncio
async def test_what_its_user_may_see_is_told_and_nothing_changed(api: ApiSite) -> None:
    async with api.client() as alice, api.client(BOB) as bob:
        mine = await submitted(api, alice, "mine")
        await submitted(api, bob, "secret")
    async with assistant(api, read_only=True) as client:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools if tool.annotations and tool.annotations.read_only_hint} == READS
        assert len(tools) == len(READS)
        assert [job["id"] for job in (await value(client, "list_jobs"))["result"]] == ["alice~mine"]
        assert (await value(client, "show_job", job="mine"))["uid"] == mine.uid
        assert "alice~mine" in await said(client, "why", job="mine")
        missing = "jobName is missing; image is missing; taskRoles is missing"
        assert await said(client, "plan", document="{}") == "The document is not valid: " + missing
        assert (await value(client, "validate", document="{"))["valid"] is False
        assert [task["role"] for task in (await value(client, "metrics", job="mine"))["tasks"]] == ["worker"] * 2
        waiting = {vc["name"]: vc["waiting"] for vc in (await value(client, "cluster"))["result"]}
        assert waiting == {"default": 2, "research": 0}
        for tool in ("show_job", "why", "logs", "metrics"):
            assert "secret" in await refused(client, tool, job="bob~secret")
    assert await states(api) == {"mine": "WAITING"}


@pytest.mark.asyncio
async def test_what_is_wrong_is_told_with_its_place_and_not_asked_about(api: ApiSite) -> None:
    person = Person(True)
    async with assistant(api, person=person) as client:
        told = await refused(client, "submit", document='{"jobName": "x",\n "taskRoles": 7}')
        assert "taskRoles:2:" in told
    async with api.client() as alice:
        made = await alice.post("/api/v2/tokens/application?name=assistant&scopes=read")
    async with assistant(api, token=made.json()["token"], person=person) as client:
        assert "needs the scope jobs" in await refused(client, "submit", document=TRAIN)
    assert await states(api) == {}


def environment(api: ApiSite, home: Path) -> dict[str, str]:
    return {**os.environ, "PAI_URL": api.url, "PAI_TOKEN": ALICE, "HOME": str(home)}


@pytest.mark.asyncio
@pytest.mark.parametrize("era", ERAS)
async def test_the_program_speaks_over_its_standard_streams(api: ApiSite, tmp_path: Path, era: ConnectMode) -> None:
    line = StdioServerParameters(command=PAI, args=["mcp"], env=environment(api, tmp_path))
    person = Person(True)
    async with Client(line, elicitation_callback=person, mode=era, read_timeout_seconds=60) as client:
        await said(client, "submit", document=TRAIN)
    assert await states(api) == {"train": "WAITING"}
    assert len(person.asked) == 1


@asynccontextmanager
async def served(api: ApiSite, home: Path) -> AsyncIterator[str]:
    """``pai mcp --http``; its URL."""
    words = [PAI, "mcp", "--http", "0"]
    process = await asyncio.create_subprocess_exec(*words, env=environment(api, home), stderr=asyncio.subprocess.PIPE)
    try:
        assert process.stderr is not None
        line = await process.stderr.readline()
        told = re.match(r"Assistants reach it at (http://127\.0\.0\.1:\d+/mcp), ", line.decode())
        assert told is not None
        yield told[1]
        process.terminate()
        rest = await process.stderr.read()
        assert (await process.wait(), rest) == (-signal.SIGTERM, b"")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.mark.asyncio
async def test_over_http_each_request_acts_for_the_user_of_its_token(api: ApiSite, tmp_path: Path) -> None:
    async with served(api, tmp_path) as url:
        for token, name in ((ALICE, "alice"), (BOB, "bob")):
            async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as http:
                person = Person(True)
                transport = streamable_http_client(url, http_client=http)
                async with Client(transport, elicitation_callback=person, read_timeout_seconds=60) as client:
                    done = await value(client, "submit", document=TRAIN)
                    assert done["id"] == f"{name}~train"
                    assert [job["id"] for job in (await value(client, "list_jobs"))["result"]] == [f"{name}~train"]
        async with httpx2.AsyncClient(timeout=60) as http:
            for headers in ({}, {"Authorization": "Bearer not-one-of-the-backend"}):
                assert (await http.post(url, json={}, headers=headers)).status_code == 401
