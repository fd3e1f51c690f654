"""A machine with a real NVIDIA GPU: what tasks get of it, what is told of it, and that others wait for it.

``make test-gpu`` runs them; ``make test`` leaves them out. They need one GPU, change no setting of it, and take about a
minute. Processes and containers are held to the same. They are skipped, with the reason, where there is no GPU or no
container can be, or where NVIDIA's toolkit has not described the GPUs to Podman.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from jupyter_pai.embedded import Embedded
from jupyter_pai.sync import Client
from jupyter_pai.wire_types import UsePoint
from pai_backend.engine.local.nodes import sku_word
from tests.kubernetes.cluster import images
from tests.support.podman_site import site

__all__ = ["site"]

CONFIG = """\
engine: {grace_s: 2}
metrics: {sample_s: 1, idle_gpus_s: 5}
"""
CONFIG_OF_CONTAINERS = """\
engine: {{kind: containers, grace_s: 2}}
containers: {{runtime_image: "{image}", pull: never}}
metrics: {{sample_s: 1, idle_gpus_s: 5}}
"""
PROGRAM = (Path(__file__).parent / "on_gpu.py").read_text()
PYTHON = {"local": sys.executable, "containers": "python3"}
CDI = ("/etc/cdi", "/var/run/cdi")
"""Where Podman looks for what ``nvidia-ctk cdi generate`` has written."""


def query(fields: str) -> list[str]:
    """What the driver's own program tells of the first GPU."""
    command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return [each.strip() for each in told[0].split(",")]


def gpus_of_machine() -> list[str]:
    """A line for each GPU, as the driver's own program lists them."""
    return subprocess.run(["nvidia-smi", "-L"], check=True, capture_output=True, text=True).stdout.splitlines()


@dataclass(frozen=True)
class Machine:
    """A backend of this machine, on one of its engines."""

    engine: str
    backend: Embedded

    def command(self, what: str) -> str:
        """What a task runs to see GPUs, or to work or rest on one."""
        return f"{PYTHON[self.engine]} - {what} <<'PROGRAM'\n{PROGRAM}PROGRAM\n"


@pytest.fixture(scope="module", params=["local", "containers"])
def machine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    if shutil.which("nvidia-smi") is None:
        pytest.skip("there is no NVIDIA GPU here, or not its driver's nvidia-smi")
    place, given = tmp_path_factory.mktemp("gpu"), CONFIG
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "containers":
            if not any(Path(each).glob("nvidia*") for each in CDI):
                pytest.skip("GPUs are not described to Podman: nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml")
            podman = request.getfixturevalue("site")
            given = CONFIG_OF_CONTAINERS.format(image=podman.runtime_image)
            for name, value in podman.environment.items():
                patch.setenv(name, value)
        (place / "backend.yaml").write_text(given)
        backend = Embedded(place / "data", place / "backend.yaml")
        backend.ensure()
        yield Machine(request.param, backend)
        backend.stop()


@pytest.fixture
def client(machine: Machine) -> Iterator[Client]:
    """A client of the backend, which has no jobs before and after."""
    with Client(machine.backend.ensure()) as made:
        yield made
        for job in made.jobs(state="WAITING,RUNNING"):
            made.stop(job["uid"])
            wait_for_end(made, job["uid"])


def submit(client: Client, name: str, command: str, gpus: int, **extras: object) -> str:
    role = {"name": "main", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 4096, "gpuNumber": gpus, "command": command}
    return client.submit(json.dumps({"jobName": name, "image": images.PYTHON, "taskRoles": [role], **extras}).encode())[
        "uid"
    ]


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


def test_a_job_gets_the_gpus_that_it_asks_for_and_no_other(client: Client, machine: Machine) -> None:
    name = query("name")[0]
    with_one, without = (
        submit(client, "one", machine.command("sees"), 1),
        submit(client, "none", machine.command("sees"), 0),
    )
    assert printed(client, with_one, "SEES") == f"SEES {json.dumps([name])}"
    assert printed(client, without, "SEES") == "SEES []"
    assert [wait_for_end(client, each) for each in (with_one, without)] == ["SUCCEEDED", "SUCCEEDED"]


def test_the_next_job_waits_with_the_reason_and_starts_when_the_gpu_is_free(client: Client, machine: Machine) -> None:
    first = submit(client, "first", machine.command("works"), len(gpus_of_machine()))
    printed(client, first, "WORKS")
    second = submit(client, "second", machine.command("sees"), 1)
    assert "GPU" in wait_for_reason(client, second)
    client.stop(first)
    assert wait_for_end(client, second) == "SUCCEEDED"


def test_use_of_a_gpu_is_what_the_driver_says(client: Client, machine: Machine) -> None:
    job = submit(client, "works", machine.command("works"), 1)
    printed(client, job, "WORKS")
    busy = sample(client, job, lambda each: (each["gpuPercent"] or 0) > 50)
    assert 256 <= (busy["gpuMemoryMb"] or 0) <= int(query("memory.total")[0]), (
        "what it computes upon alone takes 256 MiB"
    )


def test_a_gpu_that_holds_memory_and_does_nothing_is_told(client: Client, machine: Machine) -> None:
    job = submit(client, "rests", machine.command("rests"), 1)
    printed(client, job, "RESTS")
    wait_for_event(client, job, "job.gpus-idle")
    assert sample(client, job, lambda each: (each["gpuMemoryMb"] or 0) >= 2048)["gpuPercent"] == 0


def test_a_job_on_a_gpu_outlives_its_backend(client: Client, machine: Machine) -> None:
    job = submit(client, "outlives", machine.command("works"), 1)
    printed(client, job, "WORKS")
    pid = machine.backend.status().pid
    assert pid is not None
    roles = psutil.Process(pid).children()
    os.kill(pid, signal.SIGKILL)
    psutil.wait_procs(roles)
    with Client(machine.backend.ensure()) as again:
        assert again.job(job)["state"] == "RUNNING"
        second = submit(again, "after", machine.command("sees"), len(gpus_of_machine()))
        assert "GPU" in wait_for_reason(again, second)
        again.stop(job)
        wait_for_end(again, job)
        assert wait_for_end(again, second) == "SUCCEEDED", "its memory and the GPU are free"
