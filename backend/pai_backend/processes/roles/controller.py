"""The controller: one at a time for a database, proved by a lease and, with SQLite, by a file lock."""

from __future__ import annotations

import asyncio
import logging
import os
import platform
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pai_backend.access.ports import PortRange
from pai_backend.config.audit import AuditSettings
from pai_backend.config.notifications import NotificationSettings
from pai_backend.config.queue_policy import policy_of
from pai_backend.config.settings import ProcessRole, Settings
from pai_backend.controller import Controller, ControllerOptions
from pai_backend.controller.audit_keeper import AuditRules
from pai_backend.controller.audit_sinks import AuditSink, Syslog, Webhook
from pai_backend.controller.configuring import Setting
from pai_backend.controller.figures import ClusterFigures
from pai_backend.controller.image_keeper import ImageKeeper
from pai_backend.controller.notice_sending import NoticeSender
from pai_backend.controller.posting import Poster
from pai_backend.engine.base import Engine, EngineError
from pai_backend.engine.holding import HeldByAnother, refusal
from pai_backend.engine.images import ImageRule
from pai_backend.engine.local.retention import FolderRetention, KeepRule
from pai_backend.launch.service_addresses import ServiceSite
from pai_backend.platform.listening import kept_port
from pai_backend.processes.components import Components, ReadyLine, RoleError
from pai_backend.processes.controller_port import serve
from pai_backend.scheduling.jobs.placer import Placer
from pai_backend.scheduling.terms import NodeRules
from pai_backend.store import deletion

if TYPE_CHECKING:
    from pai_backend.store.sql import Store

log = logging.getLogger(__name__)


def lock_of(settings: Settings) -> Path | None:
    """The file that proves a predecessor dead; None where controllers of one database may be on several machines.

    Each of those would hold the lock of its own data directory, and take the lease from one that lives.
    """
    return settings.data_dir / "controller.lock" if settings.database_url.startswith("sqlite") else None


async def require_holder(store: Store, engine: Engine) -> None:
    """Raises RoleError when the engine belongs to another database.

    A cluster that cannot be asked now is asked again before anything is done to it: ``controller.loop``.
    """
    try:
        found, identity = await engine.holder(), await store.recovery.identity()
    except HeldByAnother as error:
        raise RoleError(str(error)) from None
    except EngineError as error:
        log.warning("whose tasks the engine runs cannot be asked now: %s", error)
        return
    if found is not None and found.identity != identity:
        place = "the place where this backend runs its tasks"
        raise RoleError(refusal(found, identity, datetime.now(UTC), place))


async def run(components: Components, ready: ReadyLine) -> None:
    """Decide until the process is told to end."""
    figures = ClusterFigures()
    with _own_port(components, figures):
        await _run(components, ready, figures)


@contextmanager
def _own_port(components: Components, figures: ClusterFigures) -> Iterator[None]:
    """Probes and figures, from before the database answers. Raises RoleError."""
    given = components.settings.controller
    with ExitStack() as stack:
        if given.metrics_port:
            insight = components.engine().insight
            if insight is not None and ProcessRole.API not in components.roles:
                figures.registry.register(insight.figures())
            try:
                stack.enter_context(
                    serve(figures.registry, given.metrics_host, given.metrics_port, lambda: _trouble(components))
                )
            except OSError as error:
                place = f"{given.metrics_host}:{given.metrics_port}"
                raise RoleError(f"controller.metrics_port: cannot listen on {place}: {error.strerror}") from None
        yield


def _trouble(components: Components) -> str:
    """Why this process could not take over now; empty when it could, or leads already."""
    return "" if components.store_is_open else components.database_trouble


async def _run(components: Components, ready: ReadyLine, figures: ClusterFigures) -> None:
    settings = components.settings
    store = await components.store_or_stop()
    if store is None:
        return
    options = ControllerOptions(
        holder=f"{platform.node()}-{os.getpid()}",
        lock=lock_of(settings),
        grace_s=settings.engine.grace_s,
        ports=PortRange(settings.ports.first, settings.ports.last),
        default_fs_uri=components.task_reach().task_fs_uri,
        reach=components.reach(),
        keep=timedelta(seconds=settings.debug.keep_s),
        keep_orphans=timedelta(seconds=settings.engine.orphans_keep_s) if settings.engine.orphans_keep_s else None,
        cluster=Setting(components.cluster_text(), settings.cluster.fixed),
        keep_jobs=deletion.Retention(
            timedelta(days=settings.jobs.keep_days), settings.jobs.keep_number, settings.jobs.keep_bytes
        ),
        services=ServiceSite(settings.api.service_domain, partial(api_url, settings)),
        sampling=components.sampling,
        figures=figures,
        grants=settings.cluster.grants,
        audit=audit_rules(settings.audit),
        notices=notice_sender(settings.notifications),
    )
    if not options.default_fs_uri:
        log.warning(
            "storage.default_uri: tasks do not reach %s, a directory of the backend's machine; jobs that leave results "
            "there are refused. Name a storage that pods reach",
            settings.default_fs_uri,
        )
    config, for_all = components.cluster_config(), settings.cluster.cells_for_cpu_tasks
    rules = NodeRules(settings.cluster.sku_scheduling, settings.cluster.cpu_scheduling)
    for sku in rules.unused(config) if config is not None else ():
        log.warning("cluster.sku_scheduling: there are no cells of type %s, so its rule has no effect", sku)
    vcs = config.virtual_clusters.keys() if config is not None else settings.virtual_clusters
    for key, named in (("vcs", [*settings.queue.vcs]), ("orders", [*settings.queue.orders])):
        for vc in set(named) - set(vcs):
            log.warning("queue.%s: there is no virtual cluster %s; there are: %s", key, vc, ", ".join(vcs))
    policy = policy_of(settings.queue)
    engine = components.engine()
    await components.open_to_accounts()
    await require_holder(store, engine)
    await store.recovery.add_log_place(await components.log_place.marked())
    ready.role_is_ready(ProcessRole.CONTROLLER)
    controller = Controller(
        store, engine, options, placer=lambda: Placer(cells_for_all=for_all, rules=rules, policy=policy)
    )
    async with asyncio.TaskGroup() as group:
        sweeping = [group.create_task(_sweep(components)), group.create_task(_keep_images(components, store))]
        await controller.run(components.stop)
        for task in sweeping:
            task.cancel()


def audit_rules(settings: AuditSettings) -> AuditRules:
    """How the audit is kept, by the settings."""
    sinks: list[AuditSink] = []
    if settings.webhook:
        secret = settings.webhook_secret
        sinks.append(Webhook(settings.webhook, "" if secret is None else secret.get_secret_value()))
    if settings.syslog:
        sinks.append(Syslog(settings.syslog))
    return AuditRules(timedelta(days=settings.keep_days) if settings.keep_days else None, sinks)


def notice_sender(settings: NotificationSettings) -> NoticeSender:
    """What tells users of their jobs, by the settings."""
    server = None
    if settings.smtp_host:
        from pai_backend.controller.mailing import MailServer

        password = settings.smtp_password.get_secret_value() if settings.smtp_password is not None else ""
        place = settings.smtp_host, settings.smtp_port, settings.smtp_security
        server = MailServer(*place, settings.mail_from, settings.smtp_user, password)
    return NoticeSender(Poster(settings.networks), server, lambda: datetime.now(UTC))


def api_url(settings: Settings) -> str | None:
    """Where users reach the API, as far as this process can tell: its port may be one that it has not chosen yet."""
    port = settings.api.port or kept_port(settings.data_dir / "api.port")
    scheme = "http" if settings.api.tls.certificate is None else "https"
    return settings.api.public_url or (f"{scheme}://{settings.api.host}:{port}" if port else None)


async def _keep_images(components: Components, store: Store) -> None:
    """Remove images that are not to be kept, where the engine has images and a limit is set."""
    images, settings = components.engine().images, components.settings
    given = settings.containers.images
    rule = ImageRule(*given.rule)
    if images is None or not rule.is_set:
        return
    from pai_backend.api.services.images import offered_images

    def offered() -> frozenset[str]:
        return offered_images((*settings.jobs.images, *given.keep), settings.jobs.templates)

    await ImageKeeper(store, images, rule, offered, lambda: datetime.now(UTC)).run()


async def _sweep(components: Components) -> None:
    """Remove what is not kept of finished tasks: their logs, and on this machine their directories."""
    given = components.settings.engine
    folder = components.provider.finished(components.settings)
    await FolderRetention(folder, KeepRule(given.keep_days * 86_400, given.keep_tasks, given.keep_bytes)).run()
