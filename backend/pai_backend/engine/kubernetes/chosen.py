"""The engine as the configuration asks for it."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from pai_backend.engine.kubernetes.access import Access
from pai_backend.engine.kubernetes.engine import EngineOptions, KubernetesEngine
from pai_backend.model.cluster_settings import NodeReading, Patience
from pai_backend.model.pod_settings import PodSettings


class Keys(Protocol):
    """The keys below ``kubernetes``: ``pai_backend.config.kubernetes.KubernetesSettings``."""

    @property
    def kubeconfig(self) -> Path | None:
        """Kubeconfig file."""
        ...

    @property
    def context(self) -> str | None:
        """Its context."""
        ...

    @property
    def namespace(self) -> str | None:
        """Namespace of tasks."""
        ...

    @property
    def requests_at_once(self) -> int:
        """Requests under way at once."""
        ...

    @property
    def pods(self) -> PodSettings:
        """The pods of tasks."""
        ...

    @property
    def patience(self) -> Patience:
        """How long troubles may go on."""
        ...

    @property
    def nodes(self) -> NodeReading:
        """What is to be known of nodes."""
        ...


def engine_of(keys: Keys, instance: str, kept_logs: Path) -> KubernetesEngine:
    """The engine; nothing is connected to."""
    options = EngineOptions(
        instance=instance,
        pods=keys.pods,
        kept_logs=kept_logs,
        patience=keys.patience,
        nodes=keys.nodes,
        requests_at_once=keys.requests_at_once,
    )
    return KubernetesEngine(Access(keys.kubeconfig, keys.context, keys.namespace), options)
