"""Kubernetes as a kind of engine: tasks are pods. Imports no client of Kubernetes before the engine is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pai_backend.engine.providers import EngineProvider, Host
from pai_backend.model.pod_settings import PodSettings

if TYPE_CHECKING:
    from pai_backend.engine.kubernetes.engine import KubernetesEngine


class KubernetesProvider(EngineProvider):
    """Called as :class:`EngineProvider` says."""

    def check(self, settings: Any) -> None:
        """Tasks need the runtime's image."""
        if not settings.kubernetes.pods.runtime_image:
            raise ValueError("kubernetes.pods.runtime_image is required with engine.kind: kubernetes")

    def task_directories(self, settings: Any) -> tuple[str, ...]:
        """The volumes that all pods have."""
        volumes = settings.kubernetes.pods.volumes
        return tuple(each.path for each in volumes if each.path is not None and not each.read_only)

    def can_stage(self, settings: Any) -> bool:
        """With an image that fetches them."""
        return bool(settings.kubernetes.pods.inputs_image)

    def pods(self, settings: Any) -> PodSettings:
        """As configured."""
        pods: PodSettings = settings.kubernetes.pods
        return pods

    def engine(self, host: Host) -> KubernetesEngine:
        """Keys: those of ``kubernetes``. A backend starts while its cluster is away."""
        try:
            from pai_backend.engine.kubernetes.configured import engine_of
        except ModuleNotFoundError as error:
            raise ValueError(
                f"engine.kind: kubernetes needs {error.name}; pip install kubernetes_asyncio aiohttp"
            ) from None
        given = host.settings
        kept_logs = self.logs(given)
        return engine_of(given.kubernetes, given.cluster_name, kept_logs, given.engine.log_bytes, host.owner_of)
