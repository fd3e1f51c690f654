"""The controller: one at a time for a database, proved by a lease and, with SQLite, by a file lock."""

from __future__ import annotations

import logging
import os
import platform
from datetime import timedelta
from pathlib import Path

from pai_backend.access.ports import PortRange
from pai_backend.config.settings import Role, Settings
from pai_backend.controller import Controller, ControllerOptions
from pai_backend.controller.configuring import Setting
from pai_backend.parts import Parts, ReadyLine
from pai_backend.queue_policy import policy_of
from pai_backend.scheduling.jobs.placer import Placer
from pai_backend.scheduling.jobs.terms import NodeRules

log = logging.getLogger(__name__)


def lock_of(settings: Settings) -> Path | None:
    """The file that proves a predecessor dead; None where controllers of one database may be on several machines.

    Each of those would hold the lock of its own data directory, and take the lease from one that lives.
    """
    return settings.data_dir / "controller.lock" if settings.database_url.startswith("sqlite") else None


async def run(parts: Parts, ready: ReadyLine) -> None:
    """Decide until the process is told to end."""
    settings = parts.settings
    store = await parts.store_or_stop()
    if store is None:
        return
    options = ControllerOptions(
        holder=f"{platform.node()}-{os.getpid()}",
        lock=lock_of(settings),
        grace_s=settings.engine.grace_s,
        ports=PortRange(settings.ports.first, settings.ports.last),
        default_fs_uri=settings.default_fs_uri,
        reach=parts.reach(),
        keep=timedelta(seconds=settings.debug.keep_s),
        cluster=Setting(parts.cluster_text(), settings.cluster.fixed),
    )
    config, for_all = parts.cluster_config(), settings.cluster.cells_for_cpu_tasks
    rules = NodeRules(settings.cluster.sku_scheduling, settings.cluster.cpu_scheduling)
    for sku in rules.unused(config) if config is not None else ():
        log.warning("cluster.sku_scheduling: there are no cells of type %s, so its rule counts for nobody", sku)
    vcs = config.virtual_clusters.keys() if config is not None else settings.virtual_clusters
    for vc in settings.queue.vcs.keys() - set(vcs):
        log.warning("queue.vcs: there is no virtual cluster %s; there are: %s", vc, ", ".join(vcs))
    policy = policy_of(settings.queue)
    ready.role_is_ready(Role.CONTROLLER)
    controller = Controller(
        store, parts.engine(), options, placer=lambda: Placer(cells_for_all=for_all, rules=rules, policy=policy)
    )
    await controller.run(parts.stop)
