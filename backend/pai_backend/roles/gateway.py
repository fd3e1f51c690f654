"""The SSH gateway: takes its port, or finds one, and says where it is."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import zlib
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

from pai_backend.access.gateway.counters import Counters
from pai_backend.access.gateway.figures import serve_figures
from pai_backend.access.gateway.options import GatewayOptions
from pai_backend.access.gateway.server import serve_gateway
from pai_backend.config.gateway import GatewaySettings
from pai_backend.config.settings import Role
from pai_backend.listening import keep_port, kept_port
from pai_backend.parts import Parts, ReadyLine, RoleError
from pai_backend.roles.shared_port import join
from pai_backend.runtime_files import runtime_file

FIRST_PORT, PORTS_TRIED = 2222, 200


async def run(parts: Parts, ready: ReadyLine) -> None:
    """Serve until the process is told to end. Raises RoleError when no port can be had."""
    store = await parts.store_or_stop()
    if store is None:
        return
    settings, engine = parts.settings.gateway, parts.engine()
    kept, has_port = parts.settings.data_dir / "gateway.port", asyncio.Event()
    async with AsyncExitStack() as held:
        files = held.enter_context(ExitStack())
        counters = await _counters(parts, held)
        listener = await _shared(parts, files) if settings.processes > 1 else None

        def listening(host: str, port: int) -> None:
            has_port.set()
            if parts.life.copy == 1:
                keep_port(kept, port)
                facts = {"pid": os.getpid(), "host": host, "port": port}
                files.enter_context(runtime_file(parts.runtime("gateway.json"), facts))
            ready.role_is_ready(Role.GATEWAY)

        for port in _candidates(settings, kept_port(kept), parts.settings.data_dir):
            serving = serve_gateway(
                _options(settings, port),
                store,
                engine,
                parts.stop,
                listening,
                counters=counters,
                listener=listener,
                closed=files.close,
                hurry=parts.hurry,
            )
            try:
                return await serving
            except OSError as error:
                if has_port.is_set():
                    raise
                if settings.port or error.errno != errno.EADDRINUSE:
                    raise _no_port("port", settings.host, port, error) from None
    raise RoleError(f"gateway.port: no port from {FIRST_PORT} to {FIRST_PORT + PORTS_TRIED - 1} is free")


async def _counters(parts: Parts, held: AsyncExitStack) -> Counters:
    """The figures of this process, served where that is configured. Raises RoleError when their port cannot be had."""
    settings, counters, insight = parts.settings.gateway, Counters(), parts.engine().insight
    if insight is not None:
        counters.registry.register(insight.figures())
    if settings.metrics_port:
        port = settings.metrics_port + parts.life.copy - 1
        try:
            await held.enter_async_context(serve_figures(counters.registry, settings.metrics_host, port))
        except OSError as error:
            raise _no_port("metrics_port", settings.metrics_host, port, error) from None
    return counters


async def _shared(parts: Parts, files: ExitStack) -> socket.socket:
    """Our socket on the port that all processes of the gateway have. Raises RoleError."""
    settings = parts.settings.gateway
    try:
        return await asyncio.to_thread(join, settings.host, settings.port, parts.settings.data_dir / "runtime", files)
    except OSError as error:
        raise _no_port("port", settings.host, settings.port, error) from None


def _no_port(key: str, host: str, port: int, error: OSError) -> RoleError:
    # asyncio puts a sentence of its own where the system's word belongs, so ask the system.
    reason = os.strerror(error.errno) if error.errno else str(error)
    return RoleError(f"gateway.{key}: {host}:{port} cannot be had: {reason}")


def _candidates(settings: GatewaySettings, kept: int | None, data_dir: Path) -> Iterator[int]:
    """Ports to try in turn: the configured one alone; else the one kept, then all of the range.

    Where the range is entered depends on the data directory, so that the backends of several users on one
    machine do not wait for each other's port: one that is started while another's gateway is being
    restarted would take it, and the address would not last.
    """
    if settings.port:
        yield settings.port
        return
    if kept is not None:
        yield kept
    offset = zlib.crc32(os.fsencode(data_dir)) % PORTS_TRIED
    for step in range(PORTS_TRIED):
        yield FIRST_PORT + (offset + step) % PORTS_TRIED


def _options(settings: GatewaySettings, port: int) -> GatewayOptions:
    return GatewayOptions(
        host=settings.host,
        port=port,
        login_timeout_s=settings.login_timeout_s,
        keepalive_s=settings.keepalive_s,
        keepalive_count=settings.keepalive_count,
        max_unauthenticated=settings.max_unauthenticated,
        max_unauthenticated_per_source=settings.max_unauthenticated_per_source,
        max_auth_tries=settings.max_auth_tries,
        old_clients=settings.old_clients,
        max_logins_per_user=settings.max_logins_per_user,
        max_channels=settings.max_channels,
        wait_s=settings.wait_s,
        drain_s=settings.drain_s,
    )
