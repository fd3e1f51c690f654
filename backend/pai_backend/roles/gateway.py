"""The SSH gateway: takes its port, or finds one, and says where it is."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from pai_backend.access.gateway.options import GatewayOptions
from pai_backend.access.gateway.server import serve_gateway
from pai_backend.config.gateway import GatewaySettings
from pai_backend.config.settings import Role
from pai_backend.listening import keep_port, kept_port
from pai_backend.parts import Parts, ReadyLine, RoleError
from pai_backend.runtime_files import runtime_file

FIRST_PORT, PORTS_TRIED = 2222, 200
SUPERVISED_DRAIN_S = 10.0  # with the time to close it is less than what the supervisor waits


async def run(parts: Parts, ready: ReadyLine) -> None:
    """Serve until the process is told to end. Raises RoleError when no port can be had."""
    settings = parts.settings.gateway
    store = await parts.store_or_stop()
    if store is None:
        return
    kept, has_port = parts.settings.data_dir / "gateway.port", asyncio.Event()
    with ExitStack() as files:
        hold = await _hold(parts, files) if settings.processes > 1 else None

        def listening(host: str, port: int) -> None:
            has_port.set()
            if hold is not None:
                fcntl.flock(hold, fcntl.LOCK_SH)
            if parts.life.copy == 1:
                keep_port(kept, port)
                facts = {"pid": os.getpid(), "host": host, "port": port}
                files.enter_context(runtime_file(parts.runtime("gateway.json"), facts))
            ready.role_is_ready(Role.GATEWAY)

        for port in _candidates(settings, kept_port(kept), parts.settings.data_dir):
            try:
                return await serve_gateway(
                    _options(settings, port, supervised=parts.life.supervised),
                    store,
                    parts.engine(),
                    parts.stop,
                    listening,
                )
            except OSError as error:
                if has_port.is_set():
                    raise
                if settings.port or error.errno != errno.EADDRINUSE:
                    # asyncio puts a sentence of its own where the system's word belongs, so ask the system.
                    reason = os.strerror(error.errno) if error.errno else str(error)
                    raise RoleError(f"gateway.port: {settings.host}:{port} cannot be had: {reason}") from None
    raise RoleError(f"gateway.port: no port from {FIRST_PORT} to {FIRST_PORT + PORTS_TRIED - 1} is free")


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


async def _hold(parts: Parts, files: ExitStack) -> int:
    """Take part in the port with the other processes of this gateway, and keep other backends off it.

    Sockets that share a port share it with all of the same user, so the first process of a gateway looks whether
    the port is free, and the others come after it. Raises RoleError when another backend has the port.
    """
    settings, lock = parts.settings.gateway, parts.runtime("gateway.lock")
    lock.parent.mkdir(exist_ok=True, mode=0o700)
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    files.callback(os.close, descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        await asyncio.to_thread(fcntl.flock, descriptor, fcntl.LOCK_SH)
        return descriptor
    loop = asyncio.get_running_loop()
    try:
        probe = await loop.create_server(asyncio.Protocol, settings.host, settings.port)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise RoleError(f"gateway.port: {settings.host}:{settings.port} cannot be had: {reason}") from None
    probe.close()
    await probe.wait_closed()
    return descriptor


def _options(settings: GatewaySettings, port: int, *, supervised: bool) -> GatewayOptions:
    return GatewayOptions(
        host=settings.host,
        port=port,
        login_timeout_s=settings.login_timeout_s,
        keepalive_s=settings.keepalive_s,
        keepalive_count=settings.keepalive_count,
        max_unauthenticated=settings.max_unauthenticated,
        max_unauthenticated_per_source=settings.max_unauthenticated_per_source,
        max_auth_tries=settings.max_auth_tries,
        max_logins_per_user=settings.max_logins_per_user,
        max_channels=settings.max_channels,
        wait_s=settings.wait_s,
        drain_s=min(settings.drain_s, SUPERVISED_DRAIN_S) if supervised else settings.drain_s,
        shares_port=settings.processes > 1,
    )
