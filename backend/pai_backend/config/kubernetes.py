"""The keys about the Kubernetes cluster that an engine works on."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, Self

from pydantic import Field, model_validator

from pai_backend.model.base import Model
from pai_backend.model.cluster_settings import NamespacePer, NodeReading, TroublePatience
from pai_backend.model.pod_settings import PodSettings

LONGEST: Final = 40  # characters of what names of namespaces begin with; a digest of 22 may follow, and 63 is the limit
_BASE = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", re.ASCII)


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
        description="Namespace of all objects made here. Default: that of the context or of the pod, else `default`.",
    )
    requests_at_once: int = Field(
        default=32, ge=1, le=1000, description="Concurrent requests to the API server, watches not counted."
    )
    logs_followed: int = Field(
        default=200,
        ge=1,
        le=10_000,
        description="Logs of running tasks that are followed at once; those of others are copied when they end. Each "
        "costs a connection, and an inotify instance of its node.",
    )
    pod_events: bool = Field(
        default=True,
        description="Say in Events of pods (`kubectl describe pod`) where tasks were placed, what gangs wait for, and "
        "why tasks are stopped. It needs `create` and `patch` of `events` in `events.k8s.io`; without that right there "
        "are none, which the log says once.",
    )
    namespace_per: NamespacePer = Field(
        default=NamespacePer.CLUSTER,
        description="`cluster`: all tasks are in `namespace`. `virtual-cluster` or `user`: those of each are in one of "
        "their own, `<namespace>-<name>`, which an administrator makes. Change it while nothing runs.",
    )
    pods: PodSettings = Field(default=PodSettings(), description="The pods of tasks.")
    patience: TroublePatience = Field(default=TroublePatience(), description="How long problems of tasks may last.")
    nodes: NodeReading = Field(default=NodeReading(), description="Facts about nodes.")

    @model_validator(mode="after")
    def _names_begin_alike(self) -> Self:
        """All names of namespaces begin with ``namespace``, also those that are shortened: by that they are known."""
        base = self.namespace or ""
        if self.namespace_per is not NamespacePer.CLUSTER and not (len(base) <= LONGEST and _BASE.fullmatch(base)):
            raise ValueError(
                f"namespace must be given with namespace_per: at most {LONGEST} characters, a letter first, and no two "
                "hyphens in a row"
            )
        return self
