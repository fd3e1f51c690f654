"""GPUs of tasks on a real kubelet: those that a device plugin gives, and those that a task may see."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.kubernetes.cluster import images
from tests.kubernetes.cluster.cluster import Cluster
from tests.kubernetes.devices.conftest import CAROL, BackendMaker, plugin
from tests.support.backend_process import Backend, until
from tests.support.documents import scm_document

LONG_S = 240
SHOW = "echo sees=$NVIDIA_VISIBLE_DEVICES; "


class Jobs:
    """Jobs of one task each on a backend."""

    def __init__(self, running: Backend, client: httpx.Client) -> None:
        self._running, self._client = running, client

    def submit(self, name: str, gpus: int, command: str, gpu_type: str = "") -> None:
        role = {"name": "r", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": gpus, "command": command}
        document = scm_document(name, taskRoles=[role], gpuType=gpu_type, image=images.BUSYBOX)
        answer = self._client.post("/api/v2/jobs", content=document, params={"name": name, "filename": "job.json"})
        assert answer.status_code == 202, answer.text

    def get(self, name: str, what: str = "") -> Any:
        return self._client.get(f"/api/v2/jobs/{name}{what}").json()

    def until(self, name: str, *states: str) -> None:
        until(lambda: self.get(name)["state"] in states, LONG_S)

    def until_waiting_for(self, name: str, words: str) -> None:
        until(lambda: words in self.get(name, "/why")["sentence"], LONG_S)

    def sees(self, name: str) -> str:
        """What a job said of the devices that it sees."""
        until(lambda: "sees=" in self._log(name), LONG_S)
        return self._log(name).partition("sees=")[2].splitlines()[0]

    def placed(self, name: str) -> str:
        """Numbers of the GPUs on which the scheduler placed it."""
        ((task,),) = [role["taskStatuses"] for role in self.get(name)["taskRoles"]]
        return ",".join(map(str, task["gpus"]))

    def stop(self, name: str) -> None:
        answer = self._client.put(f"/api/v2/jobs/{name}/executionType", json={"value": "STOP"})
        assert answer.status_code == 202, answer.text
        self.until(name, "STOPPED", "SUCCEEDED", "FAILED")

    def gpus_of_the_node(self) -> int:
        nodes = self._client.get("/api/v2/cluster/nodes").json()["data"]
        return sum(len(node["gpus"]) for node in nodes if node["name"] == CAROL)

    def _log(self, name: str) -> str:
        answer = self._client.get(f"/api/v2/jobs/{name}/logs")
        return answer.text if answer.status_code == 200 else ""


@pytest.mark.timeout(900)
def test_a_device_plugin_gives_gpus_and_takes_them_back(
    machine: Cluster, backend_with: BackendMaker, tmp_path: Path
) -> None:
    """Each to one task alone; a sick one to nobody; and all again after the kubelet was killed."""
    with plugin(machine.nodes[CAROL], 2, tmp_path) as gpus, backend_with() as running, running.client() as client:
        jobs = Jobs(running, client)
        until(lambda: jobs.gpus_of_the_node() == 2, LONG_S)
        for name in ("one", "two"):
            jobs.submit(name, 1, SHOW + "sleep 1000")
        assert {jobs.sees("one"), jobs.sees("two")} == {"0", "1"}
        jobs.submit("third", 1, SHOW)
        jobs.until_waiting_for("third", "waits for 1 GPU")
        for name in ("one", "two"):
            jobs.stop(name)
        jobs.until("third", "SUCCEEDED")
        jobs.submit("none", 0, SHOW)
        assert jobs.sees("none") == "none"

        gpus.fall_ill(0)
        until(lambda: jobs.gpus_of_the_node() == 1, LONG_S)
        jobs.submit("both", 2, SHOW + "sleep 1000")
        jobs.until_waiting_for("both", "2 GPU")
        jobs.submit("healthy", 1, SHOW)
        assert jobs.sees("healthy") == "1"
        gpus.fall_ill()
        assert jobs.sees("both") == "0,1"

        asyncio.run(machine.nodes[CAROL].kill("kubelet"))
        asyncio.run(machine.nodes[CAROL].start_kubelet())
        until(lambda: gpus.registered() == 2, LONG_S)
        until(lambda: jobs.gpus_of_the_node() == 2, LONG_S)
        assert jobs.get("both")["state"] == "RUNNING"
        assert jobs.get("both")["retryDetails"]["platform"] == 0
        jobs.stop("both")
        jobs.submit("after", 2, SHOW)
        assert jobs.sees("after") == "0,1"


def stranger(gpus: int, resource: str = "nvidia.com/gpu") -> dict[str, Any]:
    """A pod that is not of any backend and has GPUs of carol."""
    limits = {"limits": {resource: str(gpus)}}
    container = {"name": "main", "image": images.BUSYBOX, "command": ["sleep", "1000"], "resources": limits}
    spec = {"nodeName": CAROL, "terminationGracePeriodSeconds": 1, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stranger"}, "spec": spec}


@pytest.mark.timeout(900)
def test_gpus_that_a_pod_of_somebody_else_holds_are_not_given(
    machine: Cluster, backend_with: BackendMaker, tmp_path: Path
) -> None:
    """A smaller job runs beside it, a larger one waits with the reason and without being refused, until it leaves."""
    with plugin(machine.nodes[CAROL], 2, tmp_path), backend_with() as running, running.client() as client:
        jobs = Jobs(running, client)
        until(lambda: jobs.gpus_of_the_node() == 2, LONG_S)
        asyncio.run(machine.kubectl.create(stranger(1)))
        try:
            asyncio.run(machine.kubectl.until_phase("stranger", "Running", limit_s=LONG_S))
            jobs.submit("both", 2, SHOW + "sleep 1000")
            jobs.until_waiting_for(
                "both", "waits for 2 GPU: GPUs held by pods that are not of this backend on carol (1)"
            )
            told = jobs.get("both", "/why")["waiting"]["texts"]["en"]["sentence"]
            assert "carol has 1 of 2 GPUs free (pods that are not of this backend hold 1)" in told
            jobs.submit("one", 1, SHOW)
            jobs.until("one", "SUCCEEDED")
        finally:
            asyncio.run(machine.kubectl("delete", "pod", "stranger", "--timeout=60s"))
        assert jobs.sees("both") == "0,1"
        assert jobs.get("both")["retries"] == 0
        jobs.stop("both")


MIG = "nvidia.com/mig-1g.10gb"


@contextmanager
def slices(machine: Cluster, count: int) -> Iterator[None]:
    """So many slices of GPUs on carol, which its kubelet counts and nothing gives to a container."""
    places = [f"/status/{part}/{MIG.replace('/', '~1')}" for part in ("capacity", "allocatable")]
    words = ("patch", "node", CAROL, "--subresource=status", "--type=json", "-p")
    added = [{"op": "add", "path": place, "value": str(count)} for place in places]
    asyncio.run(machine.kubectl(*words, json.dumps(added)))
    try:
        yield
    finally:
        asyncio.run(machine.kubectl(*words, json.dumps([{"op": "remove", "path": place} for place in places])))


@pytest.mark.timeout(900)
def test_slices_of_gpus_are_a_type_of_their_own_beside_whole_ones(
    machine: Cluster, backend_with: BackendMaker, tmp_path: Path
) -> None:
    """Others hold one of two slices: one job has the other, the next waits, and whole GPUs are given as before."""
    gpus = {"resources": {"MIG-1g": MIG}}
    with (
        plugin(machine.nodes[CAROL], 1, tmp_path),
        slices(machine, 2),
        backend_with(gpus=gpus) as running,
        running.client() as client,
    ):
        jobs = Jobs(running, client)
        until(lambda: jobs.gpus_of_the_node() == 3, LONG_S)
        asyncio.run(machine.kubectl.create(stranger(1, MIG)))
        try:
            asyncio.run(machine.kubectl.until_phase("stranger", "Running", limit_s=LONG_S))
            jobs.submit("both", 2, SHOW, "MIG-1g")
            jobs.until_waiting_for("both", "GPUs held by pods that are not of this backend on carol (1)")
            jobs.submit("slice", 1, SHOW + "sleep 1000", "MIG-1g")
            jobs.sees("slice")
            (pod,) = asyncio.run(machine.kubectl.get("pods", "--all-namespaces", "-l", "jupyter-pai/job-name=slice"))[
                "items"
            ]
            asked = pod["spec"]["containers"][0]["resources"]["limits"]
            assert (asked[MIG], "nvidia.com/gpu" in asked) == ("1", False)
            jobs.submit("whole", 1, SHOW, "GPU")
            assert jobs.sees("whole") == "0"
            jobs.stop("slice")
        finally:
            asyncio.run(machine.kubectl("delete", "pod", "stranger", "--timeout=60s"))
        jobs.until("both", "SUCCEEDED")
        assert jobs.get("both")["retries"] == 0


def test_visible_devices_are_exactly_those_that_were_placed(machine: Cluster, backend_with: BackendMaker) -> None:
    """HiveD's way: a label counts them, and nothing but our scheduler gives them."""
    asyncio.run(machine.kubectl("label", "--overwrite", "node", CAROL, "jupyter-pai/gpu-count=4"))
    with backend_with(gpus={"by": "visible-devices"}) as running, running.client() as client:
        jobs = Jobs(running, client)
        until(lambda: jobs.gpus_of_the_node() == 4, LONG_S)
        jobs.submit("one", 1, SHOW + "sleep 1000")
        jobs.submit("two", 2, SHOW + "sleep 1000")
        seen = {name: jobs.sees(name) for name in ("one", "two")}
        assert seen == {name: jobs.placed(name) for name in ("one", "two")}
        numbers = [number for each in seen.values() for number in each.split(",")]
        assert len(numbers) == 3
        assert set(numbers) < {"0", "1", "2", "3"}
        jobs.stop("one")
        jobs.submit("none", 0, SHOW)
        assert jobs.sees("none") == "none"
        jobs.stop("two")
    asyncio.run(machine.kubectl("label", "node", CAROL, "jupyter-pai/gpu-count-"))
