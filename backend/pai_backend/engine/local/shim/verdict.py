"""How a command ended, in the words that are recorded. Nothing is claimed that was not seen."""

from __future__ import annotations

import _socket  # the ``socket`` module costs ten times as much, and each shim would keep it
import errno
import signal

from pai_backend.engine.local.layout import LOOPBACK
from pai_backend.engine.local.shim.launch import Launch

Verdict = tuple[str, str, str]
"""Reason, message, causer."""

_KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)  # of the command itself, or of the program that bash ran for it


class End:
    """What was seen of the end of a program.

    ``code`` is its exit status, minus the number of the signal that ended it; ``survivors`` counts what could
    not be killed; ``visited`` says whether SSH sessions were in the task.
    """

    def __init__(
        self,
        code: int,
        *,
        stopped: bool = False,
        capture_error: OSError | None = None,
        survivors: int = 0,
        visited: bool = False,
        oom_kills: int = 0,
    ) -> None:
        self.code = code
        self.stopped = stopped
        self.capture_error = capture_error
        self.survivors = survivors
        self.visited = visited
        self.oom_kills = oom_kills

    @property
    def failed(self) -> bool:
        """Whether it did not succeed, by itself."""
        return not self.stopped and (self.code != 0 or self.capture_error is not None)

    @property
    def how(self) -> str:
        """In a few words."""
        return f"exited with status {self.code}" if self.code >= 0 else f"ended by signal {_signal_name(-self.code)}"


def judge(end: End, launch: Launch) -> Verdict:
    """The verdict on a command."""
    reason, message, causer = _cause(end, launch)
    if end.survivors:
        message += f"; {end.survivors} of its processes could not be killed"
    return reason, message, causer


def _cause(end: End, launch: Launch) -> Verdict:
    if end.capture_error is not None:
        return broken_capture(end.capture_error)
    if end.stopped:
        return "stopped", f"stopped on request; {end.how}", "user"
    if end.code in _KILLED and end.oom_kills:
        return "out-of-memory", f"{end.how} while the kernel killed processes here for lack of memory", "user"
    if end.failed and not end.survivors and not end.visited and (taken := taken_port(launch.ports)):
        return "port-conflict", f"{end.how}; another program listens on its {taken}", "platform"
    return ("exited" if end.code >= 0 else "signalled"), end.how, "user"


def broken_capture(error: OSError) -> Verdict:
    """The verdict when output could not be kept."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "disk-full", "the disk became full while its output was written; make room and retry", "resource"
    if error.errno == errno.ENOENT:
        return "vanished", "the task's directory was removed while it ran", "platform"
    return "lost", f"its output could not be written: {error.strerror}", "platform"


def taken_port(ports: dict[str, tuple[int, ...]]) -> str:
    """A port of the task that somebody listens on although nothing of the task is left; empty when there is none."""
    for label, numbers in ports.items():
        for port in numbers:
            if _listened_on(port):
                return f"port {port} ({label})"
    return ""


def _listened_on(port: int) -> bool:
    return any(not _bindable(address, port) for address in ("0.0.0.0", LOOPBACK))  # macOS tells them apart


def _bindable(address: str, port: int) -> bool:
    probe = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    try:
        probe.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)  # as servers do: TIME_WAIT is free
        probe.bind((address, port))
    except OSError as exc:
        return exc.errno != errno.EADDRINUSE
    finally:
        probe.close()
    return True


def _signal_name(number: int) -> str:
    try:
        return f"{number} ({signal.Signals(number).name})"
    except ValueError:  # a real-time signal has no name
        return str(number)
