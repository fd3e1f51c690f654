"""The testbed itself: real nodes that run pods, and the faults that other tests let happen to them."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.kubernetes.cluster import cgroups
from tests.kubernetes.cluster.addresses import Addresses
from tests.kubernetes.cluster.cluster import Cluster, joined, started
from tests.kubernetes.cluster.commands import NotInTime, until
from tests.kubernetes.cluster.images import BUSYBOX
from tests.kubernetes.cluster.kubectl import Json, Kubectl
from tests.kubernetes.cluster.simulation import EXIT_CODE, RUNS_FOR, Simulation, toleration
from tests.kubernetes.fixtures import Kubernetes, keep_logs

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.asyncio


def pod(name: str, image: str, script: str, node: str | None = None, gpus: int = 0) -> Json:
    """A pod that runs a shell script once."""
    container: Json = {"name": "main", "image": image, "command": ["sh", "-c", script]}
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    spec: Json = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container]}
    if node is not None:
        spec["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def exit_code(found: Json) -> int:
    code: int = found["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"]
    return code


def files(directory: Path) -> list[Path]:
    return sorted(directory.iterdir())


def groups(name: str) -> list[Path]:
    """Where a control group is, by whichever version."""
    return [*cgroups.MOUNT.glob(name), *cgroups.MOUNT.glob(f"*/{name}")]


def there(path: Path) -> bool:
    return path.exists()


def ready(node: Json) -> str:
    told = [row["status"] for row in node["status"]["conditions"] if row["type"] == "Ready"]
    return str(told[0])


async def test_both_nodes_are_ready_and_count_one_gpu_each(testbed: Cluster) -> None:
    nodes = (await testbed.kubectl.get("nodes"))["items"]
    assert {node["metadata"]["name"] for node in nodes} == {"carol", "dan"}
    assert [ready(node) for node in nodes] == ["True", "True"]
    assert [node["status"]["allocatable"]["nvidia.com/gpu"] for node in nodes] == ["1", "1"]


async def test_pods_of_different_nodes_and_this_machine_reach_each_other(testbed: Cluster, namespace: Kubectl) -> None:
    server = "mkdir /www && hostname >/www/index.html && httpd -f -p 8080 -h /www"
    await namespace.create(pod("server", BUSYBOX, server, node="carol"))
    found = await namespace.until_phase("server", "Running")
    page = f"http://{found['status']['podIP']}:8080/"
    ask = f"until wget -q -O - {page}; do sleep 0.1; done"
    await namespace.create(pod("client", BUSYBOX, ask, node="dan"))
    await namespace.until_phase("client", "Succeeded")
    assert await namespace("logs", "client") == "server\n"
    # From this machine, where a backend outside of the cluster would be.
    async with httpx.AsyncClient(trust_env=False) as client:
        assert (await client.get(page)).text == "server\n"


async def test_a_node_has_no_more_gpus_than_it_counts(testbed: Cluster, namespace: Kubectl) -> None:
    await namespace.create(pod("first", BUSYBOX, "sleep 600", gpus=1, node="carol"))
    await namespace.until_phase("first", "Running")
    await namespace.create(pod("second", BUSYBOX, "true", gpus=1, node="carol"))
    refused = await namespace.until_phase("second", "Failed")
    assert refused["status"]["reason"] == "OutOfnvidia.com/gpu"


async def test_pods_go_on_while_kubelet_and_containerd_are_away(testbed: Cluster, namespace: Kubectl) -> None:
    await namespace.create(pod("steady", BUSYBOX, "sleep 600", node="dan"))
    before = await namespace.until_phase("steady", "Running")
    dan = testbed.nodes["dan"]
    await dan.kill("kubelet")
    await dan.kill("containerd")
    await dan.start_containerd()
    await dan.start_kubelet()
    await testbed.kubectl.until_ready("dan")

    async def answers() -> bool:  # it says that it is ready before it has asked which pods are its own
        return (await namespace.attempt("exec", "steady", "--", "true")).code == 0

    await until(answers, "a program to run in the pod", 60)
    after = await namespace.get("pod", "steady")
    assert after["status"]["containerStatuses"] == before["status"]["containerStatuses"]


async def test_logs_of_all_parts_can_be_kept(testbed: Cluster, tmp_path: Path) -> None:
    keep_logs(testbed, tmp_path / "kept")
    parts = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"]
    parts += [f"nodes-{node}-{part}" for node in ("carol", "dan") for part in ("containerd", "kubelet", "kube-proxy")]
    assert {f"{part}.log" for part in parts} <= {path.name for path in files(tmp_path / "kept")}
    assert "Starting kubelet" in (tmp_path / "kept" / "nodes-carol-kubelet.log").read_text()


async def test_a_pod_that_does_not_come_is_told_with_its_events(kubernetes: Kubernetes, namespace: Kubectl) -> None:
    await namespace.create(pod("never", "localhost/no-such-image:1", "true"))
    with pytest.raises(NotInTime, match=r"Warning +Failed"):
        await namespace.until_phase("never", "Running", limit_s=5)


async def test_a_second_cluster_knows_nothing_of_the_first_and_what_a_killed_run_leaves_is_removed_by_the_next(
    testbed: Cluster,
) -> None:
    program = """
import asyncio, json, sys
from tests.kubernetes.cluster.cluster import started
async def run():
    async with started(["erin"]) as cluster:
        print(json.dumps([cluster.slot.number, [part.pid for part in cluster.plane.daemons]]), flush=True)
        await asyncio.Event().wait()
asyncio.run(run())
"""
    victim = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=subprocess.PIPE, cwd=ROOT)
    assert victim.stdout is not None
    number, pids = json.loads(await asyncio.wait_for(victim.stdout.readline(), 240))
    async with joined(number) as second:
        await second.kubectl.create(pod("second", BUSYBOX, "true"))
        await second.kubectl.until_phase("second", "Succeeded")
        assert [row["metadata"]["name"] for row in (await second.kubectl.get("nodes"))["items"]] == ["erin"]
        assert [row["metadata"]["name"] for row in (await second.kubectl.get("pods"))["items"]] == ["second"]
    assert number != testbed.slot.number
    assert (await testbed.kubectl.attempt("get", "pod", "second")).code != 0
    assert (await testbed.kubectl.attempt("get", "node", "erin")).code != 0
    left = Addresses(number)
    victim.kill()
    await victim.wait()
    assert all(there(Path(f"/proc/{pid}")) for pid in pids)
    assert groups(left.cgroup("erin"))
    async with started() as following:
        assert not any(there(Path(f"/proc/{pid}")) for pid in pids)
        assert not groups(left.cgroup("erin"))
        assert (await following.kubectl.get("nodes"))["items"] == []
        directory, bridge = following.directory, following.slot.addresses.bridge
    assert not directory.exists()
    assert not there(Path("/sys/class/net") / bridge)
    assert sorted(testbed.nodes) == ["carol", "dan"]
    assert (await testbed.kubectl.attempt("get", "nodes")).code == 0


async def test_fifty_simulated_nodes_with_eight_gpus_play_their_pods(scale: Simulation) -> None:
    names = await scale.add_nodes(50)
    assert len(names) == 50
    kubectl = scale.cluster.kubectl
    nodes = (await kubectl.get("nodes"))["items"]
    assert [node["status"]["allocatable"]["nvidia.com/gpu"] for node in nodes] == ["8"] * 50

    def simulated(name: str, gpus: int, **about: Json | list[str]) -> Json:
        told = pod(name, "none", "none", gpus=gpus)
        told["metadata"] |= about
        told["spec"]["tolerations"] = [toleration()]
        return told

    kept = simulated("kept", 0, finalizers=["jupyter-pai.test/keep"])
    ends = [{EXIT_CODE: str(number % 2), RUNS_FOR: "200ms"} for number in range(50)]
    await kubectl.create(kept, *(simulated(f"pod-{n}", 8, annotations=each) for n, each in enumerate(ends)))
    await kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s", "pod/pod-0", "pod/pod-48")
    failed = await kubectl.until_phase("pod-49", "Failed")
    assert exit_code(failed) == 1
    placed = {row["spec"]["nodeName"] for row in (await kubectl.get("pods"))["items"]}
    assert placed <= set(names)
    # Somebody's finalizer keeps a simulated pod as it keeps a real one.
    await kubectl.until_phase("kept", "Running")
    await kubectl("delete", "pod", "kept", "--wait=false")
    assert (await kubectl.get("pod", "kept"))["metadata"]["deletionTimestamp"]
    await kubectl("patch", "pod", "kept", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    await kubectl("wait", "--for=delete", "--timeout=30s", "pod/kept")
