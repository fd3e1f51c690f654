"""Why a job waits, over HTTP; a controller is played where one has to answer."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest

from pai_backend.api.context import CellRules
from pai_backend.api.services import why
from pai_backend.auth.users import User
from pai_backend.model.job import Job, NewEvent, Phase, State
from pai_backend.model.waiting import Cause, Change, ChangeKind, Waiting
from pai_backend.scheduling.explain import LANGUAGES, render
from tests.support.api_site import BOB, ApiSite
from tests.support.documents import scm_document

PATH = "/api/v2/jobs/alice~hello/why"
CHANGES = (Change(kind=ChangeKind.VC, vc="secret-team"), Change(kind=ChangeKind.OPPORTUNISTIC))


def reason(needed: int = 4, changes: tuple[Change, ...] = ()) -> Waiting:
    bare = Waiting(group="alice~hello/default", cause=Cause.PRIORITY, vc="default", priority=10, needed=needed)
    told = bare.model_copy(update={"changes": changes})
    return told.model_copy(update={"texts": {language: render(told, language) for language in LANGUAGES}})


async def submitted(api: ApiSite) -> Job:
    async with api.client() as client:
        assert (await client.post("/api/v2/jobs", content=scm_document("hello"))).status_code == 202
    return await api.store.jobs.find("alice~hello")


@asynccontextmanager
async def answering(api: ApiSite, *answers: Waiting | None) -> AsyncIterator[list[str]]:
    """A controller that gives these answers, one a question; the list grows with what it was asked."""
    lease = await api.store.leadership.acquire("test", 60, datetime.now(UTC))
    assert lease is not None
    asked: list[str] = []

    async def answer() -> None:
        mark = -1
        for each in answers:
            while not (uids := await api.store.explanations.asked(1)):
                mark = await api.store.changes.wait(mark, 1)
            asked.extend(uids)
            body = "" if each is None else each.model_dump_json()
            await api.store.explanations.answer({uids[0]: body}, datetime.now(UTC), lease.epoch)

    task = asyncio.create_task(answer())
    try:
        yield asked
    finally:
        task.cancel()
        await asyncio.wait([task])


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow machine is no absent controller."""
    monkeypatch.setattr(why, "PATIENCE_S", 15.0)


@pytest.mark.asyncio
async def test_the_controllers_answer_is_given_with_its_numbers_and_both_languages(api: ApiSite) -> None:
    job = await submitted(api)
    async with answering(api, reason(needed=4)) as asked, api.client() as client:
        answer = await client.get(PATH)
    assert answer.status_code == 200
    body = answer.json()
    assert (body["id"], body["state"], body["current"]) == (job.id, "WAITING", True)
    assert (body["waiting"]["cause"], body["waiting"]["needed"]) == ("priority", 4)
    assert set(body["waiting"]["texts"]) == {"en", "zh_CN"}
    assert body["asOf"] is not None
    assert asked == [job.uid]


@pytest.mark.asyncio
async def test_a_fresh_answer_is_given_to_many_and_an_old_one_asked_for_again(
    api: ApiSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    await submitted(api)
    monkeypatch.setattr(why, "FRESH", timedelta(minutes=1))
    async with answering(api, reason(needed=1), reason(needed=2)) as asked, api.client() as client:
        bodies = [(await client.get(PATH)).json()["waiting"]["needed"] for _ in range(5)]
        assert (bodies, len(asked)) == ([1] * 5, 1)
        monkeypatch.setattr(why, "FRESH", timedelta())
        assert (await client.get(PATH)).json()["waiting"]["needed"] == 2


@pytest.mark.asyncio
async def test_without_a_controller_the_last_answer_is_given_and_said_to_be_old(
    api: ApiSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    await submitted(api)
    monkeypatch.setattr(why, "PATIENCE_S", 0.2)
    async with api.client() as client:
        never = (await client.get(PATH)).json()
        assert (never["waiting"], never["asOf"], never["current"]) == (None, None, False)
        monkeypatch.setattr(why, "PATIENCE_S", 15.0)
        async with answering(api, *[reason(needed=3)] * 9):  # the question of before is open still
            assert (await client.get(PATH)).json()["current"] is True
        monkeypatch.setattr(why, "PATIENCE_S", 0.2)
        monkeypatch.setattr(why, "FRESH", timedelta())
        old = (await client.get(PATH)).json()
    assert (old["waiting"]["needed"], old["current"]) == (3, False)


@pytest.mark.asyncio
async def test_a_job_that_waits_for_no_gpu_has_the_sentence_alone(api: ApiSite) -> None:
    await submitted(api)
    async with answering(api, None), api.client() as client:
        body = (await client.get(PATH)).json()
    assert (body["waiting"], body["current"]) == (None, True)


@pytest.mark.asyncio
async def test_of_a_job_that_runs_nobody_is_asked(api: ApiSite) -> None:
    job = await submitted(api)
    lease = await api.store.leadership.acquire("test", 60, job.submitted_at)
    assert lease is not None
    tasks = tuple(task.model_copy(update={"phase": Phase.RUNNING, "state": State.RUNNING}) for task in job.tasks)
    running = job.model_copy(update={"tasks": tasks, "state": State.RUNNING, "phase": Phase.RUNNING})
    await api.store.jobs.save(running, seen=job, epoch=lease.epoch, events=[NewEvent("job.state")], at=job.submitted_at)
    async with api.client() as client:
        body = (await client.get(PATH)).json()
    assert (body["state"], body["waiting"], body["sentence"]) == ("RUNNING", None, "")
    assert await api.store.explanations.asked(1) == []


@pytest.mark.asyncio
async def test_a_job_of_somebody_else_is_not_there(api: ApiSite) -> None:
    await submitted(api)
    async with api.client(BOB) as client:
        answer = await client.get(PATH)
    assert (answer.status_code, answer.json()["code"]) == (404, "NoJobError")
    assert await api.store.explanations.asked(1) == []


@pytest.mark.asyncio
async def test_a_virtual_cluster_that_the_user_may_not_use_is_neither_suggested_nor_named(api: ApiSite) -> None:
    await submitted(api)
    rules = CellRules(grants={"alice": ("default",)})
    service = why.WhyService(dataclasses.replace(api.ctx, cells=rules))
    async with answering(api, reason(changes=CHANGES)):
        told = await service.why(User("alice"), "hello")
    assert told.waiting is not None
    assert [change.kind for change in told.waiting.changes] == [ChangeKind.OPPORTUNISTIC]
    assert "secret-team" not in told.model_dump_json()
