"""Carries out one request: finds or starts the holder of a session, and passes the client on to it."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import stat
from contextlib import suppress

from pai_backend.engine.local.terminals.frames import (
    ERROR,
    HEAD_BYTES,
    LIST,
    NAME,
    REQUEST,
    REQUEST_BYTES,
    Request,
    TerminalRefused,
    head,
    json_frame,
)
from pai_backend.engine.local.terminals.holder import MOST_CLIENTS, STALLED_S, TerminalHolder

MOST_SESSIONS = 32  # of one user in one task
_LOCK = ".lock"


def _enter_folder(root: str, owner: str) -> None:
    """Go to the folder of a user's sessions, which no other account can read. Raises OSError, Refused."""
    for folder in (root, owner):
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        about = os.lstat(folder)
        if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid() or about.st_mode & 0o077:
            raise TerminalRefused(
                "unsafe", f"The folder {folder} of terminals belongs to another account or is open to others."
            )
        os.chdir(folder)


def _connected(name: str) -> socket.socket | None:
    """A connection to the holder of a session; None when there is none. Raises OSError."""
    holder = socket.socket(socket.AF_UNIX)
    try:
        holder.connect(name)
    except (FileNotFoundError, ConnectionRefusedError):
        holder.close()
        return None
    return holder


def _sessions() -> list[str]:
    return [name for name in sorted(os.listdir(".")) if NAME.fullmatch(name) and stat.S_ISSOCK(os.lstat(name).st_mode)]


def _find(request: Request, program: list[str], home: int) -> socket.socket:
    """A connection to the session's holder, which is started where there is none. Raises OSError, Refused."""
    lock = _lock()
    try:
        found = _connected(request.name)
        if found is not None:
            return found
        with suppress(FileNotFoundError):
            os.unlink(request.name)
        if not request.may_start or request.action == "end":
            raise TerminalRefused("gone", f"There is no terminal {request.name} in this task.")
        if len(_sessions()) >= MOST_SESSIONS:
            raise TerminalRefused("full", f"There are {MOST_SESSIONS} terminals in this task. End one of them.")
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(request.name)
        listening.listen(MOST_CLIENTS)
        if os.fork() == 0:
            os.close(lock)
            _hold(listening, request.name, program, home)
        listening.close()
        found = _connected(request.name)
        assert found is not None
        return found
    finally:
        os.close(lock)


def _lock(folder: int | None = None) -> int:
    """A descriptor that holds the folder's lock until it is closed. Raises OSError."""
    lock = os.open(_LOCK, os.O_RDWR | os.O_CREAT, 0o600, dir_fd=folder)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def _hold(listening: socket.socket, name: str, program: list[str], home: int) -> None:
    """Be the holder, in a process that has just been forked; never returns."""
    status = 1
    try:
        os.setsid()
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        os.close(null)
        folder = os.open(".", os.O_RDONLY)
        os.fchdir(home)
        holder = TerminalHolder(listening, name, program)
        while True:
            holder.run()
            lock = _lock(folder)  # no client connects meanwhile
            if not holder.has_arrivals:
                break
            os.close(lock)
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)
        status = 0
    finally:
        os._exit(status)


def _read_request() -> Request:
    """The request on standard input, of which not a byte more is read: the holder reads on. Raises Refused."""
    kind, length = head(_read_exactly(HEAD_BYTES))
    if kind != REQUEST or length > REQUEST_BYTES:
        raise TerminalRefused("invalid", "The first frame is not a request.")
    return Request(_read_exactly(length))


def _read_exactly(count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = os.read(0, count - len(data))
        if not more:
            raise TerminalRefused("invalid", "The request is incomplete.")
        data += more
    return data


def _listed(request: Request) -> list[object]:
    """What the living sessions say of themselves. A start removes the socket of a dead one of its name."""
    found = []
    for name in _sessions():
        holder = _connected(name)
        if holder is not None:
            with holder, suppress(OSError, ValueError):
                holder.settimeout(STALLED_S)
                holder.sendall(request.content)
                found.append(json.loads(holder.recv(REQUEST_BYTES)))
    return found


def serve(root: str, program: list[str]) -> None:
    """Carry out the request on standard input. Raises OSError, Refused."""
    request = _read_request()
    home = os.open(".", os.O_RDONLY)
    _enter_folder(root, request.owner)
    if request.action == "list":
        os.write(1, json_frame(LIST, _listed(request)))
        return
    passed = [0, 1] if request.action == "attach" else []
    with _find(request, program, home) as holder:
        socket.send_fds(holder, [request.content], passed)
        for descriptor in passed:
            os.close(descriptor)
        holder.recv(1)  # the holder says nothing: it closes
    if request.action == "end":
        os.write(1, json_frame(LIST, []))


def main(root: str, program: list[str]) -> int:
    """Carry out one request; returns the exit status."""
    try:
        serve(root, program)
    except (OSError, TerminalRefused) as error:
        word = error.word if isinstance(error, TerminalRefused) else "failed"
        with suppress(OSError):  # once the client was passed on, there is no output
            os.write(1, json_frame(ERROR, {"error": word, "message": str(error)}))
        return 1
    return 0
