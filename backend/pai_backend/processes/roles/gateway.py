"""The SSH gateway: listens on the port that it was given, or takes it, and says where it is."""

from __future__ import annotations

import os
from contextlib import AsyncExitStack, ExitStack

from pai_backend.access.gateway.counters import Counters
from pai_backend.access.gateway.figures import serve_figures
from pai_backend.access.gateway.options import GatewayOptions
from pai_backend.access.gateway.server import serve_gateway
from pai_backend.config.gateway import GatewaySettings
from pai_backend.config.settings import ProcessRole
from pai_backend.platform.runtime_files import runtime_file
from pai_backend.processes.components import Components, ReadyLine, RoleError
from pai_backend.processes.gateway_port import GatewayPortTaken, no_port, take


async def run(components: Components, ready: ReadyLine) -> None:
    """Serve until the process is told to end. Raises RoleError when no port is available."""
    store = await components.store_or_stop()
    if store is None:
        return
    settings, engine = components.settings.gateway, components.engine()
    async with AsyncExitStack() as held:
        files, figures = held.enter_context(ExitStack()), await held.enter_async_context(AsyncExitStack())
        counters = await _counters(components, figures)
        try:
            alone = {**settings.model_dump(include={"host", "port"}), "processes": 1}
            listener = components.life.listener or take(alone, components.settings.data_dir)[0]
        except GatewayPortTaken as error:
            raise RoleError(str(error)) from None

        def listening(host: str, port: int) -> None:
            if components.life.copy == 1:
                facts = {"pid": os.getpid(), "host": host, "port": port}
                files.enter_context(runtime_file(components.runtime("gateway.json"), facts))
            ready.role_is_ready(ProcessRole.GATEWAY)

        async def closed() -> None:
            files.close()
            await figures.aclose()
            components.let_go(ProcessRole.GATEWAY, ready)

        await serve_gateway(
            _options(settings),
            store,
            engine,
            components.stop,
            listening,
            counters=counters,
            listener=listener,
            closed=closed,
            hurry=components.hurry,
        )


async def _counters(components: Components, held: AsyncExitStack) -> Counters:
    """The figures of this process, served where that is configured. Raises RoleError when their port is taken."""
    settings, counters, insight = components.settings.gateway, Counters(), components.engine().insight
    if insight is not None:
        counters.registry.register(insight.figures())
    if settings.metrics_port:
        port = settings.metrics_port + components.life.copy - 1
        try:
            await held.enter_async_context(serve_figures(counters.registry, settings.metrics_host, port))
        except OSError as error:
            raise RoleError(str(no_port("metrics_port", settings.metrics_host, port, error))) from None
    return counters


def _options(settings: GatewaySettings) -> GatewayOptions:
    return GatewayOptions(
        host=settings.host,
        port=settings.port,
        login_timeout_s=settings.login_timeout_s,
        keepalive_s=settings.keepalive_s,
        keepalive_count=settings.keepalive_count,
        max_unauthenticated=settings.max_unauthenticated,
        max_unauthenticated_per_source=settings.max_unauthenticated_per_source,
        proxies=settings.proxies,
        max_auth_tries=settings.max_auth_tries,
        old_clients=settings.old_clients,
        max_logins_per_user=settings.max_logins_per_user,
        max_channels=settings.max_channels,
        wait_s=settings.wait_s,
        start_wait_s=settings.start_wait_s,
        drain_s=settings.drain_s,
    )
