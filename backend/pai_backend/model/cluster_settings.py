"""What an administrator says of a Kubernetes cluster, besides the pods of tasks: ``pod_settings`` has those."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from pai_backend.model.base import Model


class NamespacePer(StrEnum):
    """What has a namespace of its own."""

    CLUSTER = "cluster"
    VIRTUAL_CLUSTER = "virtual-cluster"
    USER = "user"


class TroublePatience(Model):
    """How long a trouble may go on before a task is given up, in seconds."""

    pull_s: int = Field(default=300, ge=0, description="Seconds that fetching an image may keep failing.")
    start_s: int = Field(default=120, ge=0, description="Seconds that making a container may keep failing.")
    pod_s: int = Field(default=300, ge=0, description="Seconds that a node may take for a pod's network and volumes.")
    schedule_s: int = Field(
        default=15, ge=0, description="Seconds that the cluster's scheduler may refuse a pod its node."
    )
    gang_s: int = Field(
        default=3,
        ge=0,
        description="The same for a pod of a gang: other pods of the gang may hold their nodes meanwhile. At most "
        "`schedule_s` counts.",
    )
    node_s: int = Field(default=300, ge=0, description="Seconds that a node may be away before its tasks are lost.")


class NodeReading(Model):
    """What is to be known of the cluster's nodes."""

    gpu_types: dict[str, str] = Field(
        default={},
        description="SKU words for products as nodes are labelled with them: `{NVIDIA-A100-SXM4-80GB: A100}`. "
        "The label `jupyter-pai/gpu-type` of a node beats it.",
    )
    spare_cpus: float = Field(
        default=0, ge=0, description="CPUs of each node that are left to others, such as DaemonSets."
    )
    spare_memory_mb: int = Field(default=0, ge=0, description="MiB of memory of each node that are left to others.")
    count_other_pods: bool = Field(
        default=True,
        description="Whether the controller counts what pods that are not of this backend request of nodes, so that "
        "tasks go where room is. It needs `list` and `watch` of `pods` in all namespaces; without it, or without that "
        "right, the cluster refuses what does not fit, and the task goes to another node.",
    )
