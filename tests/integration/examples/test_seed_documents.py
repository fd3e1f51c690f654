"""The two distributed examples of the guides and the templates, unchanged, on a real backend and the local engine.

What they call (wget, git, hdfs, the training program) is stood in for by programs that check how they are called and
exit non-zero otherwise; the tasks meet each other at the addresses of their host lists. pip is the real one: it
installs a package of that name, made here.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

import pai_backend.api
from jupyter_pai.endpoint import Endpoint
from jupyter_pai.sync import Client
from tests.support.backend_process import backend, until
from tests.support.environments import Environment, make_environment
from tests.support.wheels import make_wheel

TEMPLATES = Path(pai_backend.api.__file__).parent / "templates"
PROGRAMS = Path(__file__).parent / "programs"
DOCUMENTS = Path(__file__).parents[2] / "data" / "documents"
NODES = [
    {"name": name, "gpus": {"type": "TITANX", "count": 8}, "cpus": 16, "memory_mb": 65536} for name in ("carol", "dan")
]
FINAL = ("SUCCEEDED", "FAILED", "STOPPED")


@dataclass
class Site:
    """A running backend, and its default file system."""

    client: Client
    files: Path

    def run(self, name: str, directory: Path = DOCUMENTS) -> dict[str, Any]:
        """Submit a document as it is, and the job when it has ended."""
        job = self.client.submit((directory / name).read_bytes(), filename=name)
        uid = job["uid"]
        until(lambda: self.client.job(uid)["state"] in FINAL, 120)
        return dict(self.client.job(uid))

    def log(self, job: dict[str, Any], role: str, index: int, stream: str = "all") -> str:
        """What a task has written."""
        return self.client.log(job["uid"], role=role, index=index, stream=stream).data.decode()

    def told(self, job: dict[str, Any], role: str, index: int) -> dict[str, Any]:
        """What the training program of a task says that it was told."""
        return dict(json.loads(self.log(job, role, index, "stdout").splitlines()[0]))


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An interpreter with the packages of this one, and with our programs beside it: tasks find these first."""
    made = make_environment(tmp_path_factory.mktemp("interpreter"))
    for program in PROGRAMS.iterdir():
        if program.is_file():
            shutil.copy(program, made.home / "bin")
    make_wheel(made.wheels, "scipy", "1.0", {"scipy.py": "WHERE = __file__\n"})
    return made


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, environment: Environment) -> Iterator[Site]:
    """A backend with enough simulated GPUs for both examples."""
    folder = tmp_path_factory.mktemp("seeds")
    files = folder / "files"
    files.mkdir()
    arguments = ["--engine-nodes", json.dumps(NODES), "--storage-default-uri", str(files)]
    arguments += ["--virtual-clusters", json.dumps(["default", "your_virtual_cluster"])]
    with (
        backend(folder / "data", arguments, python=environment.python) as running,
        Client(Endpoint(running.url, running.token)) as client,
    ):
        yield Site(client, files)


def tasks_of(job: dict[str, Any], role: str) -> list[dict[str, Any]]:
    """The tasks of a role, by index."""
    return list(next(part["taskStatuses"] for part in job["taskRoles"] if part["name"] == role))


def hosts(job: dict[str, Any], role: str) -> str:
    """The host list of a role, from what the API says of its tasks."""
    tasks = tasks_of(job, role)
    return ",".join(f"{task['address']}:{task['ports']['http'][0]}" for task in tasks)


def test_the_qizhi_example_runs_to_the_completion_it_asks_for(site: Site, environment: Environment) -> None:
    """Two workers complete, which ends the job and the parameter servers that wait for ever.

    All four tasks install a package at once, and the backend runs from the environment whose pip they call.
    """
    before = {path: content for path, content in environment.state().items() if "__pycache__" not in path}
    base = site.files / "path" / "tensorflow-distributed-jobguid"
    (base / "code").mkdir(parents=True)
    (base / "data").mkdir()
    shutil.copy(PROGRAMS / "tf_cnn_benchmarks.py", base / "code")
    job = site.run("qizhi-tensorflow-distributed.json")
    assert job["state"] == "SUCCEEDED", [site.log(job, "worker", index) for index in (0, 1)]
    states = {role: [task["state"] for task in tasks_of(job, role)] for role in ("ps_server", "worker")}
    assert states == {"ps_server": ["STOPPED"] * 2, "worker": ["SUCCEEDED"] * 2}
    assert sorted(path.name for path in (base / "output").iterdir()) == ["checkpoint-worker-0", "checkpoint-worker-1"]
    for role, program in (("ps_server", "ps"), ("worker", "worker")):
        for index in (0, 1):
            told = site.told(job, role, index)
            assert told["flags"] == {
                "local_parameter_device": "cpu",
                "batch_size": "32",
                "model": "resnet20",
                "variable_update": "parameter_server",
                "data_dir": str(base / "data"),
                "data_name": "cifar10",
                "train_dir": str(base / "output"),
                "ps_hosts": hosts(job, "ps_server"),
                "worker_hosts": hosts(job, "worker"),
                "job_name": program,
                "task_index": str(index),
            }
            assert told["files"] == ["code"]
            expected = qizhi_variables(job, base, site.files, role, index)
            assert {name: told["variables"].get(name) for name in expected} == expected
            assert told["variables"]["QIZHI_WORK_DIR"] == told["cwd"]
    after = {path: content for path, content in environment.state().items() if "__pycache__" not in path}
    assert after == before


def qizhi_variables(job: dict[str, Any], base: Path, files: Path, role: str, index: int) -> dict[str, str]:
    """The list of the QIZHI guide, with the values that a task of this example must see."""
    task = tasks_of(job, role)[index]
    http, ssh = task["ports"]["http"][0], task["ports"]["ssh"][0]
    ps = role == "ps_server"
    return {
        "QIZHI_DEFAULT_FS_URI": str(files),
        "QIZHI_JOB_NAME": "tensorflow-distributed-jobguid",
        "QIZHI_JOB_VC_NAME": "your_virtual_cluster",
        "QIZHI_USER_NAME": job["username"],
        "QIZHI_DATA_DIR": str(base / "data"),
        "QIZHI_OUTPUT_DIR": str(base / "output"),
        "QIZHI_CODE_DIR": str(base / "code"),
        "QIZHI_CURRENT_TASK_ROLE_NAME": role,
        "QIZHI_CURRENT_TASK_ROLE_TASK_COUNT": "2",
        "QIZHI_CURRENT_TASK_ROLE_CPU_COUNT": "2",
        "QIZHI_CURRENT_TASK_ROLE_MEM_MB": "8192" if ps else "16384",
        "QIZHI_CURRENT_TASK_ROLE_GPU_COUNT": "0" if ps else "4",
        "QIZHI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": str(index),
        "QIZHI_JOB_TASK_COUNT": "4",
        "QIZHI_JOB_TASK_ROLE_COUNT": "2",
        "QIZHI_JOB_TASK_ROLE_LIST": "ps_server,worker",
        "QIZHI_KILL_ALL_ON_COMPLETED_TASK_NUM": "2",
        "QIZHI_CONTAINER_HOST_IP": task["address"],
        "QIZHI_CONTAINER_HOST_PORT_LIST": f"http:{http};ssh:{ssh}",
        "QIZHI_CONTAINER_HOST__http_PORT_LIST": str(http),
        "QIZHI_CONTAINER_HOST_http_PORT_LIST": str(http),
        "QIZHI_TASK_ROLE_ps_server_HOST_LIST": hosts(job, "ps_server"),
        "QIZHI_TASK_ROLE_worker_HOST_LIST": hosts(job, "worker"),
    }


def test_the_v2_example_runs_to_the_completion_it_asks_for(site: Site) -> None:
    """The worker's success is the job's; the parameter server has copied its model before."""
    job = site.run("openpai-v2-tensorflow-cifar10.yaml")
    logs = [site.log(job, role, 0) for role in ("worker", "ps_server")]
    assert job["state"] == "SUCCEEDED", logs
    assert (site.files / "copied").exists()
    assert tasks_of(job, "worker")[0]["state"] == "SUCCEEDED"
    for role, program in (("worker", "worker"), ("ps_server", "ps")):
        told = site.told(job, role, 0)
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
        assert told["variables"]["PAI_TASK_ROLE_INSTANCES"] == "worker:0,ps_server:0"
        assert told["variables"]["FC_TASKROLE_NAME"] == role
    assert "cGFzc3dvcmQ=" not in "".join(logs)


def test_the_template_hello_gpu_sees_its_gpu(site: Site) -> None:
    job = site.run("hello-gpu.json", TEMPLATES)
    log = site.log(job, "task_1", 0)
    assert job["state"] == "SUCCEEDED", log
    assert log.startswith("hello from hello-gpu\n")
    assert "TITANX" in log


def test_the_template_sweep_tries_every_pair_once(site: Site) -> None:
    job = site.run("sweep.yaml", TEMPLATES)
    logs = [site.log(job, "trial", index) for index in range(6)]
    assert job["state"] == "SUCCEEDED", logs
    found = [log.strip().splitlines()[-1].rpartition(" ")[0] for log in logs]
    assert found == [f"rate={rate} seed={seed}" for rate in (0.3, 0.1, 0.03) for seed in (1, 2)]


def test_the_template_jupyter_answers_at_its_address(site: Site) -> None:
    job = site.client.submit((TEMPLATES / "jupyter.json").read_bytes(), filename="jupyter.json")

    def answers() -> bool:
        detail = site.client.job(job["uid"])
        assert detail["state"] in ("WAITING", "RUNNING"), site.log(dict(detail), "task_1", 0)
        (task,) = tasks_of(dict(detail), "task_1")
        if not task["ports"]:
            return False
        with suppress(httpx.TransportError):
            url = f"http://{task['address']}:{task['ports']['jupyter'][0]}/api"
            return "version" in httpx.get(url, timeout=60).json()
        return False

    until(answers, 120)
    site.client.stop(job["uid"])


def test_the_template_of_tensorflow_starts_its_program_with_all_addresses(site: Site) -> None:
    """TensorFlow is not here: a program that checks how it is called stands for it."""
    (site.files / "copied").touch()
    job = site.run("tensorflow-distributed.yaml", TEMPLATES)
    roles = [("ps_server", 0), ("worker", 0), ("worker", 1)]
    logs = [site.log(job, role, index) for role, index in roles]
    assert job["state"] == "SUCCEEDED", logs
    for role, index in roles:
        told = site.told(job, role, index)["flags"]
        assert told["job_name"] == role.partition("_")[0]
        assert told["worker_hosts"] == hosts(job, "worker")
        assert (told["device"], told["data_format"], told["task_index"]) == ("cpu", "NHWC", str(index))


def test_the_template_of_pytorch_starts_torchrun_with_one_address_for_all(site: Site) -> None:
    """PyTorch is not here: a program that prints how it is called stands for torchrun; its own program is compiled."""
    job = site.run("pytorch-ddp.yaml", TEMPLATES)
    logs = [site.log(job, "worker", index) for index in (0, 1)]
    assert job["state"] == "SUCCEEDED", logs
    words = [log.split() for log in logs]
    assert [line[2] for line in words] == ["--node-rank=0", "--node-rank=1"]
    port = job["taskRoles"][0]["taskStatuses"][0]["ports"]["ddp"][0]
    for line in words:
        del line[2]
        assert line == [
            "--nnodes=2",
            "--nproc-per-node=1",
            f"--master-addr={tasks_of(job, 'worker')[0]['address']}",
            f"--master-port={port}",
            "train.py",
            "5",
        ]
