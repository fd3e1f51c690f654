"""The engine as the configuration asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pydantic import ValidationError

from pai_backend.engine.kubernetes.access import Access
from pai_backend.engine.kubernetes.engine import EngineOptions, KubernetesEngine
from pai_backend.engine.kubernetes.nodes import NodeReading
from pai_backend.engine.kubernetes.pods.settings import PodSettings
from pai_backend.engine.kubernetes.status.waits import Patience
from pai_backend.model.base import Model

Chosen = TypeVar("Chosen", bound=Model)


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
    def pods(self) -> dict[str, Any]:
        """PodSettings, not checked yet."""
        ...

    @property
    def patience(self) -> dict[str, Any]:
        """Patience, not checked yet."""
        ...

    @property
    def nodes(self) -> dict[str, Any]:
        """NodeReading, not checked yet."""
        ...


def engine_of(keys: Keys, instance: str, kept_logs: Path) -> KubernetesEngine:
    """The engine; nothing is connected to. Raises ValueError that begins with the key that cannot be used."""
    options = EngineOptions(
        instance=instance,
        pods=_checked(PodSettings, "pods", keys.pods),
        kept_logs=kept_logs,
        patience=_checked(Patience, "patience", keys.patience),
        nodes=_checked(NodeReading, "nodes", keys.nodes),
        requests_at_once=keys.requests_at_once,
    )
    return KubernetesEngine(Access(keys.kubeconfig, keys.context, keys.namespace), options)


def _checked(kind: type[Chosen], key: str, values: Mapping[str, Any]) -> Chosen:
    try:
        return kind.model_validate(dict(values))
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        place = ".".join([key, *map(str, first["loc"])])
        raise ValueError(f"{place}: {first['msg']}; see engine-kubernetes.md") from None
