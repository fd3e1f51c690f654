"""Nodes and pods that exist in the API alone: kwok says what kubelets would say, for thousands at next to no cost.

A pod on such a node is Running at once, until it is deleted; annotated with ``jupyter-pai.test/exit-code`` it ends
with this code after ``jupyter-pai.test/runs-for`` (such as ``300ms``; at once without it). Its log is one line.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.kubernetes.cluster.cluster import Cluster
from tests.kubernetes.cluster.commands import until
from tests.kubernetes.cluster.control_plane import Timing
from tests.kubernetes.cluster.processes import Daemon

LABEL = "jupyter-pai.test/simulated"
EXIT_CODE, RUNS_FOR = "jupyter-pai.test/exit-code", "jupyter-pai.test/runs-for"
# Heartbeats of a thousand nodes are most of the load: rare ones cost a twentieth of the usual ones.
RARE = Timing(node_status_s=10, node_lease_s=40, node_grace_s=500)
OUTPUT = "simulated\n"  # of every container
_MARK = "kwok.x-k8s.io/node"
_PORT = 10247  # where kwok answers as a kubelet would
_STAGES = Path(__file__).with_name("simulated_pods.yaml")


class Simulation:
    """kwok beside a cluster."""

    def __init__(self, cluster: Cluster, timing: Timing = RARE) -> None:
        self.cluster, self._timing = cluster, timing
        self.kwok = Daemon(cluster.directory, "kwok")
        self.nodes: list[str] = []

    def start(self, programs: Path) -> None:
        """Start to play the nodes' part."""
        here = self.cluster.slot.addresses.loopback
        serving = self.cluster.plane.authority.issue("kwok", hosts=[here])
        output = self.cluster.directory / "simulated.log"
        output.write_text(OUTPUT)
        options = {
            "manageAllNodes": False,
            "manageNodesWithAnnotationSelector": f"{_MARK}=fake",
            "nodeLeaseDurationSeconds": self._timing.node_grace_s * 4 // 5,  # longer ones would flap
            "podPlayStageParallelism": 16,
            "serverAddress": f"{here}:{_PORT}",
            "nodeIP": here,
            "nodePort": _PORT,
            "tlsCertFile": str(serving.certificate),
            "tlsPrivateKeyFile": str(serving.key),
        }
        kind = {"apiVersion": "config.kwok.x-k8s.io/v1alpha1", "kind": "KwokConfiguration", "options": options}
        logs = {
            "apiVersion": "kwok.x-k8s.io/v1alpha1",
            "kind": "ClusterLogs",
            "metadata": {"name": "all"},
            "spec": {"logs": [{"logsFile": str(output), "followLogs": False}]},
        }
        config = self.cluster.directory / "kwok.yaml"
        config.write_text("\n---\n".join([json.dumps(kind), json.dumps(logs), _STAGES.read_text()]))  # JSON is YAML
        command: list[str | Path] = [
            programs / "kwok",
            f"--kubeconfig={self.cluster.kubeconfig}",
            f"--config={config}",
            "--v=ERROR",
        ]
        self.kwok.start(command, self.cluster.directory)

    async def add_nodes(self, count: int, gpus: int = 8) -> list[str]:
        """Add nodes and wait until all are Ready; their names. Only pods that tolerate the taint land there."""
        names = [f"sim-{number:04d}" for number in range(len(self.nodes), len(self.nodes) + count)]
        room = {"cpu": "96", "memory": "1Ti", "ephemeral-storage": "1Ti", "pods": "110", "nvidia.com/gpu": str(gpus)}
        await self.cluster.kubectl.create(*(_node(name, room) for name in names))
        self.nodes += names
        await until(self._all_ready, f"{len(self.nodes)} simulated nodes to be Ready", 120, 0.5)
        return names

    async def _all_ready(self) -> bool:
        """Whether all are Ready, by one list: ``kubectl wait`` looks at one after the other, minutes for a thousand."""
        path = "{.items[*].status.conditions[?(@.type=='Ready')].status}"
        told = await self.cluster.kubectl("get", "nodes", f"--selector={LABEL}", "-o", f"jsonpath={path}")
        return told.split().count("True") == len(self.nodes)


def toleration() -> dict[str, str]:
    """What a pod needs to land on such a node."""
    return {"key": _MARK, "operator": "Exists"}


def _node(name: str, room: dict[str, str]) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {_MARK: "fake"},
            "labels": {LABEL: "true", "kubernetes.io/hostname": name},
        },
        "spec": {"taints": [{"key": _MARK, "value": "fake", "effect": "NoSchedule"}]},
        "status": {"capacity": room, "allocatable": room},
    }
