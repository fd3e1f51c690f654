"""Ports of loopback for what a test starts later, and may stop and start again."""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from contextlib import ExitStack
from pathlib import Path

FIRST, LAST = 10_240, 14_999
"""Below what systems give to outgoing connections (Linux from 32768, IANA from 49152), and below what tasks are leased.

A port of the former may be anybody's when the server comes to it; worse, a client which tries to reach a server that is
away can be given that very port as its own, is connected to itself, and the server never comes back.
"""

_held: list[ExitStack] = []


def free_ports(count: int) -> list[int]:
    """That many ports, one behind the other, without a listener.

    No other process which asks here is given them while this one lives.
    """
    locks = Path(tempfile.gettempdir()) / f"pai-test-ports-{os.getuid()}"
    locks.mkdir(mode=0o700, exist_ok=True)
    for first in random.sample(range(FIRST, LAST - count + 2), LAST - count + 2 - FIRST):
        ports = range(first, first + count)
        with ExitStack() as taken:
            if all(_take(taken, locks / str(port), port) for port in ports):
                _held.append(taken.pop_all())
                return list(ports)
    raise AssertionError(f"no {count} ports are free between {FIRST} and {LAST}")


def free_port() -> int:
    """One port of that kind."""
    return free_ports(1)[0]


def _take(taken: ExitStack, lock: Path, port: int) -> bool:
    held = taken.enter_context(lock.open("wb"))
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:  # another process of tests has it, or a program listens there
        return False
    return True
