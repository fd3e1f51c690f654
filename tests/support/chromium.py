"""The system's Chromium for tests and pictures, and a network that does not change while it loads a page.

Chromium gives up the requests that wait for a connection whenever an address of the machine comes or goes
(`ERR_NETWORK_CHANGED`), those to 127.0.0.1 included: a page that JupyterLab shows then lacks a style sheet. Tests that
run nodes of Kubernetes beside it make and remove interfaces all the time.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

ARGUMENTS = ["--no-sandbox"]
"""Tests may run as root, where Chromium has no sandbox."""

CLONE_NEWNET = 0x40000000
"""unshare(2), setns(2): a network namespace."""

_OF_THIS_THREAD = "/proc/thread-self/ns/net"


def executable() -> str:
    """Where Chromium is. Raises FileNotFoundError with the package that brings it."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        raise FileNotFoundError("There is no Chromium on PATH; `apt-get install chromium` brings one.")
    return found


class OwnNetwork:
    """A network namespace with nothing but loopback, for servers, a browser and the test that asks them.

    Only root makes one. For others it is the network of the machine: they run no nodes of Kubernetes beside.
    """

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._inside: int | None = None
        if os.geteuid() == 0:
            outside = os.open(_OF_THIS_THREAD, os.O_RDONLY | os.O_CLOEXEC)
            self._require(self._libc.unshare(CLONE_NEWNET))
            try:
                subprocess.run(["ip", "link", "set", "lo", "up"], check=True, timeout=60)
                self._inside = os.open(_OF_THIS_THREAD, os.O_RDONLY | os.O_CLOEXEC)
            finally:
                self._go_to(outside)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Within the block, sockets and processes that this thread makes are in the network."""
        if self._inside is None:
            yield
            return
        before = os.open(_OF_THIS_THREAD, os.O_RDONLY | os.O_CLOEXEC)
        self._require(self._libc.setns(self._inside, CLONE_NEWNET))
        try:
            yield
        finally:
            self._go_to(before)

    def _go_to(self, namespace: int) -> None:
        self._require(self._libc.setns(namespace, CLONE_NEWNET))
        os.close(namespace)

    @staticmethod
    def _require(status: int) -> None:
        if status != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
