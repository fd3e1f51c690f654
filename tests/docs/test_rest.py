"""The commands of the REST page do what they say: curl, wget and OpenSSH against a real backend."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.docs.pages import fences
from tests.support.backend_process import Backend, backend, until
from tests.support.documents import scm_document

PAGE = "docs/rest.md"
SUBMIT_AND_LIST, LOG_IN = (fence for fence in fences(PAGE) if fence.language == "bash")
ROLE = {"name": "main", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 256, "gpuNumber": 0, "command": "sleep 600"}
OPTIONS = "-o StrictHostKeyChecking=yes -o GlobalKnownHostsFile=/dev/null -o BatchMode=yes -F none"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Backend]:
    with backend(tmp_path / "data") as one:
        yield one
        with one.client() as client:
            for row in client.get("/api/v2/jobs?state=WAITING,RUNNING").json():
                client.put(f"/api/v2/jobs/{row['id']}/executionType", json={"value": "STOP"})


def bash(text: str, directory: Path, **variables: str) -> str:
    """Run a fence as it stands, with an ``ssh`` that asks nothing; what it prints on standard output."""
    (directory / "bin").mkdir(exist_ok=True)
    program = directory / "bin" / "ssh"
    program.write_text(f'#!/bin/sh\nexec /usr/bin/ssh {OPTIONS} "$@"\n')
    program.chmod(0o755)
    environment = {**os.environ, **variables, "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-euc", text], cwd=directory, env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_curl_commands_submit_and_list(running: Backend, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_bytes(scm_document("one", taskRoles=[ROLE]))
    variables = {"TOKEN": running.token, "PAI_URL": running.url}
    submit, listing = SUBMIT_AND_LIST.text.strip().split("\n")
    assert json.loads(bash(submit, tmp_path, **variables))["status"] == 202

    def is_running() -> bool:
        return [row["name"] for row in json.loads(bash(listing, tmp_path, **variables))] == ["one"]

    until(is_running)


def test_the_link_gives_the_key_to_wget_and_the_key_opens_the_task(running: Backend, tmp_path: Path) -> None:
    with running.client() as client:
        client.post("/api/v2/jobs", content=scm_document("job", taskRoles=[ROLE])).raise_for_status()
    headers = {"Authorization": f"Bearer {running.token}"}

    def answer() -> dict[str, Any]:
        found: dict[str, Any] = httpx.get(f"{running.url}/api/v1/jobs/job/ssh", headers=headers).json()
        return found

    until(lambda: "containers" in answer())
    told = answer()
    (container,) = told["containers"]
    link = told["keyPair"]["privateKeyDirectDownloadLink"]
    variables = {
        "LINK": link,
        "SSH_PORT": str(container["sshPort"]),
        "SSH_IP": container["sshIp"],
        "KNOWN_HOSTS": container["knownHosts"],
    }
    assert bash(LOG_IN.text, tmp_path, **variables).strip() == os.uname().nodename
    assert (tmp_path / "job").stat().st_mode & 0o777 == 0o400
    again = httpx.get(link)
    assert (again.status_code, again.json()["code"]) == (403, "ForbiddenUserError")
    logs = "".join(path.read_text(errors="replace") for path in tmp_path.rglob("*.stderr"))
    assert link.partition("ticket=")[2] not in logs
