"""Jobs are stopped when they have run for as long as they may, whoever says so, and whatever runs meanwhile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.backend_process import Backend, backend, until
from tests.support.documents import scm_document


def submit(client: httpx.Client, name: str, **extras: object) -> None:
    body = json.loads(scm_document(name))
    body["taskRoles"][0] |= {"taskNumber": 1, "command": "exec sleep 1000"}
    body["extras"] = extras
    client.post("/api/v2/jobs", content=json.dumps(body)).raise_for_status()


def shown(client: httpx.Client, name: str) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"/api/v2/jobs/{name}").raise_for_status().json()
    return found


def stopped(client: httpx.Client, name: str) -> dict[str, Any]:
    until(lambda: shown(client, name)["state"] == "STOPPED")
    return shown(client, name)


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    """A backend whose only virtual cluster has a longest run of 3 seconds."""
    place = tmp_path_factory.mktemp("limited") / "data"
    with backend(place, ["--queue-vc", json.dumps({"longest_run_s": 3})]) as running:
        yield running


def test_the_longest_run_of_a_virtual_cluster_ends_a_job_without_a_time_of_its_own(limited: Backend) -> None:
    with limited.client() as client:
        submit(client, "plain")
        until(lambda: shown(client, "plain")["endAt"] is not None)
        running = shown(client, "plain")
        end, began = datetime.fromisoformat(running["endAt"]), datetime.fromisoformat(running["launchedTime"])
        assert end - began == timedelta(seconds=3)
        over = stopped(client, "plain")
        assert (over["exit"]["cause"], over["endAt"]) == ("duration", None)
        assert over["exit"]["message"] == "it has run for 3s, the longest run in its virtual cluster"
        events = client.get("/api/v2/jobs/plain/events").raise_for_status().json()["data"]
        (asked,) = (each["payload"] for each in events if each["type"] == "job.stop-requested")
        assert (asked["by"], asked["cause"]) == ("", "duration")


def test_a_document_may_ask_for_less_and_gets_no_more(limited: Backend) -> None:
    with limited.client() as client:
        submit(client, "shorter", jupyterPai={"maxDuration": "1s"})
        assert "its maxDuration" in stopped(client, "shorter")["exit"]["message"]
        submit(client, "longer", maxDuration="1h")
        assert "the longest run in its virtual cluster" in stopped(client, "longer")["exit"]["message"]


def test_time_that_the_backend_is_away_counts(tmp_path: Path) -> None:
    with backend(tmp_path / "data") as first, first.client() as client:
        submit(client, "away", jupyterPai={"maxDuration": "5s"})
        until(lambda: shown(client, "away")["endAt"] is not None)
        end = datetime.fromisoformat(shown(client, "away")["endAt"])
        first.process.kill()  # its tasks go on
        first.process.wait()
    until(lambda: datetime.now(UTC) > end)
    with backend(tmp_path / "data") as second, second.client() as client:
        assert stopped(client, "away")["exit"]["cause"] == "duration"
