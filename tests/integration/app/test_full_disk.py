"""A disk that is full: what frees it goes on working, nothing new is taken, and all is told."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from argon2 import PasswordHasher

from tests.support.backend_process import Backend, backend, until

DISK = "128m"
RESERVE = 16 * 2**20
PASSWORD = "correct horse battery"
USER = "vic"
HOG = "while :; do cat /dev/zero >>hog 2>/dev/null; done"
"""Takes whatever becomes free, and goes on."""
WRITES = 3_000
"""More than the log of the database has room for."""

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a small disk"),
]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "data"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=700", "tmpfs", str(place)], check=False)
    if mounted.returncode:
        pytest.skip("this machine lets no tmpfs be mounted")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.fixture
def running(small_disk: Path) -> Iterator[Backend]:
    settings = {
        "PAI_BACKEND_DISK_RESERVE_BYTES": str(RESERVE),
        "PAI_BACKEND_ENGINE__TRUST_ALL_USERS": "true",
        "PAI_BACKEND_API__USERS": json.dumps([{"name": USER, "password_hash": PasswordHasher().hash(PASSWORD)}]),
    }
    with backend(small_disk, env=settings) as started:
        yield started


def submit(client: httpx.Client, name: str, command: str) -> httpx.Response:
    # What is on a tmpfs counts as the memory of who wrote it.
    role = {"name": "main", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 1000, "gpuNumber": 0, "command": command}
    document = {"jobName": name, "image": "none", "retryCount": 0, "taskRoles": [role]}
    return client.post("/api/v2/jobs", content=json.dumps(document))


def state(client: httpx.Client, name: str) -> str:
    return str(client.get(f"/api/v2/jobs/{name}").json()["state"])


def check(client: httpx.Client) -> dict[str, Any]:
    """What ``/readyz`` says of the disk. It is ready in any case: users are not sent elsewhere."""
    answer = client.get("/readyz?check=disk")
    assert answer.status_code == 200
    (found,) = answer.json()["checks"]
    return dict(found)


def free(place: Path) -> int:
    disk = os.statvfs(place)
    return disk.f_bavail * disk.f_frsize


def sign_in(client: httpx.Client) -> int:
    body = {"username": USER, "password": PASSWORD}
    return httpx.post(f"{client.base_url}/api/v2/authn/basic/login", json=body, timeout=60).status_code


def test_on_a_full_disk_users_sign_in_stop_and_delete_and_then_submit(running: Backend, small_disk: Path) -> None:
    with running.client() as client:
        until(lambda: not check(client)["degraded"])
        assert submit(client, "old", "head -c 20000000 /dev/urandom >kept; echo done").status_code == 202
        until(lambda: state(client, "old") == "SUCCEEDED")
        assert submit(client, "hog", HOG).status_code == 202
        until(lambda: free(small_disk) == 0)

        for number in range(WRITES):
            tagged = client.put("/api/v2/jobs/old/tag", json={"value": f"t{number % 8}"})
            assert tagged.status_code == 200, tagged.text
            untagged = client.request("DELETE", "/api/v2/jobs/old/tag", json={"value": f"t{number % 8}"})
            assert untagged.status_code == 200, untagged.text
            if number % 20 == 0 and check(client)["degraded"]:
                break
        told = check(client)
        assert told["degraded"], "the database never needed the reserve"
        assert "free some, for instance by `pai delete`" in told["message"]
        assert "pai_disk_reserve 0.0" in client.get("/metrics").text
        until(lambda: free(small_disk) == 0)

        refused = submit(client, "more", "true")
        assert (refused.status_code, refused.json()["code"]) == (503, "UnavailableError")
        assert "pai delete" in refused.json()["hint"]
        assert sign_in(client) == 200
        assert client.put("/api/v2/jobs/hog/executionType", json={"value": "STOP"}).status_code == 202
        until(lambda: state(client, "hog") == "STOPPED")
        for name in ("old", "hog"):
            assert client.delete(f"/api/v2/jobs/{name}").status_code == 202

        until(lambda: not check(client)["degraded"])
        assert "pai_disk_reserve 1.0" in client.get("/metrics").text
        assert free(small_disk) > 40_000_000
        assert submit(client, "again", "echo fine").status_code == 202
        until(lambda: state(client, "again") == "SUCCEEDED")
        assert client.get("/api/v2/jobs/again/logs").text == "fine\n"
    said = running.errors.read_text()
    assert "the reserve is given up" in said
    assert said.count("are reserved for stop, delete and sign-in") == 2


def test_a_backend_starts_on_a_full_disk(small_disk: Path) -> None:
    env = {"PAI_BACKEND_DISK_RESERVE_BYTES": str(RESERVE)}
    with backend(small_disk, env=env) as first, first.client() as client:
        until(lambda: not check(client)["degraded"])
        submit(client, "old", "head -c 20000000 /dev/urandom >kept")
        until(lambda: state(client, "old") == "SUCCEEDED")
    with (small_disk / "junk").open("wb", buffering=0) as junk:  # else what found no room is written again at the end
        try:
            while True:
                junk.write(bytes(2**16))
        except OSError:
            pass

    with backend(small_disk, env=env) as second, second.client() as client:
        assert client.delete("/api/v2/jobs/old").status_code == 202
        until(lambda: free(small_disk) > 10_000_000)
