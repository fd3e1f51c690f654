"""How one generation of a backend's processes follows another: locks, and what a supervisor leaves to its successor.

A process that was asked to end gives up what a successor needs before it ends its logins, so that two generations share
neither ports nor tasks, and none waits for the other's logins. Standard library only.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn

EXIT_FAULT, EXIT_CONFIG, EXIT_RUNNING = 1, 2, 3
LEFTOVERS_S = 40  # children of a killed supervisor release within a deadline of their own, which is shorter
CHECK_S = 60.0  # how long a new program may take to say that it takes our settings
HEARD = (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGUSR2)
"""The signals that a supervisor acts on; held back while its program is replaced."""


class SupervisorEnded(Exception):
    """The supervisor must end now with this exit code and these last words."""

    def __init__(self, code: int, words: str = "") -> None:
        super().__init__(words)
        self.code, self.words = code, words


def take_lock(data_dir: Path) -> int:
    """Hold ``backend.lock``. Raises SupervisorEnded when another backend has this data directory."""
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = data_dir / "backend.lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pid = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "not yet known"
        os.close(descriptor)
        raise SupervisorEnded(EXIT_RUNNING, f"a backend is running already in {data_dir} (pid {pid})") from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor


def await_leftovers(data_dir: Path) -> int:
    """Hold ``runtime/processes.lock``, once the children of an earlier supervisor have released it or ended.

    Raises SupervisorEnded when they do neither in time.
    """
    (data_dir / "runtime").mkdir(exist_ok=True, mode=0o700)
    descriptor = os.open(data_dir / "runtime" / "processes.lock", os.O_RDWR | os.O_CREAT, 0o600)

    def give_up(_number: int, _frame: FrameType | None) -> NoReturn:
        raise SupervisorEnded(
            EXIT_FAULT, f"processes of an earlier backend in {data_dir} do not end; stop them and try again"
        )

    previous = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(LEFTOVERS_S)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)
    return descriptor


class ChildProcess:
    """A child by its id, also one of the program that was replaced in this process; has what is needed of ``Popen``."""

    def __init__(self, pid: int) -> None:
        self.pid, self.returncode = pid, 0
        self._ended = False

    def poll(self) -> int | None:
        """Its exit code, or the negative number of the signal that ended it; None while it lives."""
        return self._wait(os.WNOHANG)

    def wait(self) -> int:
        """Wait for its end, and say it."""
        self._wait(0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Signal it, if it lives; its process id is its own until its end was reported."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def _wait(self, options: int) -> int | None:
        if not self._ended:
            pid, status = os.waitpid(self.pid, options)
            if pid == 0:
                return None
            self._ended, self.returncode = True, os.waitstatus_to_exitcode(status)
        return self.returncode


@dataclass(frozen=True)
class Legacy:
    """What a supervisor whose program is replaced leaves to itself: open descriptors, children, and the new version."""

    lock: int
    listeners: tuple[int, ...]
    children: tuple[int, ...]
    version: str

    @classmethod
    def read(cls, text: str) -> Legacy:
        """What was written as an argument."""
        given = json.loads(text)
        return cls(given["lock"], tuple(given["listeners"]), tuple(given["children"]), given["version"])


def newer_version(settings_fd: int) -> str:
    """The version of the program that would follow. Raises SupervisorEnded when it cannot run with our settings."""
    command = [sys.executable, "-P", "-m", "pai_backend", "serve", "--check-inherited", str(settings_fd)]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=CHECK_S, pass_fds=(settings_fd,)
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SupervisorEnded(EXIT_FAULT, f"the installed program does not run: {type(error).__name__}") from None
    if done.returncode != 0:
        last = done.stderr.strip().rpartition("\n")[2]
        raise SupervisorEnded(done.returncode, f"the installed program does not take the configuration: {last}")
    return done.stdout.strip()


def replace_program(settings_fd: int, legacy: Legacy) -> NoReturn:
    """Run the program that is installed now in this process. Raises OSError.

    The lifeline of our children ends with the old program: they release what others need, and end their logins in their
    own time.
    """
    for descriptor in (settings_fd, legacy.lock, *legacy.listeners):
        os.set_inheritable(descriptor, True)
    command = [sys.executable, "-P", "-m", "pai_backend.processes.supervisor", "--settings-fd", str(settings_fd)]
    command += ["--legacy", json.dumps(asdict(legacy))]
    signal.pthread_sigmask(signal.SIG_BLOCK, HEARD)  # the new program would die of one before it listens
    try:
        os.execv(sys.executable, command)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HEARD)


def keep_to_ourselves(descriptors: Sequence[int]) -> None:
    """Let no child inherit these, but where it is named for it."""
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
