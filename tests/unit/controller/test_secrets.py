"""Secrets reach plans and nothing else: an engine's words are scrubbed before they become part of a job."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pai_backend.access.secrecy import JobSecrets
from pai_backend.controller.inbox import cleaned, without_secrets
from pai_backend.engine.base import EngineError, StartRefused, TaskSeen, TaskState
from pai_backend.lifecycle.events import JobEvent, Look, TaskDelayed, TaskExited, Waiting
from pai_backend.model.job import Job, State, TaskExit
from pai_backend.model.scrub import Scrubber
from pai_backend.model.spec import Dialect, JobSpec
from pai_backend.testing.builders import T0, make_job, make_role, make_spec
from tests.support.scripted_cluster import Cluster, cluster, opened

SECRET = "planted-Secret-0123456789"


def spec(command: str = "login <% $secrets.token %>", **changes: object) -> JobSpec:
    made = make_spec(roles=[make_role(command=command)], dialect=Dialect.OPENPAI_V2, **changes)  # type: ignore[arg-type]
    return made.model_copy(update={"secret_names": ("token",)})


async def everything_kept(world: Cluster, job: Job) -> str:
    """A job, its tasks and its events as anybody could be shown them."""
    now = await world.store.jobs.get(job.uid)
    events = await world.store.events.of_job(job.uid)
    return now.model_dump_json() + json.dumps([event.payload for event in events]) + repr(now)


@pytest.mark.asyncio
async def test_a_plan_has_the_values_and_the_job_has_not(tmp_path: Path) -> None:
    async with cluster(tmp_path) as world:
        job = await world.running(await world.submit(spec(), token=SECRET))
        (plan,) = await world.engine.started(1)

        assert plan.command == f"login {SECRET}"
        assert plan.env["JUPYTER_TOKEN"] == await JobSecrets(world.store).token(job.uid)
        assert SECRET not in repr(plan)
        assert SECRET not in await everything_kept(world, job)


@pytest.mark.asyncio
async def test_a_secret_that_is_not_there_ends_the_task_and_names_the_tag(tmp_path: Path) -> None:
    async with cluster(tmp_path) as world:
        job = await world.final(await world.submit(spec("echo <% $secrets.other %>"), token=SECRET))

        (task,) = job.tasks
        assert job.state is State.FAILED
        assert task.exit is not None
        assert task.exit.reason == "start-failed"
        assert "<% $secrets.other %>" in task.exit.message
        assert world.engine.starts == []


@pytest.mark.asyncio
async def test_an_engine_that_repeats_a_plan_gives_nothing_away(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with cluster(tmp_path) as world:
        world.engine.trouble = [EngineError(f"cannot run {SECRET!r} now"), StartRefused(f"cannot run {SECRET!r}")]
        job = await world.final(await world.submit(spec(), token=SECRET))

        (task,) = job.tasks
        assert task.exit is not None
        assert f"cannot run '{'*' * len(SECRET)}'" in task.exit.message
        assert SECRET not in await everything_kept(world, job)
        assert SECRET not in caplog.text
        assert "cannot start" in caplog.text


@pytest.mark.asyncio
async def test_the_words_about_an_exit_are_scrubbed(tmp_path: Path) -> None:
    async with cluster(tmp_path) as world:
        job = await world.running(await world.submit(spec(), token=SECRET))
        uid = job.tasks[0].uid
        gone = TaskExit(code=1, message=f"the command {SECRET} is not there", at=datetime.now(UTC))
        await world.engine.say(TaskSeen(uid, TaskState.EXITED, exit=gone))

        ended = await world.final(job)

        assert ended.tasks[0].exit is not None
        assert "the command ****" in ended.tasks[0].exit.message
        assert SECRET not in await everything_kept(world, job)


@pytest.mark.asyncio
async def test_news_without_words_ask_for_no_secret(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        news: list[JobEvent] = [Look(), TaskExited(make_job().tasks[0].uid, TaskExit(code=0, at=T0))]

        assert await cleaned(make_job(), news, JobSecrets(store)) is news


def test_only_the_words_of_an_engine_change() -> None:
    scrubber = Scrubber([SECRET])
    exit_ = TaskExit(code=3, signal=None, reason="exited", message=SECRET, at=T0)
    event = TaskExited(make_job().tasks[0].uid, exit_)

    after = without_secrets(event, scrubber)

    assert after == TaskExited(event.uid, exit_.model_copy(update={"message": "*" * len(SECRET)}))
    assert without_secrets(Waiting(f"x {SECRET}"), scrubber) == Waiting(f"x {'*' * len(SECRET)}")
    delayed = TaskDelayed(event.uid, f"x {SECRET}")
    assert without_secrets(delayed, scrubber) == TaskDelayed(event.uid, f"x {'*' * len(SECRET)}")
    assert without_secrets(Look(), scrubber) == Look()
