"""The seeds' documents: those of SCM as they are; the distributed ones but for image and numbers of a large machine.

What these call (wget, git, hdfs, the training program) is stood in for by programs that check how they are called and
exit non-zero otherwise; the tasks meet each other at the addresses of their host lists.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
import yaml

from jupyter_pai.wire_types import TaskWire
from tests.conformance.engines.documents import Document
from tests.conformance.engines.room import JOB_S, Job, Room, facts
from tests.support.backend_process import until

TESTS = Path(__file__).parents[2]
DOCUMENTS = TESTS / "data" / "documents"
PROGRAMS = TESTS / "integration" / "examples" / "programs"
INSTALL = "pip --quiet install scipy && python "  # there is no index of packages to install from


@pytest.fixture(scope="module")
def programs(room: Room) -> Path:
    """A directory of the default file system with what the examples call."""
    place = room.files / "programs"
    shutil.copytree(PROGRAMS, place)
    (place / "python").write_text('#!/bin/sh\nexec python3 "$@"\n')
    (place / "python").chmod(0o755)
    return place


def smaller(numbers: Document, gpu: str, cpu: str) -> None:
    """Ask for what two small machines have, in place."""
    numbers[gpu] = min(1, numbers[gpu])
    numbers[cpu], numbers["memoryMB"] = 1, 256


def hosts(job: Job, role: str) -> str:
    """The host list of a role, from what the REST interface says of its tasks."""
    return ",".join(f"{each['address']}:{each['ports']['http'][0]}" for each in tasks_of(job, role))


def tasks_of(job: Job, role: str) -> list[TaskWire]:
    """The tasks of a role, by index."""
    return [task for task in job.tasks if task["role"] == role]


def test_the_qizhi_example_runs_to_the_completion_it_asks_for(room: Room, programs: Path) -> None:
    """Two workers complete, which ends the job and the parameter servers that wait for ever."""
    lines = (DOCUMENTS / "qizhi-tensorflow-distributed.json").read_text().splitlines()
    document = json.loads("\n".join(line for line in lines if not line.startswith("//")))
    for role in document["taskRoles"]:
        smaller(role, "gpuNumber", "cpuNumber")
        role["command"] = role["command"].replace(INSTALL, "python3 ")
    base = room.files / "path" / "tensorflow-distributed-jobguid"
    (base / "data").mkdir(parents=True)
    (base / "code").mkdir()
    shutil.copy(programs / "tf_cnn_benchmarks.py", base / "code")
    job = room.submit(document)
    job.ended("SUCCEEDED")
    states = {role: [task["state"] for task in tasks_of(job, role)] for role in ("ps_server", "worker")}
    assert states == {"ps_server": ["STOPPED"] * 2, "worker": ["SUCCEEDED"] * 2}
    assert sorted(path.name for path in (base / "output").iterdir()) == ["checkpoint-worker-0", "checkpoint-worker-1"]
    for index in (0, 1):
        told = facts(job.log("worker", index))
        assert told["flags"]["data_dir"] == told["variables"]["QIZHI_DATA_DIR"] == str(base / "data")
        assert told["flags"]["train_dir"] == told["variables"]["QIZHI_OUTPUT_DIR"] == str(base / "output")
        assert told["flags"]["worker_hosts"] == told["variables"]["QIZHI_TASK_ROLE_worker_HOST_LIST"]
        assert (told["flags"]["ps_hosts"], told["flags"]["worker_hosts"]) == (
            hosts(job, "ps_server"),
            hosts(job, "worker"),
        )
        assert (
            told["flags"]["task_index"] == told["variables"]["QIZHI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"] == str(index)
        )
        assert (told["files"], told["cwd"]) == (["code"], told["variables"]["QIZHI_WORK_DIR"])


def test_the_v2_example_runs_to_the_completion_it_asks_for(room: Room, programs: Path) -> None:
    """The worker's success is the job's; the parameter server has copied its model before."""
    document = yaml.safe_load((DOCUMENTS / "openpai-v2-tensorflow-cifar10.yaml").read_text())
    for role in document["taskRoles"].values():
        smaller(role["resourcePerInstance"], "gpu", "cpu")
    for part in document["deployments"][0]["taskRoles"].values():
        part["preCommands"].insert(0, f"export PATH={programs}:$PATH")
    job = room.submit(document)
    job.ended("SUCCEEDED")
    assert (room.files / "copied").exists()
    assert tasks_of(job, "worker")[0]["state"] == "SUCCEEDED"
    logs = ""
    for role, program in (("worker", "worker"), ("ps_server", "ps")):
        told = facts(job.log(role))
        work = told["variables"]["PAI_WORK_DIR"]
        assert told["flags"] == {
            "job_name": program,
            "local_parameter_device": "gpu",
            "variable_update": "parameter_server",
            "ps_hosts": hosts(job, "ps_server"),
            "worker_hosts": hosts(job, "worker"),
            "task_index": "0",
            "data_name": "cifar10",
            "data_dir": f"{work}/data_cifar10",
            "train_dir": f"{work}/output_tensorflow_cifar10_model",
            "model": "resnet20",
            "batch_size": "32",
        }
        assert told["cwd"] == f"{work}/script_tensorflow_cnnbenchmarks/scripts/tf_cnn_benchmarks"
        logs += job.log(role, stream="all")
    assert "cGFzc3dvcmQ=" not in logs


@pytest.fixture(scope="module")
def scm(room: Room, request: pytest.FixtureRequest) -> Room:
    """The room with the images that documents of SCM name."""
    request.getfixturevalue("scm_images")
    return room


def test_the_first_scm_example_sees_its_gpu(scm: Room) -> None:
    job = scm.submit_as_it_is((DOCUMENTS / "scm-helloworld.json").read_bytes())
    assert job.ended("SUCCEEDED")["dialect"] == "scm"
    assert "NVIDIA-SMI" in job.log("task_1")
    assert job.task("task_1")["gpuType"] == "TITANX"


def test_the_jupyter_of_the_scm_example_answers_at_its_address(scm: Room) -> None:
    job = scm.submit_as_it_is((DOCUMENTS / "scm-jupyter.json").read_bytes())
    (service,) = job.running()["services"]
    headers = {"Authorization": f"Bearer {scm.backend.token}", "Host": urlsplit(service["url"]).netloc}
    with httpx.Client(base_url=scm.backend.url, headers=headers, timeout=60) as client:
        until(lambda: client.get("/api/status").status_code == 200, JOB_S)
        assert client.get("/api/status").json()["kernels"] == 0
        assert client.get("/").headers["location"].startswith("/tree")
    job.stop()
    job.ended("STOPPED")
