"""An api process with a data directory of its own: it must not say that a task wrote nothing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import httpx

from pai_backend.api.wire import MEDIA_TYPE
from pai_backend.testing.free_ports import free_port
from tests.support.backend_process import backend, command, until
from tests.support.documents import scm_document


def test_a_replica_with_a_data_directory_of_its_own_says_that_logs_and_files_are_elsewhere(tmp_path: Path) -> None:
    role = {"name": "worker", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 128, "shmMB": 64, "gpuNumber": 0}
    documents = [
        scm_document(name, gpuType=None, taskRoles=[{**role, "command": said}])
        for name, said in (("told", "echo wisdom"), ("silent", "true"))
    ]
    port = free_port()
    with backend(tmp_path / "data") as running, running.client() as client:
        for document in documents:
            assert client.post("/api/v2/jobs", content=document).status_code == 202
        for name in ("told", "silent"):
            until(lambda name=name: client.get(f"/api/v2/jobs/{name}").json()["state"] == "SUCCEEDED")  # type: ignore[misc]
        assert client.get("/api/v2/jobs/told/logs").text == "wisdom\n"
        assert client.get("/api/v2/jobs/silent/logs").status_code == 200, "a task that wrote nothing has an empty log"
        same = ["--secret-key-file", str(tmp_path / "data" / "secret.key"), "--role", "api", "--api-port", str(port)]
        database = {"PAI_BACKEND_DATABASE": f"sqlite:///{tmp_path / 'data' / 'pai.sqlite'}"}
        replica = subprocess.Popen(command(tmp_path / "own", *same), env={**os.environ, **database})
        try:
            until(lambda: replica.poll() is not None or (tmp_path / "own" / "token").exists())
            assert replica.poll() is None
            token = (tmp_path / "own" / "token").read_text().strip()
            headers = {"Authorization": f"Bearer {token}", "Accept": MEDIA_TYPE}
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60) as other:
                until(lambda: replica.poll() is not None or serves(other))
                for name in ("told", "silent"):
                    asked = other.get(f"/api/v2/jobs/{name}/logs")
                    assert (asked.status_code, asked.json()["code"]) == (503, "UnavailableError")
                    assert "written to another one" in asked.json()["message"]
                for asked in (other.get("/api/v2/fs/"), other.put("/api/v2/fs/someone/code.py", content=b"pass")):
                    assert (asked.status_code, asked.json()["code"]) == (503, "UnavailableError")
                    assert "storage.default_uri" in asked.json()["hint"]
                assert not (tmp_path / "own" / "fs").exists()
        finally:
            replica.terminate()
            replica.wait(60)


def serves(client: httpx.Client) -> bool:
    """Whether its database is open: until then it refuses everything but ``/healthz``."""
    try:
        return client.get("/api/v2/jobs").status_code == 200
    except httpx.TransportError:
        return False
