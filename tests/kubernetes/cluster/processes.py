"""Programs of a cluster that go on after whoever started them, and are found again by what is written on disk.

A note says which process it is: its id alone may belong to another by the time that someone looks.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.kubernetes.cluster.commands import until

ENVIRONMENT = {"GOGC": "300"}
"""All programs of a cluster are Go's, which collects garbage often where it is told nothing: there is more
memory here than there are processors."""
_END_S = 60.0
_NOTE = ".process"


class Daemon:
    """One program, its log ``NAME.log`` and the note on its process in a directory."""

    def __init__(self, directory: Path, name: str) -> None:
        self.name = name
        self.log = directory / f"{name}.log"
        self._note = directory / f"{name}{_NOTE}"
        self._child: subprocess.Popen[bytes] | None = None

    def start(self, command: Sequence[str | Path], cwd: Path) -> None:
        """Run it in a session of its own, after a line in the log that says with which options."""
        with self.log.open("ab") as log:
            log.write(f"# {' '.join(map(str, command))}\n".encode())
            log.flush()
            self._child = subprocess.Popen(
                [str(word) for word in command],
                cwd=cwd,
                env={**os.environ, **ENVIRONMENT},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._note.write_text(f"{self._child.pid} {_birth(self._child.pid)}\n")

    @property
    def pid(self) -> int | None:
        """Its process id, while it runs."""
        if self._child is not None:
            self._child.poll()  # reaps it
        return _noted(self._note)

    async def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        """End it and wait until it is gone; nothing to do where it does not run."""
        pid = self.pid
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, how)
        await until(self._gone, f"the end of {self.name}", _END_S, 0.02)
        self._note.unlink(missing_ok=True)

    def tail(self, size: int = 4000) -> str:
        """The end of its log."""
        return self.log.read_text(errors="replace")[-size:] if self.log.exists() else ""

    async def _gone(self) -> bool:
        return self.pid is None


def kill_all(directory: Path) -> None:
    """Kill, at once, every process that a note below a directory tells of."""
    for note in directory.rglob(f"*{_NOTE}"):
        pid = _noted(note)
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def running(directory: Path) -> bool:
    """Whether any process that a note below a directory tells of still runs."""
    return any(_noted(note) is not None for note in directory.rglob(f"*{_NOTE}"))


def _noted(note: Path) -> int | None:
    try:
        pid, birth = note.read_text().split(maxsplit=1)
    except (FileNotFoundError, ValueError):
        return None
    return int(pid) if _birth(int(pid)) == birth.strip() else None


def _birth(pid: int) -> str | None:
    """When a process began, on which boot; None where there is none, or only its record waits to be collected.

    The first thread may have ended before the others, which still have open what it had.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, threads, began = fields[0], int(fields[17]), fields[19]
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return None if state in "ZX" and threads <= 1 else f"{boot} {began}"
