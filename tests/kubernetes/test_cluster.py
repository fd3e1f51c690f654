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
from tests.kubernetes.cluster.cluster import Cluster, started
from tests.kubernetes.cluster.commands import NotInTime, until
from tests.kubernetes.cluster.images import BUSYBOX
from tests.kubernetes.cluster.kubectl import Json, Kubectl
from tests.kubernetes.cluster.simulation import EXIT_CODE, RUNS_FOR, Simulation, toleration
from tests.kubernetes.fixtures import Kubernetes, keep_logs, remove_namespace

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


async def test_a_pod_runs_to_its_end_with_its_log_and_its_exit_code(kubernetes: Kubernetes, namespace: Kubectl) -> None:
    await namespace.create(
        pod("good", kubernetes.busybox, "echo well done"), pod("bad", kubernetes.busybox, "echo alas >&2; exit 7")
    )
    assert exit_code(await namespace.until_phase("good", "Succeeded")) == 0
    assert exit_code(await namespace.until_phase("bad", "Failed")) == 7
    assert await namespace("logs", "good") == "well done\n"
    assert await namespace("logs", "bad") == "alas\n"


async def test_python_and_bash_are_in_an_image(kubernetes: Kubernetes, namespace: Kubectl) -> None:
    script = "bash -c 'echo $((6 * 7))' && python3 -c 'print(6 * 7)'"
    await namespace.create(pod("snake", kubernetes.python, script))
    await namespace.until_phase("snake", "Succeeded", limit_s=120)
    assert await namespace("logs", "snake") == "42\n42\n"


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


async def test_pods_do_not_notice_a_kill_of_the_api_server(testbed: Cluster, namespace: Kubectl) -> None:
    await namespace.create(pod("steady", BUSYBOX, "sleep 600"))
    before = await namespace.until_phase("steady", "Running")
    await testbed.plane.api.kill()
    assert (await namespace.attempt("get", "pods")).code != 0
    await testbed.plane.start_api()
    after = await namespace.until_phase("steady", "Running")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["status"]["containerStatuses"] == before["status"]["containerStatuses"]


async def test_what_etcd_has_acknowledged_survives_its_kill(testbed: Cluster, namespace: Kubectl) -> None:
    await namespace("create", "configmap", "kept", "--from-literal=word=here")
    await testbed.plane.etcd.kill()
    testbed.plane.start_etcd()

    async def answers() -> bool:
        return (await namespace.attempt("get", "configmap", "kept", "--request-timeout=5s")).code == 0

    await until(answers, "etcd to be back", 60)
    assert (await namespace.get("configmap", "kept"))["data"] == {"word": "here"}


async def test_pods_go_on_while_kubelet_and_containerd_are_away(testbed: Cluster, namespace: Kubectl) -> None:
    await namespace.create(pod("steady", BUSYBOX, "sleep 600", node="dan"))
    before = await namespace.until_phase("steady", "Running")
    dan = testbed.nodes["dan"]
    await dan.kill("kubelet")
    await dan.kill("containerd")
    await testbed.kubectl.until_condition("Ready=Unknown", "dan")
    await dan.start_containerd()
    await dan.start_kubelet()
    await testbed.kubectl.until_ready("dan")

    async def answers() -> bool:  # it says that it is ready before it has asked which pods are its own
        return (await namespace.attempt("exec", "steady", "--", "true")).code == 0

    await until(answers, "a program to run in the pod", 30)
    after = await namespace.get("pod", "steady")
    assert after["status"]["containerStatuses"] == before["status"]["containerStatuses"]


async def test_a_node_whose_cable_is_pulled_is_unknown_until_it_is_plugged_in(
    testbed: Cluster, namespace: Kubectl
) -> None:
    await testbed.nodes["carol"].partition()
    try:
        await testbed.kubectl.until_condition("Ready=Unknown", "carol")
    finally:
        await testbed.nodes["carol"].heal()
    await testbed.kubectl.until_ready("carol")


async def test_a_power_cut_ends_the_pods_of_a_node_and_no_others(testbed: Cluster, namespace: Kubectl) -> None:
    await namespace.create(
        pod("victim", BUSYBOX, "sleep 600", node="dan"), pod("other", BUSYBOX, "sleep 600", node="carol")
    )
    await namespace.until_phase("victim", "Running")
    await namespace.until_phase("other", "Running")
    dan = testbed.nodes["dan"]
    await dan.power_cut()
    assert not dan.on
    await testbed.kubectl.until_condition("Ready=Unknown", "dan")
    await testbed.power_on("dan")
    victim = await namespace.until_phase("victim", "Failed", limit_s=90)
    assert exit_code(victim) == 255
    assert await namespace.phase("other") == "Running"


async def test_a_namespace_of_a_test_is_gone_after_it(kubernetes: Kubernetes, namespace: Kubectl) -> None:
    stubborn = pod("stubborn", kubernetes.busybox, "sleep 600")
    stubborn["metadata"]["finalizers"] = ["jupyter-pai.test/keep"]
    await namespace.create(stubborn)
    await namespace.until_phase("stubborn", "Running")
    other = kubernetes.kubectl.within(namespace.namespace)
    await remove_namespace(other)

    async def gone() -> bool:
        return (await other.attempt("get", "namespace", other.namespace)).code != 0

    await until(gone, "the namespace to go", 60)
    await kubernetes.kubectl("create", "namespace", namespace.namespace)  # for the fixture, which removes it
    await namespace("wait", "--for=create", "--timeout=30s", "serviceaccount/default")


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


async def test_a_second_cluster_beside_the_first_knows_nothing_of_it(testbed: Cluster, namespace: Kubectl) -> None:
    await namespace.create(pod("first", BUSYBOX, "sleep 600", node="carol"))
    await namespace.until_phase("first", "Running")
    async with started() as second:
        assert second.slot.number != testbed.slot.number
        await second.add_node("carol")
        await second.kubectl.create(pod("second", BUSYBOX, "echo two"))
        await second.kubectl.until_phase("second", "Succeeded")
        assert [row["metadata"]["name"] for row in (await second.kubectl.get("nodes"))["items"]] == ["carol"]
        assert [row["metadata"]["name"] for row in (await second.kubectl.get("pods"))["items"]] == ["second"]
        directory, bridge = second.directory, second.slot.addresses.bridge
    assert not directory.exists()
    assert not there(Path("/sys/class/net") / bridge)
    assert await namespace.phase("first") == "Running"


async def test_what_a_killed_run_has_left_is_removed_by_the_next(testbed: Cluster) -> None:
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
    number, pids = json.loads(await asyncio.wait_for(victim.stdout.readline(), 120))
    left = Addresses(number)
    victim.kill()
    await victim.wait()
    assert all(there(Path(f"/proc/{pid}")) for pid in pids)
    assert groups(left.cgroup("erin"))
    async with started() as following:
        assert following.slot.number == number
        assert not any(there(Path(f"/proc/{pid}")) for pid in pids)
        assert not groups(left.cgroup("erin"))
        assert (await following.kubectl.get("nodes"))["items"] == []


async def test_fifty_simulated_nodes_with_eight_gpus_play_their_pods(scale: Simulation) -> None:
    names = await scale.add_nodes(50)
    assert len(names) == 50
    kubectl = scale.cluster.kubectl
    nodes = (await kubectl.get("nodes"))["items"]
    assert [node["status"]["allocatable"]["nvidia.com/gpu"] for node in nodes] == ["8"] * 50

    def simulated(number: int, code: int) -> Json:
        told = pod(f"pod-{number}", "none", "none", gpus=8)
        told["metadata"]["annotations"] = {EXIT_CODE: str(code), RUNS_FOR: "200ms"}
        told["spec"]["tolerations"] = [toleration()]
        return told

    await kubectl.create(*(simulated(number, code=number % 2) for number in range(50)))
    await kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s", "pod/pod-0", "pod/pod-48")
    failed = await kubectl.until_phase("pod-49", "Failed")
    assert exit_code(failed) == 1
    placed = {row["spec"]["nodeName"] for row in (await kubectl.get("pods"))["items"]}
    assert placed <= set(names)


async def test_a_simulated_pod_with_somebodys_finalizer_stays_until_it_is_taken_off(scale: Simulation) -> None:
    await scale.add_nodes(1)
    kept = pod("kept", "none", "none")
    kept["metadata"]["finalizers"] = ["jupyter-pai.test/keep"]
    kept["spec"]["tolerations"] = [toleration()]
    kubectl = scale.cluster.kubectl
    await kubectl.create(kept)
    await kubectl.until_phase("kept", "Running")
    await kubectl("delete", "pod", "kept", "--wait=false")
    assert (await kubectl.get("pod", "kept"))["metadata"]["deletionTimestamp"]
    await kubectl("patch", "pod", "kept", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    await kubectl("wait", "--for=delete", "--timeout=30s", "pod/kept")
