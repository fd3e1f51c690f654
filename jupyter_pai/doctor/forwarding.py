"""VS Code's way into a task: a script on the input of one connection that forwards ports, and a second connection.

Ports are tried with real bytes and without a program in the task: the task is asked to listen for us (``-R``),
and the listener is then connected to from here through the SOCKS port (``-D``). What arrives has passed both
directions, as a debugger's connections do.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from typing import IO

from jupyter_pai.doctor.outcome import Probe, StepOutcome
from jupyter_pai.doctor.running import LIMIT_S, OpenSshRoute, ProgramExit, kill

PAYLOAD_BYTES = 128 * 1024
LOOPBACK = "127.0.0.1"
_LISTENING = re.compile(r"Allocated port (\d+) for remote forward|remote port forwarding failed")
_OPEN_FAILED = re.compile(r"open failed: (.*)")

SCRIPT = 'printf "pai-up\\n"; [ -z "%(place)s" ] || printf %%s "%(token)s" >"%(place)s/token"; printf "pai-ready\\n"\n'


class _Lines:
    """What a program prints, gathered line by line in a thread of its own."""

    def __init__(self, stream: IO[bytes] | None) -> None:
        assert stream is not None
        self._stream = stream
        self._changed = threading.Condition()
        self._lines: list[str] = []
        self._ended = False
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Wait for the end of the stream; its program has been ended."""
        self._thread.join()

    def _read(self) -> None:
        for line in self._stream:
            with self._changed:
                self._lines.append(line.decode(errors="replace").rstrip("\r\n"))
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def first(self, pattern: re.Pattern[str], limit_s: float) -> re.Match[str] | None:
        """The first line in which the pattern is found; None when none comes in time, or none any more."""
        deadline = time.monotonic() + limit_s
        with self._changed:
            while True:
                found = next((match for line in self._lines if (match := pattern.search(line))), None)
                remaining = deadline - time.monotonic()
                if found or self._ended or remaining <= 0:
                    return found
                self._changed.wait(remaining)

    @property
    def text(self) -> bytes:
        """All lines so far."""
        with self._changed:
            return "\n".join(self._lines).encode()


@contextlib.contextmanager
def _echo() -> Iterator[int]:
    """A port of this machine that sends back what it gets."""
    with socket.create_server((LOOPBACK, 0)) as listener:
        threading.Thread(target=_serve, args=(listener,), daemon=True).start()
        yield listener.getsockname()[1]
        with contextlib.suppress(OSError):  # macOS calls a listener unconnected; there, closing wakes accept()
            listener.shutdown(socket.SHUT_RDWR)


def _serve(listener: socket.socket) -> None:
    with contextlib.suppress(OSError):  # the listener was closed, or the other side went away
        while True:
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(LIMIT_S)
                while data := connection.recv(65536):
                    connection.sendall(data)


def _free_port() -> int:
    """A port that was free a moment ago: ``ssh -D`` can choose none itself."""
    with socket.create_server((LOOPBACK, 0)) as listener:
        return int(listener.getsockname()[1])


def two_connections(way: OpenSshRoute, place: str) -> Mapping[Probe, StepOutcome]:
    """Replay VS Code's connections; ``place`` is a directory in the task, or empty."""
    token, socks = secrets.token_hex(16), _free_port()
    with _echo() as echo:
        command = way.ssh("-T", "-D", f"{LOOPBACK}:{socks}", "-R", f"0:{LOOPBACK}:{echo}", way.alias, "bash")
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
            )
        except OSError as error:
            outcome = StepOutcome(False, f"ssh cannot be run here: {error.strerror}")
            return dict.fromkeys((Probe.TWO_CONNECTIONS, Probe.INTO_TASK, Probe.OUT_OF_TASK), outcome)
        with process:
            assert process.stdin is not None
            out, err = _Lines(process.stdout), _Lines(process.stderr)
            try:
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.write((SCRIPT % {"place": place, "token": token}).encode())
                    process.stdin.flush()
                return _outcomes(way, place, token, socks, out, err)
            finally:
                kill(process)
                out.finish()
                err.finish()


def _outcomes(
    way: OpenSshRoute, place: str, token: str, socks: int, out: _Lines, err: _Lines
) -> Mapping[Probe, StepOutcome]:
    if out.first(re.compile("^pai-ready$"), LIMIT_S) is None:
        outcome = StepOutcome(False, ProgramExit(1, err=err.text).complaint)
        return dict.fromkeys((Probe.TWO_CONNECTIONS, Probe.INTO_TASK, Probe.OUT_OF_TASK), outcome)
    listening = err.first(_LISTENING, LIMIT_S)
    port = int(listening[1]) if listening and listening[1] else None
    into = _through(socks, port, err)
    if port is None:
        back = StepOutcome(False, "The task's SSH server does not listen for a client.")
    elif into.worked:
        back = StepOutcome(True)
    else:
        back = StepOutcome(None, "It listens for a client, but nothing could be sent there to try it.")
    return {Probe.TWO_CONNECTIONS: _second(way, place, token), Probe.INTO_TASK: into, Probe.OUT_OF_TASK: back}


def _second(way: OpenSshRoute, place: str, token: str) -> StepOutcome:
    """Another connection while the first is open: it must be in the same task."""
    if not place:
        return StepOutcome(None, "No file can be written in the task.")
    ran = way.execute(f'cat "{place}/token"')
    return StepOutcome(True) if ran.out == token.encode() else StepOutcome(False, ran.complaint)


def _through(socks: int, port: int | None, err: _Lines) -> StepOutcome:
    """Bytes through the SOCKS port to the task's listener and back; without one, whether a connection is let through.

    A refusal by a port without a listener is a connection that was let through.
    """
    data = secrets.token_bytes(PAYLOAD_BYTES)
    try:
        with socket.create_connection((LOOPBACK, socks), timeout=LIMIT_S) as connection:
            _ask_socks(connection, port or 1)
            if port is not None:
                threading.Thread(target=_send, args=(connection, data), daemon=True).start()
                return (
                    StepOutcome(True)
                    if _received(connection, len(data)) == data
                    else StepOutcome(False, "Bytes were lost.")
                )
    except OSError as error:
        failure = err.first(_OPEN_FAILED, 1.0)
        if port is None and failure and "prohibited" not in failure[1]:
            return StepOutcome(True)
        return StepOutcome(False, failure[1] if failure else str(error))
    return StepOutcome(True)


def _ask_socks(connection: socket.socket, port: int) -> None:
    """Connect to the task's loopback (RFC 1928, without authentication). Raises OSError when it is refused."""
    connection.sendall(b"\x05\x01\x00")
    _exactly(connection, 2)
    connection.sendall(b"\x05\x01\x00\x01" + socket.inet_aton(LOOPBACK) + port.to_bytes(2, "big"))
    answer = _exactly(connection, 10)
    if answer[1] != 0:
        raise ConnectionRefusedError("the connection into the task was refused")


def _exactly(connection: socket.socket, count: int) -> bytes:
    data = _received(connection, count)
    if len(data) < count:
        raise ConnectionResetError("the connection into the task was closed")
    return data


def _received(connection: socket.socket, count: int) -> bytes:
    parts, missing = [], count
    while missing and (part := connection.recv(min(missing, 65536))):
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def _send(connection: socket.socket, data: bytes) -> None:
    with contextlib.suppress(OSError):  # the reader of the answer sees that it is not whole
        connection.sendall(data)
