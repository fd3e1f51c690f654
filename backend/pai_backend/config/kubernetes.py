"""The keys about the Kubernetes cluster that an engine works on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field

from pai_backend.model.base import Model


class KubernetesSettings(Model):
    """How the cluster is reached. Everything may be left out where kubectl would find it."""

    kubeconfig: Path | None = Field(
        default=None,
        description="Kubeconfig file. Default: the files of `KUBECONFIG`, else the service account of the pod that the "
        "backend runs in, else `~/.kube/config`.",
    )
    context: str | None = Field(
        default=None, min_length=1, description="Context of the kubeconfig. Default: its current one."
    )
    namespace: str | None = Field(
        default=None,
        max_length=63,
        pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        description="Namespace for everything of ours. Default: that of the context or of the pod, else `default`.",
    )
    requests_at_once: int = Field(
        default=32, ge=1, le=1000, description="Requests to the API server under way at once, watches not counted."
    )
    pods: dict[str, Any] = Field(
        default={},
        description="The pods of tasks, in a configuration file: `{runtime_image, network, gpus, volumes, ...}`; "
        "`runtime_image` is needed. See engine-kubernetes.md.",
    )
    patience: dict[str, Any] = Field(
        default={},
        description="Seconds that troubles of tasks may go on: `{pull_s, start_s, pod_s, schedule_s, node_s}`.",
    )
    nodes: dict[str, Any] = Field(
        default={},
        description="What is to be known of nodes: `{gpu_types, spare_cpus, spare_memory_mb}`.",
    )
