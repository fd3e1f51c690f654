"""``jupyter_pai.api``: jobs from plain Python and from an event loop, before a fake backend."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_pai.api import AsyncClient, Client, Job
from jupyter_pai.errors import InvalidDocument, NameTaken, NotFound
from tests.support.running_fake import RunningFake

DOCUMENT = {"jobName": "train"}


@pytest.fixture
def endpoint_of_user(fake: RunningFake, monkeypatch: pytest.MonkeyPatch) -> RunningFake:
    """The backend is found as the command line finds it."""
    monkeypatch.setenv("PAI_URL", fake.endpoint.url)
    monkeypatch.setenv("PAI_TOKEN", fake.endpoint.token)
    return fake


def test_a_job_from_submit_to_its_end(endpoint_of_user: RunningFake, tmp_path: Path) -> None:
    fake = endpoint_of_user
    file = tmp_path / "job.json"
    file.write_text('\ufeff{"jobName": "train"}')
    with Client() as pai:
        job = pai.submit(DOCUMENT)
        assert (job.name, job.state, job.ended) == ("train", "WAITING", False)
        with pytest.raises(NameTaken):
            pai.submit('{"jobName": "train"}')
        assert pai.submit(b'{"jobName": "train"}', fresh_name=True).name == "train_2"
        fake.advance(job.uid, "RUNNING")
        fake.write_log(job.uid, "损失 0.5\n".encode())
        assert job.refresh()["state"] == "RUNNING"
        assert job.logs() == "损失 0.5\n"
        assert job.open().startswith(fake.endpoint.url)
        assert job.document() == '{\n  "jobName": "train"\n}'
        copy = job.clone()
        assert isinstance(copy, Job)
        assert (copy.name, copy.document()) == ("train_3", job.document())
        assert job.clone("other").name == "other"
        fake.advance(job.uid, "SUCCEEDED")
        assert job.wait()["state"] == job.state == "SUCCEEDED"
        assert "".join(job.follow_logs()) == "损失 0.5\n"
        copy.stop()
        assert copy.wait()["state"] == "STOPPED"
        assert [row["name"] for row in pai.jobs(state="WAITING")] == ["other", "train_2"]
        assert repr(pai.job("train")) == "<job train: SUCCEEDED>"
        with pytest.raises(NotFound):
            pai.job("none")
        with pytest.raises(InvalidDocument, match="cannot be read"):
            pai.submit(tmp_path / "none.json")


async def _on_a_loop(fake: RunningFake) -> list[str]:
    async with AsyncClient(fake.endpoint) as pai:
        job = await pai.submit(DOCUMENT)
        await job.stop()
        ended = await job.wait()
        assert (await pai.job("train")).uid == job.uid
        return [ended["state"], *[row["name"] for row in await pai.jobs()]]


@pytest.mark.asyncio
async def test_the_same_on_an_event_loop(fake: RunningFake) -> None:
    assert await _on_a_loop(fake) == ["STOPPED", "train"]


@pytest.mark.asyncio
async def test_plain_calls_work_while_a_loop_runs(fake: RunningFake) -> None:
    with Client(fake.endpoint) as pai:
        assert pai.submit(DOCUMENT).state == "WAITING"


def test_ssh_gives_the_command_that_logs_in(
    endpoint_of_user: RunningFake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAI_SSH_DIR", str(tmp_path))
    with Client() as pai:
        job = pai.submit(DOCUMENT)
        endpoint_of_user.advance(job.uid, "RUNNING")
        config = tmp_path / "pai" / "test-cluster" / "config"
        assert job.ssh() == ["ssh", "-F", str(config), f"{job.uid}--main-0"]
