"""A machine with a real NVIDIA GPU: what tasks get of it, what is told of it, and that others wait for it.

``make test-gpu`` runs them where ``nvidia-smi`` and a Python with PyTorch are; ``make test`` leaves them out. They need
one GPU, change no setting of it, and take about a minute.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import psutil
import pytest

from jupyter_pai.embedded import Embedded
from jupyter_pai.sync import Client
from jupyter_pai.wire_types import UsePoint
from pai_backend.engine.local.nodes import sku_word

CONFIG = """\
engine: {grace_s: 2}
metrics: {sample_s: 1, idle_gpus_s: 5}
"""
PYTHON = os.environ.get("PAI_TEST_PYTORCH", sys.executable)
SEES = f"""{PYTHON} - <<'PYTHON'
import json, torch
names = [torch.cuda.get_device_name(each) for each in range(torch.cuda.device_count())]
print("SEES " + json.dumps(names), flush=True)
PYTHON
"""
WORKS = f"""{PYTHON} - <<'PYTHON'
import torch
numbers = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
print("WORKS", flush=True)
while True:
    numbers = (numbers @ numbers).tanh()
    torch.cuda.synchronize()
PYTHON
"""
RESTS = f"""{PYTHON} - <<'PYTHON'
import threading, torch
held = torch.zeros(2 << 30, device="cuda", dtype=torch.uint8)
print("RESTS", flush=True)
threading.Event().wait()
PYTHON
"""


def query(fields: str) -> list[str]:
    """What the driver's own program tells of the first GPU."""
    command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return [each.strip() for each in told[0].split(",")]


def gpus_of_machine() -> list[str]:
    """A line for each GPU, as the driver's own program lists them."""
    return subprocess.run(["nvidia-smi", "-L"], check=True, capture_output=True, text=True).stdout.splitlines()


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    place = tmp_path_factory.mktemp("gpu")
    (place / "backend.yaml").write_text(CONFIG)
    backend = Embedded(place / "data", place / "backend.yaml")
    backend.ensure()
    yield backend
    backend.stop()


@pytest.fixture
def client(private: Embedded) -> Iterator[Client]:
    """A client of the backend, which has no jobs before and after."""
    with Client(private.ensure()) as made:
        yield made
        for job in made.jobs(state="WAITING,RUNNING"):
            made.stop(job["uid"])
            wait_for_end(made, job["uid"])


def submit(client: Client, name: str, command: str, gpus: int, **extras: object) -> str:
    role = {"name": "main", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 4096, "gpuNumber": gpus, "command": command}
    return client.submit(json.dumps({"jobName": name, "image": "none", "taskRoles": [role], **extras}).encode())["uid"]


def wait_for_end(client: Client, job: str) -> str:
    for _ in client.follow_events(job):
        pass
    return client.job(job)["state"]


def wait_for_reason(client: Client, job: str) -> str:
    """Why the job waits, once that is known."""
    for event in client.follow_events(job):
        if event["type"] == "job.state" and event["payload"]["state"] == "WAITING" and event["payload"]["why"]:
            return str(event["payload"]["why"])
    raise AssertionError(f"{job} ended without waiting")


def wait_for_event(client: Client, job: str, name: str) -> None:
    """Return once an event of that type was told."""
    for event in client.follow_events(job):
        if event["type"] == name:
            return
    raise AssertionError(f"{job} ended without {name}")


def printed(client: Client, job: str, word: str) -> str:
    """The line that begins with this word, once it is in the log."""
    text = b""
    for piece in client.follow_log(job):
        text += piece
        for line in text.decode(errors="replace").splitlines(keepends=True):
            if line.startswith(word) and line.endswith("\n"):
                return line.strip()
    raise AssertionError(f"no {word} in: {text!r}")


def sample(client: Client, job: str, enough: Callable[[UsePoint], bool]) -> UsePoint:
    """The first sample of the job's task that is enough; the test's time ends one that never comes."""
    while True:
        for task in client.metrics(job, seconds=600)["tasks"]:
            for each in task["samples"]:
                if enough(each):
                    return each


def test_the_machine_is_told_as_its_driver_tells_it(client: Client) -> None:
    while not (nodes := client.cluster_use()["nodes"]):
        pass  # the controller has yet to see them
    (node,) = nodes
    assert node["gpus"] == len(gpus_of_machine())
    assert node["gpuTypes"] == [sku_word(query("name")[0])]


def test_a_job_gets_the_gpus_that_it_asks_for_and_no_other(client: Client) -> None:
    name = query("name")[0]
    with_one, without = submit(client, "one", SEES, 1), submit(client, "none", SEES, 0)
    assert printed(client, with_one, "SEES") == f"SEES {json.dumps([name])}"
    assert printed(client, without, "SEES") == "SEES []"
    assert [wait_for_end(client, each) for each in (with_one, without)] == ["SUCCEEDED", "SUCCEEDED"]


def test_the_next_job_waits_with_the_reason_and_starts_when_the_gpu_is_free(client: Client) -> None:
    first = submit(client, "first", WORKS, len(gpus_of_machine()))
    printed(client, first, "WORKS")
    second = submit(client, "second", SEES, 1)
    assert "GPU" in wait_for_reason(client, second)
    client.stop(first)
    assert wait_for_end(client, second) == "SUCCEEDED"


def test_use_of_a_gpu_is_what_the_driver_says(client: Client) -> None:
    job = submit(client, "works", WORKS, 1)
    printed(client, job, "WORKS")
    busy = sample(client, job, lambda each: (each["gpuPercent"] or 0) > 50)
    assert 128 < (busy["gpuMemoryMb"] or 0) <= int(query("memory.total")[0]), "the matrix alone takes 128 MiB"


def test_a_gpu_that_holds_memory_and_does_nothing_is_told(client: Client) -> None:
    job = submit(client, "rests", RESTS, 1)
    printed(client, job, "RESTS")
    wait_for_event(client, job, "job.gpus-idle")
    assert sample(client, job, lambda each: (each["gpuMemoryMb"] or 0) >= 2048)["gpuPercent"] == 0


def test_a_job_on_a_gpu_outlives_its_backend(private: Embedded, client: Client) -> None:
    job = submit(client, "outlives", WORKS, 1)
    printed(client, job, "WORKS")
    pid = private.status().pid
    assert pid is not None
    roles = psutil.Process(pid).children()
    os.kill(pid, signal.SIGKILL)
    psutil.wait_procs(roles)
    with Client(private.ensure()) as again:
        assert again.job(job)["state"] == "RUNNING"
        second = submit(again, "after", SEES, len(gpus_of_machine()))
        assert "GPU" in wait_for_reason(again, second)
        again.stop(job)
        wait_for_end(again, job)
        assert wait_for_end(again, second) == "SUCCEEDED", "its memory and the GPU are free"
