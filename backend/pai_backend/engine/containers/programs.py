"""Calling Podman, for what is done beside the shims of tasks, and what it takes from this process.

:class:`Podman` blocks: call it in a thread.
"""

from __future__ import annotations

import logging
import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from pai_backend.engine.base import EngineError

log = logging.getLogger(__name__)

PID_MAX: Final = Path("/proc/sys/kernel/pid_max")
LIMIT_S: Final = 60.0
"""Of a call. Podman waits for locks of its own, also of calls that others make."""

NAMES: Final = frozenset(
    {
        *("PATH", "HOME", "XDG_RUNTIME_DIR", "TMPDIR", "REGISTRY_AUTH_FILE"),
        *("CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF", "CONTAINERS_REGISTRIES_CONF"),
        *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
    }
)
"""What Podman reads of the backend's environment. Source: podman(1), containers.conf(5)."""


def podman_environment(source: Mapping[str, str]) -> dict[str, str]:
    """The environment that Podman is called in."""
    own = {name: value for name, value in source.items() if name in NAMES}
    return {"PATH": os.defpath, **own, "PODMAN_IGNORE_CGROUPSV1_WARNING": "1"}


def own_limits() -> tuple[int, int]:
    """How many files a process of a container may have open, and threads its account: what Podman itself may have.

    It lowers the second to the machine's ``pid_max`` (tried with 4.3.1), and cannot raise it again without rights.
    """
    files, threads = (resource.getrlimit(each)[1] for each in (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC))
    most = int(PID_MAX.read_text("ascii"))
    return files, most if threads == resource.RLIM_INFINITY else min(threads, most)


class Podman:
    """The program by its name or path."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def path(self) -> str:
        """Where it is. Raises EngineError when it is not there."""
        found = shutil.which(self.name)
        if found is None:
            raise EngineError(f"containers.podman: {self.name} is not here; install the package podman")
        return os.path.abspath(found)

    def do(self, words: Sequence[str], limit_s: float = LIMIT_S) -> str:
        """What it prints. Raises EngineError, with the last line of what it said, when it fails."""
        try:
            done = subprocess.run(
                [self.path, *words],
                env=podman_environment(os.environ),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=limit_s,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise EngineError(f"podman {words[0]} failed: {error}") from error
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip().splitlines() or ["it said nothing"]
            raise EngineError(f"podman {words[0]} failed: {said[-1]}")
        return done.stdout.decode(errors="replace")

    def begin(self, words: Sequence[str]) -> Callable[[], bool]:
        """Start it; what is returned says whether it succeeded, once it has ended. Both raise EngineError."""
        try:
            started = subprocess.Popen(
                [self.path, *words],
                env=podman_environment(os.environ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        except OSError as error:
            raise EngineError(f"podman {words[0]} failed: {error}") from error

        def succeeded() -> bool:
            try:
                return started.wait(LIMIT_S) == 0
            except subprocess.TimeoutExpired as error:
                started.kill()
                started.wait()
                raise EngineError(f"podman {words[0]} failed: {error}") from error

        return succeeded

    def ask(self, words: Sequence[str]) -> str | None:
        """The same; None when it fails, which is logged."""
        try:
            return self.do(words)
        except EngineError as error:
            log.info("%s", error)
            return None
