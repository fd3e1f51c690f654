"""Rules of a virtual cluster on a real backend: they hold at once, and after a kill."""

from __future__ import annotations

import json
from pathlib import Path

import httpx

from tests.support.backend_process import backend, until
from tests.support.documents import scm_document

PATH = "/api/v2/virtual-clusters/default/rules"


def submit(client: httpx.Client, name: str, **changes: object) -> httpx.Response:
    body = json.loads(scm_document(name))
    body["taskRoles"][0] |= {"taskNumber": 1, "gpuNumber": 0, "command": "exec sleep 1000"}
    return client.post("/api/v2/jobs", content=json.dumps(body | changes))


def why(client: httpx.Client, name: str) -> str:
    return str(client.get(f"/api/v2/jobs/{name}").raise_for_status().json()["why"])


def test_rules_hold_at_once_and_after_a_kill(tmp_path: Path) -> None:
    with backend(tmp_path / "data") as first, first.client() as client:
        submit(client, "one").raise_for_status()
        until(lambda: client.get("/api/v2/jobs/one").json()["state"] == "RUNNING")
        rules = {"images": ["registry.lab/*"], "mostJobsPerUser": 1}
        client.put(PATH, json=rules).raise_for_status()
        refused = submit(client, "two")
        assert refused.status_code == 400
        assert refused.json()["errors"][0]["path"] == "$.image"
        first.process.kill()
        first.process.wait()
    with backend(tmp_path / "data") as second, second.client() as client:
        assert client.get(PATH).json()["rules"]["images"] == ["registry.lab/*"]
        assert submit(client, "four").status_code == 400
        submit(client, "three", image="registry.lab/a:1").raise_for_status()
        until(lambda: "at most 1 jobs at once" in why(client, "three"))
        client.put(PATH, json={"mostJobsPerUser": None, "longestRunS": 3600}).raise_for_status()
        until(lambda: client.get("/api/v2/jobs/three").json()["state"] == "RUNNING")
        assert client.get("/api/v2/jobs/three").json()["endAt"] is not None
        client.put(PATH, json={"longestRunS": None}).raise_for_status()
        assert client.get("/api/v2/jobs/three").json()["endAt"] is None
