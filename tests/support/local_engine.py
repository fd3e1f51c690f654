"""A node for local engines, and a look at the processes of tasks that does not ask the engine."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

import psutil

from pai_backend.engine.local.interpreter import Interpreter
from pai_backend.engine.local.nodes import simulated_node
from pai_backend.model.ids import TaskUid
from tests.support.living import marked

PYTHON = Interpreter("/env/bin/python", "/usr/bin/python3", "3.11", "3.11.2", "/env", (), ("/env/bin",), True)
"""One that nothing runs."""
NODE = simulated_node("carol", "TITANX", 2, 4, 8192)


class LocalBehind:
    """Processes by their environment and command line, as the kernel shows them."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def processes(self, uid: TaskUid) -> list[int]:
        """Processes of the task, by the mark in their environment."""
        return [process.pid for process in psutil.process_iter() if marked(process, uid)]

    def shims(self, uid: TaskUid) -> list[int]:
        """The processes that keep the task."""
        directory = str(self._root / "tasks" / uid)
        return [process.pid for process in psutil.process_iter() if _keeps(process, directory)]

    def zombies(self) -> set[int]:
        """Children of this process that have ended and were not collected."""
        return {child.pid for child in psutil.Process().children() if _is_zombie(child)}

    def crash(self, uid: TaskUid) -> None:
        """Kill the shim as the kernel's out-of-memory killer would."""
        for pid in self.shims(uid):
            os.kill(pid, signal.SIGKILL)

    def clear(self) -> None:
        """End everything that was started below the root."""
        victims = [p for p in psutil.process_iter() if _keeps(p, str(self._root)) or _lives_in(p, self._root)]
        for victim in victims:
            with suppress(psutil.NoSuchProcess):  # it has ended since
                victim.kill()


def _is_zombie(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # it was collected meanwhile
        return False


def _keeps(process: psutil.Process, directory: str) -> bool:
    try:
        line = process.cmdline()
        program = next((at for at, word in enumerate(line) if word.endswith("boot.py")), len(line))
        return any(word.startswith(directory) for word in line[program + 1 :])
    except psutil.Error:
        return False


def _lives_in(process: psutil.Process, root: Path) -> bool:
    try:
        return process.environ().get("PWD", "").startswith(str(root))
    except psutil.Error:
        return False
