"""Where the cluster's programs are, and what a machine lacks to run them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.kubernetes.cluster.node_files import PLUGINS

_BUILDER = Path(__file__).resolve().parents[3] / "tools" / "kubernetes-binaries"
CONTROL_PLANE = ("kube-apiserver", "etcd", "kubectl", "kube-controller-manager", "kube-scheduler")
NODE = ("kubelet", "kube-proxy")
_GO = (1, 21)  # since then Go fetches the version that a module asks for
_NEEDED = (
    "containerd",
    "runc",
    "ctr",
    "iptables",
    "ip",
    "nsenter",
    "unshare",
    "setsid",
    "busybox",
    "zstd",
    "bash",
    "stat",
)


class BuildFailed(Exception):
    """A program could not be built; the text is what the builder said."""


def build(*names: str) -> Path:
    """The directory in which these programs are; waits for those that are being built. Raises BuildFailed."""
    done = subprocess.run([sys.executable, _BUILDER, *names], capture_output=True, text=True)
    if done.returncode != 0:
        raise BuildFailed(done.stderr)
    return Path(done.stdout.strip())


def unbuilt(*names: str) -> list[str]:
    """Which of these programs are not built yet."""
    command: list[str | Path] = [sys.executable, _BUILDER, "--missing", *names]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.split()


def images() -> Path:
    """Where archives of images are kept."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "jupyter-pai" / "kubernetes" / "images"


def lacking() -> list[str]:
    """Why no cluster can run here, in words; nothing when one can."""
    if sys.platform != "linux":
        return ["Linux"]
    lacks = [] if os.geteuid() == 0 else ["root"]
    lacks += [program for program in _NEEDED if shutil.which(program) is None]
    lacks += [] if (PLUGINS / "bridge").exists() else ["containernetworking-plugins"]
    if _too_old_go() and unbuilt(*CONTROL_PLANE, *NODE):
        lacks.append(f"Go {'.'.join(map(str, _GO))} or later, from go.dev or the distribution")
    if not lacks:
        lacks += _namespaces()
    return lacks


def _too_old_go() -> bool:
    """Whether there is no Go that could build Kubernetes, or fetch by itself the one that can."""
    if shutil.which("go") is None:
        return True
    told = subprocess.run(["go", "env", "GOVERSION"], capture_output=True, text=True, timeout=60).stdout
    numbers = re.match(r"go(\d+)\.(\d+)", told)
    return numbers is None or (int(numbers[1]), int(numbers[2])) < _GO


def _namespaces() -> list[str]:
    """Root of a container may not be allowed to do what root of a machine may."""
    tried = ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "mount", "-t", "tmpfs", "t", "/run"]
    done = subprocess.run(tried, capture_output=True, text=True, timeout=60)
    said = re.sub(r"\s+", " ", done.stderr).strip()
    return [f"the right to make namespaces and mounts ({said})"] if done.returncode != 0 else []
