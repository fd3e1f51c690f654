"""The port of the SSH gateway: chosen once, taken by the process that starts the others, and never shared.

The supervisor takes it and lets the processes of the gateway inherit it, so that clients wait for a moment, and are
not refused, while one of them is started again. Standard library only.
"""

from __future__ import annotations

import errno
import os
import socket
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pai_backend.platform.listening import bind, keep_port, kept_port

FIRST_PORT, PORTS_TRIED = 2222, 200


class GatewayPortTaken(Exception):
    """The port cannot be taken; the message is one line that names the key."""


def take(gateway: Mapping[str, Any], data_dir: Path) -> list[socket.socket]:
    """Listening sockets on the gateway's port, one for each of its processes.

    ``gateway`` has the keys ``host``, ``port`` and ``processes``, as configured. A port that was chosen is remembered
    in ``data_dir``. Raises GatewayPortTaken.
    """
    host, configured, copies = str(gateway["host"]), int(gateway["port"]), int(gateway["processes"])
    kept = data_dir / "gateway.port"
    for port in candidates(configured, kept_port(kept), data_dir):
        try:
            listeners = bind_together(host, port, copies)
        except OSError as error:
            if configured or error.errno != errno.EADDRINUSE:
                raise no_port("port", host, port, error) from None
            continue
        keep_port(kept, port)
        return listeners
    raise GatewayPortTaken(f"gateway.port: no port from {FIRST_PORT} to {FIRST_PORT + PORTS_TRIED - 1} is free")


def bind_together(host: str, port: int, copies: int) -> list[socket.socket]:
    """As many sockets that share a port, which the kernel spreads connections over. Raises OSError.

    With ``SO_REUSEPORT`` a port is shared with every socket of the same user that has it, so a second backend would
    silently get half of the logins. So the first socket takes the port for itself alone, which fails where anybody
    listens, and lets others in only once it listens: of two that have both bound the port by now, one cannot listen.
    """
    listeners = [bind(host, port)]
    try:
        if copies > 1:
            listeners[0].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        while len(listeners) < copies:
            listeners.append(bind(host, port, shared=True))
    except OSError:
        for listener in listeners:
            listener.close()
        raise
    return listeners


def candidates(configured: int, kept: int | None, data_dir: Path) -> Iterator[int]:
    """Ports to try in turn: the configured one alone; else the one kept, then all of the range.

    Where the range is entered depends on the data directory, so that the backends of several users on one
    machine do not wait for each other's port: one that is started while another is being restarted would take
    it, and the address would not last.
    """
    if configured:
        yield configured
        return
    if kept is not None:
        yield kept
    offset = zlib.crc32(os.fsencode(data_dir)) % PORTS_TRIED
    for step in range(PORTS_TRIED):
        yield FIRST_PORT + (offset + step) % PORTS_TRIED


def no_port(key: str, host: str, port: int, error: OSError) -> GatewayPortTaken:
    """The error for a port that cannot be taken, in the system's words."""
    return GatewayPortTaken(
        f"gateway.{key}: cannot listen on {host}:{port}: {os.strerror(error.errno or errno.EADDRNOTAVAIL)}"
    )
