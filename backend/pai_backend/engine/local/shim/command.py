"""Executing the task's command: one bash parse, its own session, nothing inherited but pipes."""

from __future__ import annotations

import os
import sys

from pai_backend.engine.local import layout
from pai_backend.engine.local.shim.launch import Launch

_IGNORED_BY_PYTHON = (13, 25)  # SIGPIPE and SIGXFSZ, by number: the names cost an import, see ``begin``
_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h

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


def execute(launch: Launch, pipes: Pipes) -> int:
    """Start ``bash -c <command>`` in ``work/`` and return its pid, which is also its group and session.

    Call it from within the task's directory. Raises OSError when it cannot be executed.
    """
    bash = find_program("bash", launch.env.get("PATH", os.defpath))
    return spawn(bash, ["bash", "-c", launch.command], launch.env, pipes)


def spawn(program: str, arguments: list[str], env: dict[str, str], pipes: Pipes) -> int:
    """Start a program of the task in ``work/``, in a session of its own; as :func:`execute`."""
    out, err = pipes.writers
    home = os.open(os.curdir, os.O_RDONLY)
    os.chdir(layout.WORK)  # posix_spawn has no working directory of its own
    try:
        return os.posix_spawn(
            program,
            arguments,
            env,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, out, 1),
                (os.POSIX_SPAWN_DUP2, err, 2),
            ],
            setsid=True,
            setsigmask=(),  # a shim is started with the signals blocked that must not end it
            setsigdef=_IGNORED_BY_PYTHON,
        )
    finally:
        os.fchdir(home)
        os.close(home)
