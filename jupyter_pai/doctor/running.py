"""Programs of this machine, run with a limit of time, and the ways in which OpenSSH's are called."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

LIMIT_S = 30.0
"""A probe that takes longer has failed: an editor's user would have given up as well."""

SWEEP_LIMIT_S = 15.0
CONNECT_LIMIT_S = 15


@dataclass(frozen=True)
class ProgramExit:
    """How a program ended; ``code`` is None when it was not there or took too long."""

    code: int | None
    out: bytes = b""
    err: bytes = b""

    @property
    def complaint(self) -> str:
        """The last line of what it said is wrong, or how it ended."""
        lines = self.err.decode(errors="replace").strip().splitlines()
        if lines:
            return lines[-1].strip()[:300]
        return "it took too long" if self.code is None else f"it ended with exit status {self.code}"


def run(command: Sequence[str], stdin: bytes = b"", limit_s: float = LIMIT_S) -> ProgramExit:
    """Run a program to its end; after ``limit_s`` it is killed with all that it started."""
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
    except OSError as error:
        return ProgramExit(None, err=f"{command[0]} cannot be run here: {error.strerror}".encode())
    with process:
        try:
            out, err = process.communicate(stdin, timeout=limit_s)
        except subprocess.TimeoutExpired:
            kill(process)
            out, err = process.communicate()
            return ProgramExit(None, out, err or f"it took longer than {limit_s:.0f} s".encode())
        except BaseException:
            kill(process)
            raise
    return ProgramExit(process.returncode, out, err)


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a program at once, with those that it started (``scp`` starts an ``ssh``)."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


@dataclass(frozen=True)
class OpenSshRoute:
    """How this machine's OpenSSH reaches the task: a configuration file and a name in it.

    Without a ``config`` it is what OpenSSH reads by itself: the user's own file, then the machine's.
    """

    config: Path | None
    alias: str

    @property
    def options(self) -> list[str]:
        """Options for each of OpenSSH's programs: ask no questions, share no connection, do not wait for ever."""
        words = ("BatchMode=yes", "ControlPath=none", "ControlMaster=no", f"ConnectTimeout={CONNECT_LIMIT_S}")
        chosen = [] if self.config is None else ["-F", str(self.config)]
        return [*chosen, *(part for word in words for part in ("-o", word))]

    def ssh(self, *words: str) -> list[str]:
        """``ssh``, with options first: ``way.ssh("-T", way.alias, "true")``."""
        return ["ssh", *self.options, *words]

    def program(self, name: str, *words: str) -> list[str]:
        """``scp`` or ``sftp``."""
        return [name, *self.options, *words]

    def execute(self, command: str, stdin: bytes = b"", limit_s: float = LIMIT_S) -> ProgramExit:
        """Run a command in the task without a terminal."""
        return run(self.ssh("-T", self.alias, command), stdin, limit_s)
