"""Executing the task's command: one bash parse, its own session, nothing inherited but pipes.

The launch file is what a shim (and the agent) must know to run something in a task, in a form that is quick to read: a
sequence of NUL-terminated fields: uid, bytes a log may have before it is rotated, whether a failed task is kept, ports
as ``label:port,port;``, number of directories, the directories, command, then ``KEY=VALUE`` of the whole environment.
NUL is the one byte none of them can hold.
"""

from __future__ import annotations

import os
import sys

from pai_backend.engine.local import layout
from pai_backend.engine.local.shim.account import spawn_as

TEXT = ("utf-8", "surrogateescape")  # of the file, whatever the locale of who reads it
_KEPT = "keep"
VARIABLE_BYTES = 131_072  # Linux takes no longer one, with its NUL: execve(2), MAX_ARG_STRLEN with 4 KiB pages


class Launch:
    """The command of a task and the world it runs in. (``dataclasses`` and ``typing`` cost the shim 9 ms.)"""

    def __init__(
        self,
        uid: str,
        log_bytes: int,
        command: str,
        env: dict[str, str],
        *,
        keep: bool = False,
        ports: dict[str, tuple[int, ...]] | None = None,
        directories: tuple[str, ...] = (),
    ) -> None:
        """``ports`` are those that the command may listen on, by label; ``directories`` are made before it runs."""
        self.uid = uid
        self.log_bytes = log_bytes
        self.command = command
        self.env = env
        self.keep = keep
        self.ports = ports or {}
        self.directories = directories
        self.life = ""  # of the machine, when the shim has begun
        self.account = ""  # that the task runs as, see ``account``; empty: the shim's own


def encode(launch: Launch) -> bytes:
    """The file's content. Raises ValueError when no process can be given these fields; it repeats no value."""
    for key, value in launch.env.items():
        if not key or "=" in key:
            raise ValueError(f"environment variable name {key!r} is empty or holds '='")
        if len(value) > VARIABLE_BYTES // 4 and (size := len(f"{key}={value}".encode(*TEXT)) + 1) > VARIABLE_BYTES:
            raise ValueError(
                f"environment variable {key} has {size:,} bytes, and a process can be given at most "
                f"{VARIABLE_BYTES:,} in one; put the value into a file"
            )
    ports = "".join(f"{label}:{','.join(map(str, numbers))};" for label, numbers in launch.ports.items())
    fields = [launch.uid, str(launch.log_bytes), _KEPT if launch.keep else "", ports]
    fields += [str(len(launch.directories)), *launch.directories, launch.command]
    fields += [f"{key}={value}" for key, value in launch.env.items()]
    text = "\0".join(fields) + "\0"
    if text.count("\0") != len(fields):
        raise ValueError("a command or environment variable holds a NUL byte, which no process can be given")
    return text.encode(*TEXT)


def decode(data: bytes) -> Launch:
    """The reverse of :func:`encode`. Raises ValueError for anything else."""
    uid, log_bytes, keep, ports, count, *rest = data.decode(*TEXT).split("\0")[:-1]
    directories, (command, *env) = rest[: int(count)], rest[int(count) :]
    pairs = (entry.partition("=") for entry in env)
    return Launch(
        uid,
        int(log_bytes),
        command,
        {key: value for key, _, value in pairs},
        keep=keep == _KEPT,
        ports=dict(map(_port_group, ports.split(";")[:-1])),
        directories=tuple(directories),
    )


def _port_group(text: str) -> tuple[str, tuple[int, ...]]:
    label, _, numbers = text.partition(":")
    return label, tuple(map(int, numbers.split(",")))


def read_launch(path: str) -> Launch:
    """The launch file at ``path``. Raises OSError or ValueError."""
    with open(path, "rb") as file:
        return decode(file.read())


_IGNORED_BY_PYTHON = (13, 25)  # SIGPIPE and SIGXFSZ, by number: the names cost an import, see ``begin``
_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
_TEXT = 3  # the descriptor that bash reads the command from

# Every user of the machine can read the arguments of a process, so the text of a command, which may hold secrets, is
# never among them: bash reads it from a descriptor. ``read`` keeps every byte, ``eval`` is the one parse, and neither
# the descriptor nor the variable is left to the command. `$0`, `$-`, `$@` and BASH_SOURCE are those of ``bash -c``.
_READ_AND_RUN = f'read -rd "" -u{_TEXT};eval "exec {_TEXT}<&-;unset REPLY;$REPLY"'

if sys.platform == "linux":
    import ctypes


def adopt_orphans() -> bool:
    """Become the parent of every descendant that loses its own (prctl(2)); False where that is not possible."""
    if sys.platform != "linux":
        return False
    return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def find_program(name: str, path: str) -> str:
    """The first executable of that name on ``path``. Raises FileNotFoundError naming what was searched."""
    for folder in path.split(os.pathsep):
        candidate = os.path.join(folder or os.curdir, name)
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return os.path.abspath(candidate)
    raise FileNotFoundError(f"{name} is not on the task's PATH ({path}); install it or correct PATH")


class Pipes:
    """Standard output and standard error of the command: the ends that are read here, by stream name."""

    def __init__(self) -> None:
        self.readers: dict[int, str] = {}
        self.writers: list[int] = []
        for stream in ("stdout", "stderr"):
            reader, writer = os.pipe()
            os.set_blocking(reader, False)
            self.readers[reader] = stream
            self.writers.append(writer)

    def close_writers(self) -> None:
        """Let the command alone hold the other ends, so that its end is seen."""
        while self.writers:
            os.close(self.writers.pop())


def execute(launch: Launch, pipes: Pipes, text: int) -> int:
    """Start bash with the command in ``work/`` and return its pid, which is also its group and session.

    ``text`` is what :func:`command_text` gave, and closed. Call it from within the task's directory. Raises OSError
    when it cannot be executed.
    """
    try:
        bash = find_program("bash", launch.env.get("PATH", os.defpath))
        return spawn(launch, bash, ["bash", "-c", _READ_AND_RUN], pipes, text)
    finally:
        os.close(text)


def command_text(command: str) -> int:
    """A descriptor of a file that holds the command, ends with NUL and has no name any more. Raises OSError."""
    fd = os.open(layout.COMMAND, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.unlink(layout.COMMAND)
        data = memoryview(command.encode(*TEXT) + b"\0")
        while data:
            data = data[os.write(fd, data) :]
        os.lseek(fd, 0, os.SEEK_SET)
    except OSError:
        os.close(fd)
        raise
    return fd


def spawn(launch: Launch, program: str, arguments: list[str], pipes: Pipes, text: int | None = None) -> int:
    """Start a program of the task in ``work/``, as its account, in a session of its own; as :func:`execute`.

    ``text`` becomes its descriptor 3.
    """
    out, err = pipes.writers
    if launch.account:
        given = {1: out, 2: err} | ({} if text is None else {_TEXT: text})
        return spawn_as(launch.account, program, arguments, launch.env, layout.WORK, given)
    home = os.open(os.curdir, os.O_RDONLY)
    os.chdir(layout.WORK)  # posix_spawn has no working directory of its own
    try:
        return os.posix_spawn(
            program,
            arguments,
            launch.env,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, out, 1),
                (os.POSIX_SPAWN_DUP2, err, 2),
                *([] if text is None else [(os.POSIX_SPAWN_DUP2, text, _TEXT)]),
            ],
            setsid=True,
            setsigmask=(),  # a shim is started with the signals blocked that must not end it
            setsigdef=_IGNORED_BY_PYTHON,
        )
    finally:
        os.fchdir(home)
        os.close(home)
