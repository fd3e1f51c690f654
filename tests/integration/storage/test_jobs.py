"""Jobs of a real backend that read and write storages: the default directory, team storages, HDFS."""

from __future__ import annotations

import getpass
import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.backend_process import Backend, backend
from tests.support.documents import scm_document
from tests.support.hdfs import Hdfs

USER = getpass.getuser()
TRAIN = """import os, fsspec
with fsspec.open(os.environ["PAI_DATA_DIR"] + "/numbers", "rt") as file:
    total = sum(map(int, file))
with fsspec.open(os.environ["PAI_OUTPUT_DIR"] + "/total", "wt") as file:
    file.write(str(total))
print("total", total)
"""


def job(name: str, command: str, **changes: Any) -> bytes:
    role = {"name": "r", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 0, "command": command}
    return scm_document(name, taskRoles=[role], gpuType="", **changes)


def ended(client: httpx.Client, name: str, document: bytes, filename: str = "job.json") -> tuple[str, str, str]:
    """Submit; the state it ended in, its log and its task's last words."""
    answer = client.post("/api/v2/jobs", content=document, params={"name": name, "filename": filename})
    assert answer.status_code == 202, answer.text
    deadline = time.monotonic() + 60
    while True:
        detail = client.get(f"/api/v2/jobs/{name}").json()
        if detail["state"] in ("SUCCEEDED", "FAILED", "STOPPED"):
            break
        assert time.monotonic() < deadline, detail
        time.sleep(0.02)
    log = client.get(f"/api/v2/jobs/{name}/logs").text
    (task,) = [task for role in detail["taskRoles"] for task in role["taskStatuses"]]
    return detail["state"], log, json.dumps(task["exit"])


@pytest.fixture(scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("datasets")
    (place / "mnist").write_text("digits")
    return place


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, datasets: Path) -> Iterator[Backend]:
    mounts = [{"name": "data-sets", "uri": str(datasets)}, {"name": "others", "uri": "/x", "users": ["somebody"]}]
    with backend(tmp_path_factory.mktemp("site") / "backend", ["--storage-mounts", json.dumps(mounts)]) as started:
        yield started


def test_code_and_data_of_the_default_file_system_reach_a_job_and_its_output_stays(running: Backend) -> None:
    with running.client() as client:
        for name, data in (("code/train.py", TRAIN.encode()), ("data/numbers", b"1\n2\n39\n")):
            assert client.put(f"/api/v2/fs/{USER}/{name}", content=data).status_code == 200
        document = job(
            "train",
            "python code/train.py && test ! -w code/train.py -o $(id -u) = 0 && ls -ld code",
            codeDir="$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/code",
            dataDir="$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/data",
        )
        state, log, said = ended(client, "train", document)
        assert state == "SUCCEEDED", log + said
        assert "total 42" in log
        assert "dr-xr-xr-x" in log
        assert client.get("/api/v2/fs/Output/train/total").text == "42"


def test_the_default_file_system_is_a_path_that_open_takes(running: Backend) -> None:
    with running.client() as client:
        client.put(f"/api/v2/fs/{USER}/note", content=b"a note")
        command = 'cat "$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/note"; echo; echo "[$QIZHI_DEFAULT_FS_URI]"'
        state, log, said = ended(client, "plain", job("plain", command))
        assert (state, log.splitlines()[-2:]) == ("SUCCEEDED", ["a note", f"[{running.data_dir / 'fs'}]"]), said


def test_code_that_is_not_there_ends_the_task_with_the_reason(running: Backend) -> None:
    with running.client() as client:
        state, log, said = ended(client, "gone", job("gone", "true", codeDir="$PAI_DEFAULT_FS_URI/nobody/code"))
        assert state == "FAILED"
        assert "input-failed" in said
        assert "nobody/code does not exist" in said
        assert "nobody/code does not exist" in log


def test_an_auth_file_that_is_none_ends_the_task_and_is_not_quoted(running: Backend) -> None:
    with running.client() as client:
        client.put(f"/api/v2/fs/{USER}/auth", content=b"registry\nhunter22\n")
        state, _, said = ended(client, "auth", job("auth", "true", authFile="$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/auth"))
        assert (state, "start-failed" in said) == ("FAILED", True)
        assert "the file has 2 lines" in said
        assert "hunter22" not in said
        client.put(f"/api/v2/fs/{USER}/auth", content=b"registry\nuser\nhunter22\n")
        state, _, said = ended(
            client, "auth2", job("auth2", "true", authFile="$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/auth")
        )
        assert state == "SUCCEEDED", said


def test_a_granted_team_storage_is_a_link_and_a_variable(running: Backend, datasets: Path) -> None:
    document = """
protocolVersion: 2
name: team
type: job
prerequisites:
  - {type: dockerimage, name: image, uri: example/image}
taskRoles:
  r:
    instances: 1
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 100, gpu: 0}
    commands: ['cat mnt/data-sets/mnist', 'echo " $PAI_STORAGE_data_sets"']
extras:
  storages: [{name: data-sets}]
"""
    with running.client() as client:
        state, log, said = ended(client, "team", document.encode(), "job.yaml")
        assert (state, log) == ("SUCCEEDED", f"digits {datasets}\n"), said
        refused = client.post(
            "/api/v2/jobs",
            content=document.replace("data-sets}]", "others}]").encode(),
            params={"filename": "job.yaml"},
        )
        assert (refused.status_code, refused.json()["code"]) == (404, "NoStorageError")


@pytest.mark.xdist_group("hdfs")
def test_a_job_lives_on_hdfs(hdfs: Hdfs, tmp_path: Path) -> None:
    base = f"/site-{os.urandom(4).hex()}"
    hdfs.give(f"{base}/{USER}", USER)
    hdfs.give(f"{base}/Output", USER)
    uri = f"{hdfs.uri}{base}"
    with backend(tmp_path / "backend", ["--storage-default-uri", uri]) as running, running.client() as client:
        for name, data in (("code/train.py", TRAIN.encode()), ("data/numbers", b"1\n2\n39\n")):
            answer = client.put(f"/api/v2/fs/{USER}/{name}", content=data)
            assert (answer.status_code, answer.json()["complete"]) == (200, True), answer.text
        document = job(
            "train",
            'python code/train.py && echo "[$PAI_OUTPUT_DIR]"',
            codeDir="$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/code",
            dataDir=f"{hdfs.web_uri}{base}/$PAI_USER_NAME/data",
        )
        state, log, said = ended(client, "train", document)
        assert state == "SUCCEEDED", log + said
        assert "total 42" in log
        (place,) = re.findall(rf"\[{re.escape(uri)}(/Output/{USER}/j[0-9a-f]+)\]", log)
        assert hdfs.read(f"{base}{place}/total") == b"42"
        assert client.get("/api/v2/fs/Output/train/total").text == "42"
        state, _, said = ended(client, "none", job("none", "true", codeDir="$PAI_DEFAULT_FS_URI/nobody/code"))
        assert (state, "input-failed" in said, "does not exist" in said) == ("FAILED", True, True)
