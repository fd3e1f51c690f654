"""What few tasks ask for, as the kernel of a real node gives it: memory, volumes, capabilities, users, networks."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.kubernetes import pod_cases
from tests.kubernetes.cluster.kubectl import Json, Kubectl
from tests.kubernetes.fixtures import Kubernetes

pytestmark = pytest.mark.asyncio

HCA = "jupyter-pai.test/hca"
IPC_LOCK, SYS_ADMIN = 1 << 14, 1 << 21  # bits of linux/capability.h
STATUS = "sed -n 's/^\\(CapEff\\|NoNewPrivs\\|Seccomp\\):[[:space:]]*/\\1=/p' /proc/self/status"


async def facts(bench: pod_cases.Bench, name: str) -> dict[str, str]:
    """The lines ``name=value`` that a task wrote, when it has ended well."""
    ended = await bench.over(name)
    log = await bench.kubectl("logs", name, "-c", "task")
    assert ended["status"]["phase"] == "Succeeded", log
    return dict(line.split("=", 1) for line in log.splitlines())


async def bound_claim(kubectl: Kubectl, name: str, directory: Path) -> None:
    """A claim whose volume is a directory of the nodes."""
    size = {"storage": "1Mi"}
    about = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    where = {"namespace": kubectl.namespace, "name": name}
    volume: Json = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"{kubectl.namespace}-{name}"},
        "spec": {**about, "capacity": size, "claimRef": where, "hostPath": {"path": str(directory)}},
    }
    volume["spec"]["persistentVolumeReclaimPolicy"] = "Retain"
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {**about, "resources": {"requests": size}, "volumeName": f"{kubectl.namespace}-{name}"},
    }
    await kubectl.create(volume, claim)
    await kubectl("wait", "--for=jsonpath={.status.phase}=Bound", "--timeout=60s", f"pvc/{name}")


async def test_volumes_of_the_administrator(kubernetes: Kubernetes, namespace: Kubectl, tmp_path: Path) -> None:
    """A claim and a directory of the node: what one task writes the next reads, and cannot write where it may not."""
    bench = await pod_cases.bench_in(kubernetes, namespace)
    await bound_claim(namespace, "team", tmp_path / "claim")
    host = {"name": "data", "host_path": str(tmp_path / "host"), "path": "/data"}
    claim = {"name": "team", "claim": "team", "path": "/team"}
    try:
        write = "mkdir -p /team/a/b && echo of-the-claim >/team/a/b/file && echo of-the-node >/data/file"
        first = await bench.start(write, settings={"volumes": [host, claim]})
        assert await facts(bench, first) == {}
        below = [{**host, "read_only": True}, {**claim, "sub_path": "a/b", "read_only": True}]
        read = (
            'echo "claim=$(cat /team/file)"; echo "node=$(cat /data/file)"; '
            "for place in /team /data; do touch $place/new 2>/dev/null && echo $place=written; done; true"
        )
        second = await bench.start(read, settings={"volumes": below})
        assert await facts(bench, second) == {"claim": "of-the-claim", "node": "of-the-node"}
    finally:
        await namespace("delete", "persistentvolume", f"{namespace.namespace}-team", "--wait=false")


async def test_memory_devices_and_rights(kubernetes: Kubernetes, namespace: Kubectl) -> None:
    """Shared memory of its own size, an InfiniBand device with its capability, and none of what was not asked for."""
    bench = await pod_cases.bench_in(kubernetes, namespace)
    patch = [{"op": "add", "path": f"/status/{kind}/{HCA.replace('/', '~1')}", "value": "1"} for kind in ROOMS]
    await namespace("patch", "node", "carol", "--subresource=status", "--type=json", "-p", json.dumps(patch))
    shown = f"{STATUS}; df -m /dev/shm | awk 'END {{ print \"shm=\" $2 }}'; echo gpus=$NVIDIA_VISIBLE_DEVICES"
    chosen = {
        "infiniband": {"resource": HCA, "capabilities": ["IPC_LOCK"]},
        "security": {"capabilities": ["SYS_ADMIN"]},
    }
    with_all = await bench.start(shown, settings=chosen, infiniband=True, shm_mb=24)
    with_none = await bench.start(shown, settings={"infiniband": chosen["infiniband"]}, shm_mb=8)
    pod = (await bench.over(with_all))["spec"]["containers"][0]
    assert pod["resources"]["limits"][HCA] == "1"
    much, little = await facts(bench, with_all), await facts(bench, with_none)
    assert (much["shm"], little["shm"]) == ("24", "8")
    assert int(much["CapEff"], 16) & (IPC_LOCK | SYS_ADMIN) == IPC_LOCK | SYS_ADMIN
    assert int(little["CapEff"], 16) & (IPC_LOCK | SYS_ADMIN) == 0
    assert (much["gpus"], much["Seccomp"]) == ("none", "2")


ROOMS = ("capacity", "allocatable")


async def test_users_and_networks(kubernetes: Kubernetes, namespace: Kubectl) -> None:
    """A task under the ``restricted`` standard, and one in the node's own network."""
    bench = await pod_cases.bench_in(kubernetes, namespace)
    restricted = {"security": {"restricted": True, "user": 1000, "group": 2000}}
    own = f"{STATUS}; echo user=$(id -u):$(id -g); echo here >/pai/work/file && echo work=$(cat /pai/work/file)"
    shown = "echo name=$(hostname); echo address=$PAI_POD_IP; echo node=$PAI_NODE_NAME"
    names = await asyncio.gather(
        bench.start(own, settings=restricted), bench.start(shown, settings={"network": "host"}), bench.start(shown)
    )
    lowly, in_host, in_pod = [await facts(bench, name) for name in names]
    assert (lowly["user"], lowly["work"], lowly["NoNewPrivs"]) == ("1000:2000", "here", "1")
    assert int(lowly["CapEff"], 16) == 0
    node = await namespace.get("node", "carol")
    addresses = {each["type"]: each["address"] for each in node["status"]["addresses"]}
    assert in_host == {"name": "carol", "address": addresses["InternalIP"], "node": "carol"}
    assert in_pod["name"] == "worker-3"
    assert in_pod["address"] != addresses["InternalIP"]
