"""What containerd, its network plugins and kubelet of a node read: configuration as text."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.kubernetes.cluster.addresses import Addresses
from tests.kubernetes.cluster.control_plane import Timing
from tests.kubernetes.cluster.credentials import Authority
from tests.kubernetes.cluster.images import PAUSE

PLUGINS = Path("/usr/lib/cni")


def write(home: Path, number: int, name: str, addresses: Addresses, authority: Authority, timing: Timing) -> None:
    """Write all of them below a node's directory."""
    (home / "resolv.conf").write_text("# nothing outside is looked up\n")
    (home / "containerd.toml").write_text(_containerd(home))
    (home / "cni" / "10-pods.conflist").write_text(json.dumps(_pod_network(addresses, number), indent=1))
    (home / "kubelet.json").write_text(json.dumps(_kubelet(home, number, name, addresses, authority, timing), indent=1))


def snapshotter(home: Path) -> str:
    """An overlay cannot lie on an overlay, which is what the disk of a container is: there, layers are copied."""
    told = subprocess.run(["stat", "-f", "-c", "%T", home], capture_output=True, text=True, check=True, timeout=60)
    return "native" if told.stdout.strip() == "overlayfs" else "overlayfs"


def _containerd(home: Path) -> str:
    cri = '[plugins."io.containerd.grpc.v1.cri"'
    lines = [
        "version = 2",
        f'root = "{home}/containerd"',
        'state = "/run/containerd"',
        "[grpc]",
        f'address = "{home}/containerd.sock"',
        f"{cri}]",
        f'sandbox_image = "{PAUSE}"',
        "restrict_oom_score_adj = true",  # some build machines may not lower it
        f"{cri}.containerd]",
        f'snapshotter = "{snapshotter(home)}"',
        f"{cri}.cni]",
        f'bin_dir = "{PLUGINS}"',
        f'conf_dir = "{home}/cni"',
    ]
    return "\n".join(lines) + "\n"


def _pod_network(addresses: Addresses, number: int) -> dict[str, object]:
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "dataDir": "/run/ipam",
            "ranges": [[{"subnet": str(addresses.pods_of(number))}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    ports = {"type": "portmap", "snat": True, "capabilities": {"portMappings": True}}
    return {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge, ports]}


def _kubelet(
    home: Path, number: int, name: str, addresses: Addresses, authority: Authority, timing: Timing
) -> dict[str, object]:
    serving = authority.issue(f"kubelet-{name}", hosts=[addresses.node(number), name])
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(authority.certificate)},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(serving.certificate),
        "tlsPrivateKeyFile": str(serving.key),
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{addresses.cgroup(name)}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "containerRuntimeEndpoint": f"unix://{home}/containerd.sock",
        "resolvConf": str(home / "resolv.conf"),
        # The disk is this machine's, and not the node's to tidy.
        "evictionHard": {"nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        "nodeStatusUpdateFrequency": f"{timing.node_status_s}s",
        "nodeLeaseDurationSeconds": timing.node_lease_s,
    }
