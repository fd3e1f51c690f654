"""The shims that this process has started: processes of their own, which outlive it."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from pai_backend.engine.local import dispositions, layout, processes
from pai_backend.engine.local.shim import boot_file
from pai_backend.model.ids import TaskUid
from pai_backend.platform.descriptors import first_limit

# Only ``stop`` ends a task in good order. Blocked from the first instruction on: a shim that handled
# them itself would have a moment in which a hang-up loses the task.
_HARMLESS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Shims:
    """Children of this process that may need reaping."""

    def __init__(self) -> None:
        self._uids: dict[int, TaskUid] = {}

    def spawn(self, uid: TaskUid, directory: Path, most_processes: int = 0, account: str = "") -> None:
        """Start a shim for a task that has not begun. Harmless when there is one: the second one leaves at once.

        The shim gets no environment but the search path for shared libraries: what its command may see
        is in the task's ``launch`` file. ``most_processes`` is how many the account may have when the task makes one,
        where no control group counts those of the task alone; 0 is no limit. ``account`` is the one that the task runs
        as, see ``shim.account``; empty is this process's own. Raises OSError when none can be made.
        """
        environment = {key: os.environ[key] for key in ("LD_LIBRARY_PATH",) if key in os.environ}
        told = [str(directory), str(first_limit()), processes.machine_life()]
        told += [str(processes.limit_mark(uid)), str(most_processes), account]
        pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", "-X", "utf8", boot_file(), *told],
            environment,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, directory / layout.SHIM_LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            ],
            setsid=True,
            setsigmask=_HARMLESS,
            setsigdef=dispositions.EVERY,
        )
        self._uids[pid] = uid

    def reap(self) -> set[TaskUid]:
        """Collect those that have ended, never waiting; the tasks they kept."""
        ended = set()
        for pid, uid in list(self._uids.items()):
            try:
                done, _ = os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                done = pid
            if done:
                del self._uids[pid]
                ended.add(uid)
        return ended
