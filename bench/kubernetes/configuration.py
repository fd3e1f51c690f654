"""What a backend with the Kubernetes engine is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from bench.kubernetes.clusters import NAMESPACE


def write_config(path: Path, kubeconfig: Path, pods: dict[str, Any], **others: Any) -> Path:
    """A configuration file for the engine; ``others`` are added to what it says of the cluster."""
    keys: dict[str, Any] = {
        "user": "bench",
        "engine": {"kind": "kubernetes", "grace_s": 1},
        "kubernetes": {"kubeconfig": str(kubeconfig), "namespace": NAMESPACE, "pods": pods, **others},
    }
    path.write_text(yaml.safe_dump(keys))
    return path
