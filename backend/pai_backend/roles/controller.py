"""The controller: one at a time for a database, proved by a lease and, on one machine, by a file lock."""

from __future__ import annotations

import os
import platform
from datetime import timedelta

from pai_backend.access.ports import PortRange
from pai_backend.config.settings import Role
from pai_backend.controller import Controller, ControllerOptions
from pai_backend.parts import Parts, ReadyLine
from pai_backend.scheduling.jobs.placer import Placer


async def run(parts: Parts, ready: ReadyLine) -> None:
    """Decide until the process is told to end."""
    settings = parts.settings
    store = await parts.store_or_stop()
    if store is None:
        return
    options = ControllerOptions(
        holder=f"{platform.node()}-{os.getpid()}",
        lock=settings.data_dir / "controller.lock",
        grace_s=settings.engine.grace_s,
        ports=PortRange(settings.ports.first, settings.ports.last),
        default_fs_uri=settings.default_fs_uri,
        reach=parts.reach(),
        keep=timedelta(seconds=settings.debug.keep_s),
    )
    config, for_all = parts.cluster_config(), settings.cluster.cells_for_cpu_tasks
    ready.role_is_ready(Role.CONTROLLER)
    controller = Controller(store, parts.engine(), options, placer=lambda: Placer(config, cells_for_all=for_all))
    await controller.run(parts.stop)
