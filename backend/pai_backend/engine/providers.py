"""Kinds of engines by name: the shipped ones, and those that installed packages bring.

A package brings an engine by an entry point of the group ``jupyter_pai.engines``, which names an
:class:`EngineProvider`; the entry point's name is the value of ``engine.kind``. ``docs/engines.md`` describes it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pai_backend.engine.base import Engine
    from pai_backend.engine.local.accounts import SystemAccounts
    from pai_backend.engine.local.retention import TaskFolders
    from pai_backend.model.ids import JobUid
    from pai_backend.model.node import Node
    from pai_backend.model.pod_settings import PodSettings
    from pai_backend.platform.disk_reserve import DiskReserve

GROUP = "jupyter_pai.engines"

SHIPPED: Mapping[str, str] = MappingProxyType(
    {
        "local": "pai_backend.engine.local.provider:LocalProvider",
        "containers": "pai_backend.engine.containers.provider:ContainersProvider",
        "kubernetes": "pai_backend.engine.kubernetes.provider:KubernetesProvider",
    }
)
"""The entry points of this distribution, for a source tree that runs without being installed."""

COMPLETE = "complete"
"""Name of the file whose presence says that the kept logs of a task are complete."""


@dataclass(frozen=True)
class JobOwner:
    """Whose a job is."""

    user: str
    virtual_cluster: str


OwnerOf = Callable[["JobUid"], Awaitable[JobOwner | None]]
"""Whose a job is; None for a job that is not stored."""


@dataclass(frozen=True)
class Host:
    """What the backend gives an engine."""

    settings: Any
    """The whole configuration, ``pai_backend.config.settings.Settings``; an engine reads its own keys of it."""
    nodes: Sequence[Node]
    """The nodes of ``engine.nodes``, or this machine; empty for an engine whose tasks run elsewhere."""
    accounts: SystemAccounts | None
    reserve: DiskReserve
    owner_of: OwnerOf

    @property
    def root(self) -> Path:
        """The directory that is the engine's own. It may not exist yet."""
        path: Path = self.settings.data_dir / "engine"
        return path


class EngineProvider:
    """A kind of engine. The defaults suit one whose tasks run on other machines."""

    runs_here = False
    """Whether tasks are processes of the backend's machine, and see its files."""

    def check(self, settings: Any) -> None:
        """Refuse a configuration. Called before a role starts. Raises ValueError, whose text names the key."""

    def tasks_run_as_backend(self, settings: Any) -> bool:
        """Whether tasks have the rights of the backend's own account."""
        return False

    def task_directories(self, settings: Any) -> tuple[str, ...] | None:
        """Directories that all tasks reach and may write to; None: all of this machine."""
        return ()

    def can_stage(self, settings: Any) -> bool:
        """Whether inputs of documents can be fetched for tasks."""
        return True

    def pods(self, settings: Any) -> PodSettings | None:
        """Where tasks are pods, how these are made, and what documents may choose of them."""
        return None

    def logs(self, settings: Any) -> Path:
        """The directory with the logs of tasks."""
        path: Path = settings.data_dir / "task-logs"
        return path

    def finished(self, settings: Any) -> TaskFolders:
        """Directories of finished tasks, which are removed after the times and sizes of ``engine.keep_*``."""
        from pai_backend.engine.local.retention import TaskFolders

        return TaskFolders(self.logs(settings), COMPLETE)

    def engine(self, host: Host) -> Engine:
        """The engine; it connects to nothing yet. Raises ValueError, whose text names the key."""
        raise NotImplementedError


def _found(name: str) -> EntryPoint | None:
    """A shipped kind is found without the packages: to look through hundreds of them takes 0.1 s."""
    if name in SHIPPED:
        return EntryPoint(name, SHIPPED[name], GROUP)
    return next(iter(entry_points(group=GROUP, name=name)), None)


def names() -> tuple[str, ...]:
    """The kinds that are installed; the shipped ones come first."""
    return tuple(dict.fromkeys([*SHIPPED, *sorted(entry_points(group=GROUP).names)]))


@cache
def provider(name: str) -> EngineProvider:
    """The provider of a kind. Raises ValueError for one that is not installed, or cannot be imported."""
    found = _found(name)
    if found is None:
        raise ValueError(f"engine.kind: there is no engine {name}; installed: {', '.join(names())}")
    try:
        loaded = found.load()()
    except Exception as error:
        raise ValueError(f"engine.kind: the engine {name} ({found.value}) cannot be loaded: {error!r}") from error
    if not isinstance(loaded, EngineProvider):
        raise ValueError(f"engine.kind: the engine {name} ({found.value}) is not an EngineProvider")
    return loaded
