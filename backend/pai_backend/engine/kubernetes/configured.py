"""The engine as the configuration asks for it."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from pai_backend.engine.kubernetes.access import Access
from pai_backend.engine.kubernetes.engine import EngineOptions, KubernetesEngine
from pai_backend.engine.providers import OwnerOf
from pai_backend.model.cluster_settings import NamespacePer, NodeReading, TroublePatience
from pai_backend.model.pod_settings import PodSettings


class KubernetesKeys(Protocol):
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
    def namespace_per(self) -> NamespacePer:
        """What has a namespace of its own."""
        ...

    @property
    def requests_at_once(self) -> int:
        """Requests under way at once."""
        ...

    @property
    def pod_events(self) -> bool:
        """Whether Events of pods say what was done with them."""
        ...

    @property
    def logs_followed(self) -> int:
        """Logs that are followed at once."""
        ...

    @property
    def pods(self) -> PodSettings:
        """The pods of tasks."""
        ...

    @property
    def patience(self) -> TroublePatience:
        """How long troubles may go on."""
        ...

    @property
    def nodes(self) -> NodeReading:
        """Facts about nodes."""
        ...


def engine_of(
    keys: KubernetesKeys, instance: str, kept_logs: Path, log_bytes: int, owner_of: OwnerOf
) -> KubernetesEngine:
    """The engine; nothing is connected to. ``owner_of`` is asked where each owner has a namespace."""
    options = EngineOptions(
        instance=instance,
        pods=keys.pods,
        kept_logs=kept_logs,
        log_bytes=log_bytes,
        logs_followed=keys.logs_followed,
        patience=keys.patience,
        nodes=keys.nodes,
        requests_at_once=keys.requests_at_once,
        pod_events=keys.pod_events,
        namespace_per=keys.namespace_per,
        owner_of=owner_of,
    )
    return KubernetesEngine(Access(keys.kubeconfig, keys.context, keys.namespace), options)
