"""Containers of this machine as a kind of engine."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pai_backend.engine.local.provider import LocalProvider
from pai_backend.engine.providers import Host

if TYPE_CHECKING:
    from pai_backend.engine.containers.engine import ContainerEngine


class ContainersProvider(LocalProvider):
    """Called as :class:`EngineProvider` says."""

    def check(self, settings: Any) -> None:
        """Tasks need the runtime's image, and the backend must be root of a Linux machine."""
        if not settings.containers.runtime_image:
            raise ValueError("containers.runtime_image is required with engine.kind: containers")
        if sys.platform != "linux" or os.geteuid() != 0:
            raise ValueError("engine.kind: containers needs a backend that is root on Linux")
        if shutil.which(settings.containers.podman) is None:
            raise ValueError(f"containers.podman: {settings.containers.podman} is not here; install the package podman")

    def tasks_run_as_backend(self, settings: Any) -> bool:
        """Their containers are apart from the backend, and from each other."""
        return False

    def task_directories(self, settings: Any) -> tuple[str, ...] | None:
        """The directories that all tasks have under the machine's own paths."""
        mounts = settings.containers.mounts
        return tuple(each.source for each in mounts if each.place == each.source and not each.read_only)

    def engine(self, host: Host) -> ContainerEngine:
        """Keys: those of ``containers``, and of ``engine``."""
        from pai_backend.engine.containers.engine import ContainerEngine

        given = host.settings.engine
        return ContainerEngine(
            Path(host.root),
            host.nodes,
            host.settings.containers,
            log_bytes=given.log_bytes,
            most_processes=given.most_processes,
            held=given.hold_to_limits,
            reserve=host.reserve,
        )
