"""The first process of a backend: it holds the locks, starts the others and starts them again when they die.

Standard library only and no framework, because it must be small, and nothing in it may fail that can fail
elsewhere. Run by ``pai_backend.__main__`` as ``python -m pai_backend.supervisor --settings-fd N``.

How the processes hold together:

- ``backend.lock`` is held by the supervisor alone: a second ``serve`` sees it and says so.
- ``runtime/processes.lock`` is one open file shared with every child: after the supervisor was killed, the
  next one waits on it until the last child has ended, so that two generations never share ports or tasks.
- The *lifeline* is a pipe that only the supervisor can write to. It never does; a child that reads its end
  knows that the supervisor is gone and ends by itself. That works after ``kill -9`` too.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import logging
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from pai_backend import logs
from pai_backend.runtime_files import runtime_file

log = logging.getLogger("pai_backend.supervisor")

EXIT_FAULT, EXIT_CONFIG, EXIT_RUNNING = 1, 2, 3
DRAIN_S = 20.0  # after this the children that did not end are killed; those of a gateway have its drain besides
LEFTOVERS_S = 40  # children of a killed supervisor end within a deadline of their own, which is shorter
STEADY_S = 3.0  # who lived that long is started again at once
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 10.0


@dataclass
class Child:
    """One process of the backend: what it runs, and its present life."""

    name: str
    roles: Sequence[str]
    copy: int = 1
    drain_s: float = 0.0
    process: subprocess.Popen[bytes] | None = None
    ready_fd: int | None = None
    ready: dict[str, object] | None = None
    born: float = 0.0
    short_lives: int = 0
    restart_at: float | None = None
    heard: bytearray = field(default_factory=bytearray)

    @property
    def is_ready(self) -> bool:
        """Whether it has said that all its roles answer; the reason why they never will is said the same way."""
        return self.ready is not None and "error" not in self.ready


class Ended(Exception):
    """The supervisor must end now with this exit code and these last words."""

    def __init__(self, code: int, words: str = "") -> None:
        super().__init__(words)
        self.code, self.words = code, words


def process_name(roles: Sequence[str], copy: int = 1) -> str:
    """Name of a process in logs: ``core`` is the one with the API or the controller. A second copy has its number."""
    name = "core" if {"api", "controller"} & set(roles) else "-".join(roles)
    return name if copy == 1 else f"{name}-{copy}"


def children_of(settings: dict[str, Any]) -> list[Child]:
    """The processes of these settings: one a group of roles, and as many of the gateway as it is to have."""
    gateway = settings.get("gateway", {})
    copies, drain_s = gateway.get("processes", 1), gateway.get("drain_s", 0.0)
    return [
        Child(process_name(roles, copy), roles, copy, drain_s if "gateway" in roles else 0.0)
        for roles in settings["processes"]
        for copy in range(1, (copies if "gateway" in roles else 1) + 1)
    ]


def take_lock(data_dir: Path) -> int:
    """Hold ``backend.lock``. Raises Ended when another backend has this data directory."""
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = data_dir / "backend.lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pid = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "not yet known"
        os.close(descriptor)
        raise Ended(EXIT_RUNNING, f"a backend is running already in {data_dir} (pid {pid})") from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor


def await_leftovers(data_dir: Path) -> int:
    """Hold ``runtime/processes.lock``, once the children of an earlier supervisor have ended.

    Raises Ended when they do not end in time.
    """
    (data_dir / "runtime").mkdir(exist_ok=True, mode=0o700)
    descriptor = os.open(data_dir / "runtime" / "processes.lock", os.O_RDWR | os.O_CREAT, 0o600)

    def give_up(_number: int, _frame: FrameType | None) -> NoReturn:
        raise Ended(EXIT_FAULT, f"processes of an earlier backend in {data_dir} do not end; stop them and try again")

    previous = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(LEFTOVERS_S)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)
    return descriptor


class Supervisor:
    """Keeps the configured processes running until it is told to end."""

    def __init__(self, settings: dict[str, Any], settings_fd: int, processes_lock: int) -> None:
        self._children = children_of(settings)
        log_dir, limit = settings.get("log_dir"), settings["log_file_bytes"]
        assert isinstance(limit, int)
        self._log_dir = Path(str(log_dir)) if log_dir is not None else None
        self._settings_fd, self._processes_lock = settings_fd, processes_lock
        self._lifeline_read, self._lifeline_write = os.pipe()
        self._wake_read, self._wake_write = os.pipe()
        self._selector = selectors.DefaultSelector()
        self._signals: list[int] = []
        self._announced = False

    def run(self, ready_fd: int | None) -> None:
        """Start everything and stay until SIGTERM or SIGINT. Raises Ended when the first start is refused."""
        self._listen_to_signals()
        self._begin()
        try:
            while not self._asked_to_end():
                self._wait(self._until_restart())
                self._reap()
                self._begin()
                self._restart_due()
                self._announce(ready_fd)
        finally:
            self._end_all()

    def _listen_to_signals(self) -> None:
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, lambda received, _frame: self._signals.append(received))
        self._selector.register(self._wake_read, selectors.EVENT_READ, None)

    def _asked_to_end(self) -> bool:
        return signal.SIGTERM in self._signals or signal.SIGINT in self._signals

    def _begin(self) -> None:
        """Start what was never started, as many at once as there are processors.

        More would only make the first, which users wait for, wait for the others.
        """
        for child in self._children:
            busy = sum(other.ready_fd is not None for other in self._children)
            if child.born == 0.0 and busy < max(2, os.cpu_count() or 1):
                self._start(child)

    def _start(self, child: Child) -> None:
        """Start the child with its three descriptors: settings, lifeline, and where it says that it is ready."""
        child.born, child.ready, child.restart_at = time.monotonic(), None, None
        child.heard.clear()
        read, write = os.pipe()
        inherited = f"{self._settings_fd},{self._lifeline_read},{write}"
        roles = ",".join(child.roles)
        command = [sys.executable, "-P", "-m", "pai_backend", "serve", "--role", roles, "--inherited", inherited]
        command += ["--copy", str(child.copy)] if child.copy > 1 else []
        output = logs.open_log(self._log_dir / f"{child.name}.log") if self._log_dir is not None else None
        try:
            child.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(self._settings_fd, self._lifeline_read, write, self._processes_lock),
            )
        except OSError as error:
            os.close(read)
            log.error("%s cannot be started: %s", child.name, error.strerror)
            self._plan_restart(child)
            return
        finally:
            os.close(write)
            if output is not None:
                os.close(output)
        child.ready_fd = read
        self._selector.register(read, selectors.EVENT_READ, child)
        log.info("%s started (pid %d)", child.name, child.process.pid)

    def _until_restart(self) -> float | None:
        """Seconds until a restart is due; None when none is planned."""
        due = [child.restart_at for child in self._children if child.restart_at is not None]
        return max(0.0, min(due) - time.monotonic()) if due else None

    def _wait(self, timeout: float | None) -> None:
        for key, _events in self._selector.select(timeout):
            if key.data is None:
                os.read(self._wake_read, 4096)
            else:
                self._hear(key.data)

    def _hear(self, child: Child) -> None:
        """Take what a child says on its ready pipe: one line of JSON, then the end."""
        assert child.ready_fd is not None
        text = os.read(child.ready_fd, 65536)
        child.heard += text
        if text and not child.heard.endswith(b"\n"):
            return
        self._forget_pipe(child)
        if child.heard:
            child.ready = json.loads(bytes(child.heard))

    def _forget_pipe(self, child: Child) -> None:
        if child.ready_fd is not None:
            self._selector.unregister(child.ready_fd)
            os.close(child.ready_fd)
            child.ready_fd = None

    def _reap(self) -> None:
        """Notice children that have ended and plan their return.

        A child that refuses its configuration before the backend was ever complete ends everything, so that
        the mistake is seen by who made it; later the same refusal only means to try again.
        """
        for child in self._children:
            if child.process is None or child.process.poll() is None:
                continue
            code = child.process.returncode
            while child.ready_fd is not None:  # the writer is gone, so this ends
                self._hear(child)
            if code == EXIT_CONFIG and not self._announced:
                reason = (child.ready or {}).get("error", f"{child.name} refused its configuration")
                raise Ended(EXIT_CONFIG, str(reason))
            how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
            log.warning("%s (pid %d) %s", child.name, child.process.pid, how)
            child.process = None
            self._plan_restart(child)

    def _plan_restart(self, child: Child) -> None:
        now = time.monotonic()
        child.short_lives = 0 if now - child.born >= STEADY_S else child.short_lives + 1
        pause = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** (child.short_lives - 2)) if child.short_lives > 1 else 0.0
        child.restart_at = now + pause

    def _restart_due(self) -> None:
        now = time.monotonic()
        for child in self._children:
            if child.restart_at is not None and child.restart_at <= now and not self._asked_to_end():
                self._start(child)

    def _announce(self, ready_fd: int | None) -> None:
        """Once all have said that they are ready, say so to whoever started us."""
        if self._announced or not all(child.is_ready for child in self._children):
            return
        self._announced = True
        log.info("all processes are ready")
        if ready_fd is not None:
            url = next((child.ready["url"] for child in self._children if child.ready and "url" in child.ready), None)
            os.write(ready_fd, json.dumps({"url": url, "pid": os.getpid()}).encode() + b"\n")
            os.close(ready_fd)

    def _end_all(self) -> None:
        """TERM to all, wait, KILL to those that stay. A second signal from outside shortens the wait.

        The node's agent comes last: open logins of a gateway go through it to their end.
        """
        self._signals.clear()
        agents = [child for child in self._children if "agent" in child.roles and "gateway" not in child.roles]
        self._end([child for child in self._children if child not in agents])
        self._end(agents)

    def _end(self, children: Sequence[Child]) -> None:
        living = _living(children)
        for process in living:
            process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + DRAIN_S + max((child.drain_s for child in children), default=0.0)
        while living and time.monotonic() < deadline and not self._asked_to_end():
            self._wait(max(0.0, deadline - time.monotonic()))
            living = _living(children)
        for process in living:
            log.warning("pid %d did not end in time and is killed", process.pid)
            process.kill()
            process.wait()


def _living(children: Sequence[Child]) -> list[subprocess.Popen[bytes]]:
    """The processes of these children that have not ended."""
    return [child.process for child in children if child.process is not None and child.process.poll() is None]


def supervise(settings_fd: int, ready_fd: int | None) -> int:
    """Run the backend described by the JSON in ``settings_fd``; returns the exit code."""
    settings = json.loads(os.pread(settings_fd, os.fstat(settings_fd).st_size, 0))
    data_dir = Path(settings["data_dir"])
    terminal = os.dup(2)
    try:
        lock = take_lock(data_dir)
        log_file = Path(settings["log_dir"]) / "supervisor.log" if settings.get("log_dir") else None
        if log_file is not None:
            logs.redirect(log_file)
        logs.configure(settings["log_level"], log_file, settings["log_file_bytes"])
        processes_lock = await_leftovers(data_dir)
        facts = {"pid": os.getpid(), "started": datetime.now(UTC).isoformat(), "version": settings["version"]}
        with runtime_file(data_dir / "runtime" / "supervisor.json", facts):
            Supervisor(settings, settings_fd, processes_lock).run(ready_fd)
        os.close(lock)
    except Ended as end:
        os.write(terminal, f"pai_backend: {end.words}\n".encode())
        return end.code
    except OSError as error:
        os.write(terminal, f"pai_backend: {error.filename or data_dir}: {error.strerror}\n".encode())
        return EXIT_FAULT
    return 0


def main() -> int:
    """Entry of the process; both descriptors are inherited from ``pai_backend.__main__``."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--settings-fd", type=int, required=True)
    parser.add_argument("--ready-fd", type=int)
    arguments = parser.parse_args()
    for descriptor in (arguments.settings_fd, arguments.ready_fd):
        if descriptor is not None:
            os.set_inheritable(descriptor, False)
    return supervise(arguments.settings_fd, arguments.ready_fd)


if __name__ == "__main__":
    sys.exit(main())
