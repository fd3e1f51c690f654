"""``cluster init`` on a real cluster: nodes as they are, nothing changed, and a backend takes the file."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

from pai_backend.scheduling.config.read import read_config
from tests.kubernetes.cluster.cluster import Cluster
from tests.kubernetes.devices.conftest import CAROL, BackendMaker

MASTER = "node-role.kubernetes.io/control-plane"


def node(name: str, taints: list[dict[str, str]], labels: dict[str, str], gpus: int) -> dict[str, object]:
    """A node without a kubelet: what the API server says of it is all that is looked at."""
    room = {"cpu": "16", "memory": "64Gi", "pods": "110", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints},
        "status": {"capacity": room, "allocatable": room, "conditions": [ready]},
    }


def test_the_file_of_a_real_cluster_is_taken_by_a_backend(
    machine: Cluster, backend_with: BackendMaker, tmp_path: Path
) -> None:
    added = [
        node("bob", [{"key": MASTER, "effect": "NoSchedule"}], {}, 0),
        node("erin", [], {"nvidia.com/gpu.product": "Tesla-V100"}, 4),
        node("frank", [{"key": "team", "value": "vision", "effect": "NoSchedule"}], {}, 2),
    ]
    asyncio.run(machine.kubectl.create(*added))
    try:
        before = asyncio.run(machine.kubectl("get", "nodes", "-o", "jsonpath={.items[*].metadata.labels}"))
        file = tmp_path / "cells.yaml"
        command = [sys.executable, "-m", "pai_backend", "cluster", "init", "--engine-kind", "kubernetes"]
        command += ["--kubernetes-kubeconfig", str(machine.kubeconfig), "--output", str(file), "--vc", "vision=50"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        text = file.read_text(encoding="utf-8")
        config = read_config(text)
        assert config.nodes() == ("frank", "erin")
        assert list(config.cell_types) == ["GPU-NODE-2", "Tesla-V100-NODE-4"]
        remarks = " ".join(line.removeprefix("#").strip() for line in text.splitlines() if line.startswith("#"))
        assert f"because the cluster itself is run there ({MASTER}:NoSchedule): bob." in remarks
        assert "Without GPUs, hence without cells; tasks that ask for no GPU run there by CPU and memory: " in remarks
        assert "`kubectl label node NAME jupyter-pai/gpu-type=WORD`" in remarks
        assert "team=vision:NoSchedule on frank" in remarks
        assert asyncio.run(machine.kubectl("get", "nodes", "-o", "jsonpath={.items[*].metadata.labels}")) == before
        with backend_with("--cluster-config", str(file)) as running, running.client() as client:
            owned = client.get("/api/v2/virtual-clusters").json()
            assert {name: each["resourcesTotal"]["GPUs"] for name, each in owned.items()} == {"default": 0, "vision": 6}
    finally:
        asyncio.run(machine.kubectl("delete", "node", "bob", "erin", "frank"))
        assert CAROL in json.dumps(asyncio.run(machine.kubectl.get("nodes")))
