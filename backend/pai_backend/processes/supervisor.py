"""The first process of a backend: it holds the locks, starts the others and starts them again when they die.

Standard library only and no framework: nothing in it may fail that can fail elsewhere. What its children need it
imports for them, once, and forks (:mod:`pai_backend.processes.forking`). ``pai_backend.__main__`` calls
:func:`supervise`, or runs ``python -m pai_backend.processes.supervisor --settings-fd N``.

How the processes hold together:

- ``backend.lock`` is held by the supervisor alone: a second ``serve`` sees it and says so.
- ``runtime/processes.lock`` is one open file shared with every child, which closes it when it has released all that a
  successor needs: the next supervisor waits on it until the last child has released it or ended, so that two
  generations never share ports or tasks, and waits for no login.
- The *lifeline* is a pipe that only the supervisor can write to. It never does; a child that reads its end
  knows that the supervisor is gone and ends by itself. That works after ``kill -9`` too.
- The port of the gateway is the supervisor's, and its children inherit it: clients wait while one is started again.
- ``SIGUSR2`` replaces the program by the one that is installed now, which starts children of its own; the old ones
  find their lifeline ended (:mod:`pai_backend.processes.generations`).
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pai_backend.platform import logs
from pai_backend.platform.disk_reserve import DiskReserve
from pai_backend.platform.runtime_files import runtime_file
from pai_backend.processes import forking
from pai_backend.processes.children import Child, children_of, modules_of, process_name
from pai_backend.processes.gateway_port import GatewayPortTaken, take
from pai_backend.processes.generations import (
    EXIT_CONFIG,
    EXIT_FAULT,
    EXIT_RUNNING,
    HEARD,
    ChildProcess,
    Legacy,
    SupervisorEnded,
    await_leftovers,
    keep_to_ourselves,
    newer_version,
    replace_program,
    take_lock,
)

__all__ = ["EXIT_CONFIG", "EXIT_FAULT", "EXIT_RUNNING", "Supervisor", "children_of", "process_name", "supervise"]

log = logging.getLogger("pai_backend.processes.supervisor")

DRAIN_S = 20.0  # after this the children that did not end are killed; those with logins have the drain besides
STEADY_S = 3.0  # who lived that long is started again at once
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 10.0


class Supervisor:
    """Keeps the configured processes running until it is told to end."""

    def __init__(
        self,
        settings: dict[str, Any],
        settings_fd: int,
        processes_lock: int,
        listeners: Sequence[socket.socket] = (),
        legacy: Legacy | None = None,
    ) -> None:
        self._children, self._modules = children_of(settings), modules_of(settings)
        self._version = legacy.version if legacy is not None else str(settings.get("version", ""))
        gateways = [child for child in self._children if "gateway" in child.roles]
        for child, listener in zip(gateways, listeners, strict=False):
            child.listener = listener
        log_dir, limit = settings.get("log_dir"), settings["log_file_bytes"]
        assert isinstance(limit, int)
        self._log_dir = Path(str(log_dir)) if log_dir is not None else None
        self._settings_fd, self._processes_lock = settings_fd, processes_lock
        self._lifeline_read, self._lifeline_write = os.pipe()
        self._wake_read, self._wake_write = os.pipe()
        self._selector = selectors.DefaultSelector()
        self._signals: list[int] = []
        self._former = [ChildProcess(pid) for pid in (legacy.children if legacy else ())]
        self._announced = legacy is not None

    def run(self, ready_fd: int | None, let_go: Callable[[], None], replace: Callable[[Sequence[int]], None]) -> None:
        """Start everything and stay until SIGTERM or SIGINT. Raises SupervisorEnded when the first start is refused.

        ``let_go`` is called when, told to end, all children have released what others need: a successor may begin.
        ``replace`` is called at SIGUSR2 with the children there are, and does not return unless the program cannot be
        replaced.
        """
        self._listen_to_signals()
        if forking.FORKS:
            forking.load(self._modules)
        if not self._asked_to_end():
            self._begin()
        try:
            while not self._asked_to_end():
                self._wait(self._until_restart())
                self._reap()
                self._begin()
                self._restart_due()
                self._announce(ready_fd)
                if signal.SIGUSR2 in self._signals:
                    self._signals = [number for number in self._signals if number != signal.SIGUSR2]
                    replace([process.pid for process in self._living()])
        finally:
            self._end_all(let_go)

    def _listen_to_signals(self) -> None:
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        for number in HEARD:
            signal.signal(number, lambda received, _frame: self._signals.append(received))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HEARD)
        self._selector.register(self._wake_read, selectors.EVENT_READ, None)

    def _asked_to_end(self) -> bool:
        return signal.SIGTERM in self._signals or signal.SIGINT in self._signals

    def _begin(self) -> None:
        """Start what was never started, as many at once as there are processors.

        More would only make the first, which users wait for, wait for the others.
        """
        for child in self._children:
            busy = sum(other.process is not None and other.ready is None for other in self._children)
            if child.born == 0.0 and busy < max(2, os.cpu_count() or 1):
                self._start(child)

    def _start(self, child: Child) -> None:
        """Start the child with its descriptors: settings, lifeline, where it says how it stands, lock, and port."""
        child.born, child.ready, child.restart_at, child.left = time.monotonic(), None, None, False
        child.heard.clear()
        read, write = os.pipe()
        descriptors = [self._settings_fd, self._lifeline_read, write, self._processes_lock]
        descriptors += [child.listener.fileno()] if child.listener is not None else []
        inherited = ",".join(map(str, descriptors))
        roles = ",".join(child.roles)
        arguments = ["--role", roles, "--inherited", inherited]
        arguments += ["--copy", str(child.copy)] if child.copy > 1 else []
        output = logs.open_log(self._log_dir / f"{child.name}.log") if self._log_dir is not None else None
        try:
            child.process = ChildProcess(self._beget(arguments, output, descriptors))
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

    def _beget(self, arguments: list[str], output: int | None, descriptors: Sequence[int]) -> int:
        """Make a process of these arguments and descriptors; gives its id. Raises OSError."""
        command = [sys.executable, "-P", "-m", "pai_backend", "serve", *arguments]
        if not forking.FORKS:
            return forking.spawn(command, output, descriptors)

        def run() -> int:
            from pai_backend.processes.app import run_inherited

            return run_inherited(arguments, self._version)

        return forking.fork(run, f"pai_backend serve {' '.join(arguments)}", output, descriptors)

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
        """Take what a child says on its pipe, a line of JSON each: that it is ready or why not; that it is leaving."""
        assert child.ready_fd is not None
        text = os.read(child.ready_fd, 65536)
        child.heard += text
        *lines, rest = bytes(child.heard).split(b"\n")
        child.heard[:] = rest
        for said in map(json.loads, lines):
            if "leaving" in said:
                child.left = True
            else:
                child.ready = said
        if not text:
            self._forget_pipe(child)

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
            if child.process is None:
                continue
            if child.process.poll() is None:
                if child.left:
                    self._follow(child)
                continue
            code = child.process.returncode
            while child.ready_fd is not None:  # the writer is gone, so this ends
                self._hear(child)
            if code == EXIT_CONFIG and not self._announced:
                reason = (child.ready or {}).get("error", f"{child.name} refused its configuration")
                raise SupervisorEnded(EXIT_CONFIG, str(reason))
            how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
            log.warning("%s (pid %d) %s", child.name, child.process.pid, how)
            child.process = None
            self._plan_restart(child)
        self._former = [process for process in self._former if process.poll() is None]

    def _follow(self, child: Child) -> None:
        """Plan another process in the place of one that another process has asked to end and that has logins yet."""
        assert child.process is not None
        log.warning("%s (pid %d) is leaving", child.name, child.process.pid)
        self._former.append(child.process)
        self._forget_pipe(child)
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
        """Once all have said that they are ready, say so to the process that started us."""
        if self._announced or not all(child.is_ready for child in self._children):
            return
        self._announced = True
        log.info("all processes are ready")
        if ready_fd is not None:
            url = next((child.ready["url"] for child in self._children if child.ready and "url" in child.ready), None)
            os.write(ready_fd, json.dumps({"url": url, "pid": os.getpid()}).encode() + b"\n")
            os.close(ready_fd)

    def _end_all(self, let_go: Callable[[], None]) -> None:
        """TERM to all, wait, KILL to those that stay. A second signal from outside shortens the wait.

        The node's agent goes on by itself as long as logins of a gateway go through it.
        """
        self._signals.clear()
        for child in self._children:
            if child.listener is not None:
                child.listener.close()
        os.close(self._processes_lock)
        for process in self._living():
            process.send_signal(signal.SIGTERM)
        deadline, held = (
            time.monotonic() + DRAIN_S + max((child.drain_s for child in self._children), default=0.0),
            True,
        )
        while self._living() and time.monotonic() < deadline and not self._asked_to_end():
            self._wait(max(0.0, deadline - time.monotonic()))
            if held and not any(_lives(child.process) and not child.left for child in self._children):
                let_go()
                held = False
        for process in self._living():
            log.warning("pid %d did not end in time and is killed", process.pid)
            process.kill()
            process.wait()

    def _living(self) -> list[ChildProcess]:
        """All processes of ours that have not ended, those that others have followed among them."""
        present = [child.process for child in self._children if child.process is not None]
        return [process for process in (*present, *self._former) if _lives(process)]


def _lives(process: ChildProcess | None) -> bool:
    return process is not None and process.poll() is None


def supervise(settings_fd: int, ready_fd: int | None, legacy: Legacy | None = None) -> int:
    """Run the backend described by the JSON in ``settings_fd``; returns the exit code."""
    keep_to_ourselves([each for each in (settings_fd, ready_fd) if each is not None])
    if legacy is not None:
        keep_to_ourselves((legacy.lock, *legacy.listeners))
    settings = json.loads(os.pread(settings_fd, os.fstat(settings_fd).st_size, 0))
    data_dir = Path(settings["data_dir"])
    version = legacy.version if legacy is not None else settings["version"]
    terminal = os.dup(2)
    try:
        DiskReserve(data_dir, 0).release_if_full()
        lock = legacy.lock if legacy is not None else take_lock(data_dir)
        log_file = Path(settings["log_dir"]) / "supervisor.log" if settings.get("log_dir") else None
        if log_file is not None:
            logs.redirect(log_file)
        as_json = settings.get("log_format") == "json"  # an earlier program that is replaced has not the key
        logs.configure(settings["log_level"], log_file, settings["log_file_bytes"], as_json=as_json)
        processes_lock = await_leftovers(data_dir)
        listeners = _listeners(settings, data_dir, legacy)
        facts = {"pid": os.getpid(), "started": datetime.now(UTC).isoformat(), "version": version}
        with ExitStack() as held:
            held.callback(os.close, lock)
            held.enter_context(runtime_file(data_dir / "runtime" / "supervisor.json", facts))

            def replace(children: Sequence[int]) -> None:
                _replace(settings_fd, lock, listeners, children)

            Supervisor(settings, settings_fd, processes_lock, listeners, legacy).run(ready_fd, held.close, replace)
    except SupervisorEnded as end:
        os.write(terminal, f"pai_backend: {end.words}\n".encode())
        return end.code
    except GatewayPortTaken as error:
        os.write(terminal, f"pai_backend: {error}\n".encode())
        return EXIT_CONFIG
    except OSError as error:
        os.write(terminal, f"pai_backend: {error.filename or data_dir}: {error.strerror}\n".encode())
        return EXIT_FAULT
    return 0


def _listeners(settings: dict[str, Any], data_dir: Path, legacy: Legacy | None) -> list[socket.socket]:
    """The gateway's port, if this backend has a gateway: taken, or left to us. Raises GatewayPortTaken."""
    if legacy is not None:
        return [socket.socket(fileno=descriptor) for descriptor in legacy.listeners]
    gateway = any("gateway" in roles for roles in settings["processes"])
    return take(settings["gateway"], data_dir) if gateway else []


def _replace(settings_fd: int, lock: int, listeners: Sequence[socket.socket], children: Sequence[int]) -> None:
    """Go on as the program that is installed now; when that cannot be, say why and stay as we are."""
    ports = tuple(listener.fileno() for listener in listeners)
    try:
        legacy = Legacy(lock, ports, tuple(children), newer_version(settings_fd))
        log.info("the program is replaced by version %s", legacy.version)
        replace_program(settings_fd, legacy)
    except SupervisorEnded as end:
        log.error("the program is not replaced: %s", end.words)
    except OSError as error:
        log.error("the program is not replaced: %s", error.strerror)
        keep_to_ourselves((settings_fd, lock, *ports))


def main() -> int:
    """Entry of the process; descriptors are inherited from ``pai_backend.__main__``, or from this very process."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--settings-fd", type=int, required=True)
    parser.add_argument("--ready-fd", type=int)
    parser.add_argument("--legacy", type=Legacy.read)
    arguments = parser.parse_args()
    return supervise(arguments.settings_fd, arguments.ready_fd, arguments.legacy)


if __name__ == "__main__":
    sys.exit(main())
