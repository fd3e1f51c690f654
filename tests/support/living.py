"""Which processes run. A zombie has ended, though a wait of psutil may return before its parent has collected it."""

from __future__ import annotations

import psutil


def lives(process: psutil.Process | int) -> bool:
    """Whether a process, or the one of a number, has not ended."""
    try:
        found = psutil.Process(process) if isinstance(process, int) else process
        return bool(found.is_running() and found.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def marked(process: psutil.Process, uid: str) -> bool:
    """Whether a process lives and has the mark of a task in its environment; False where that cannot be read."""
    try:
        return process.environ().get("PAI_TASK_UID") == uid and lives(process)
    except psutil.Error:
        return False
