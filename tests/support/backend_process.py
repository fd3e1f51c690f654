"""A real backend in its own processes, started as a user would and stopped by process id."""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

from pai_backend.api.wire import MEDIA_TYPE
from tests.support.warm_start import WarmProcess

START_S = 180  # generous: the machine may be busy
NODES = '[{"name": "carol", "gpus": {"type": "TITANX", "count": 1}}]'


@dataclass
class Backend:
    """A started ``serve`` and what can be seen of it."""

    process: subprocess.Popen[bytes] | WarmProcess
    data_dir: Path
    url: str
    errors: Path

    @property
    def token(self) -> str:
        """The bearer token."""
        return (self.data_dir / "token").read_text().strip()

    def client(self) -> httpx.Client:
        """An HTTP client of the backend's user, which asks for our own shapes as the fronts do.

        It reads no list of authorities, which would take longer than most requests.
        """
        headers = {"Authorization": f"Bearer {self.token}", "Accept": MEDIA_TYPE}
        return httpx.Client(base_url=self.url, headers=headers, timeout=60, verify=False)

    def children(self) -> dict[str, psutil.Process]:
        """The processes by their roles; of one that is being replaced the new one, whose number may be the lower."""
        found = {}
        for child in sorted(psutil.Process(self.process.pid).children(), key=psutil.Process.create_time):
            with suppress(psutil.NoSuchProcess):  # ended, and perhaps not yet reaped
                if role := role_of(child):
                    found[role] = child
        return found

    def ready(self) -> bool:
        """Whether jobs can be taken and run now."""
        try:
            return httpx.get(f"{self.url}/readyz", timeout=5, verify=False).status_code == 200
        except httpx.TransportError:
            return False


def role_of(process: psutil.Process) -> str:
    """The roles of a process, as they are written; empty for one of another kind. Raises psutil.NoSuchProcess."""
    words = " ".join(process.cmdline()).split()
    return words[words.index("--role") + 1] if "--role" in words else ""


def command(data_dir: Path, *arguments: str, python: str = sys.executable) -> list[str]:
    """The command line of a backend with one simulated node; tasks find ``python`` and what lies beside it first."""
    serve = [python, "-P", "-m", "pai_backend", "serve", "--data-dir", str(data_dir)]
    return [*serve, "--engine-nodes", NODES, *arguments]


@contextmanager
def backend(
    data_dir: Path,
    arguments: Sequence[str] = (),
    env: dict[str, str] | None = None,
    python: str = sys.executable,
    *,
    whole: bool = True,
) -> Iterator[Backend]:
    """Start a backend, wait until it says that it is ready, and end it and all its children afterwards.

    One that is not ``whole`` has roles missing without which no job can run; it answers all the same.
    """
    errors = data_dir.parent / f"{data_dir.name}.stderr"
    process, read = _started(command(data_dir, *arguments, python=python), {**os.environ, **(env or {})}, errors)
    family: list[psutil.Process] = []
    try:
        readable, _, _ = select.select([read], [], [], START_S)
        assert readable, f"not ready: {errors.read_text()}"
        line = os.read(read, 4096)
        assert line, f"ended before it was ready: {errors.read_text()}"
        running = Backend(process, data_dir, json.loads(line)["url"], errors)
        if whole:
            until(running.ready)
        yield running
    finally:
        os.close(read)
        if process.poll() is None:
            family = psutil.Process(process.pid).children(recursive=True)
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for child in family:
            with suppress(psutil.NoSuchProcess):  # most have ended
                child.kill()


def _started(words: list[str], env: dict[str, str], errors: Path) -> tuple[subprocess.Popen[bytes] | WarmProcess, int]:
    """A process of this command, warm if it imports what we would, and the descriptor on which it says it is ready."""
    python, _, _, _, *arguments = words
    if python == sys.executable and env.get("PYTHONPATH") == os.environ.get("PYTHONPATH"):
        warm = WarmProcess(arguments, env, errors)
        return warm, os.dup(warm.ready.fileno())
    read, write = os.pipe()
    with errors.open("wb") as stderr:
        process = subprocess.Popen([*words, "--ready-fd", str(write)], pass_fds=[write], stderr=stderr, env=env)
    os.close(write)
    return process, read


def until(holds: Callable[[], bool], seconds: float = START_S) -> None:
    """Look until it holds. Fails when it does not in time."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"still not so after {seconds:.0f} s"
        time.sleep(0.02)


def is_free(lock: Path) -> bool:
    """Whether nobody holds this lock file."""
    with lock.open("r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def kill(process: psutil.Process) -> None:
    """``kill -9`` by process id."""
    os.kill(process.pid, signal.SIGKILL)
