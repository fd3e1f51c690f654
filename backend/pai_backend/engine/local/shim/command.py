"""Executing the task's command: one bash parse, its own session, nothing inherited but pipes."""

from __future__ import annotations

import os
import sys

from pai_backend.engine.local import layout
from pai_backend.engine.local.shim.account import spawn_as
from pai_backend.engine.local.shim.launch import TEXT, Launch

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
