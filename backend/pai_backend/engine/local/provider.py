"""The local engine as a kind of engine: tasks are processes of this machine."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pai_backend.engine.providers import EngineProvider, Host

if TYPE_CHECKING:
    from pai_backend.engine.local.control_groups import ControlGroups
    from pai_backend.engine.local.engine import LocalEngine
    from pai_backend.engine.local.retention import TaskFolders

log = logging.getLogger(__name__)


class LocalProvider(EngineProvider):
    """Called as :class:`EngineProvider` says."""

    runs_here = True

    def tasks_run_as_backend(self, settings: Any) -> bool:
        """Unless they have accounts of their own."""
        return not settings.engine.accounts.given

    def task_directories(self, settings: Any) -> tuple[str, ...] | None:
        """All that the machine has."""
        return None

    def logs(self, settings: Any) -> Path:
        """In the tasks' own directories."""
        path: Path = settings.data_dir / "engine"
        return path

    def finished(self, settings: Any) -> TaskFolders:
        """The tasks' own directories."""
        from pai_backend.engine.local.retention import done_folder

        return done_folder(self.logs(settings))

    def engine(self, host: Host) -> LocalEngine:
        """Keys: those of ``engine``."""
        from pai_backend.engine.local.control_groups import NONE
        from pai_backend.engine.local.engine import LocalEngine

        given = host.settings.engine
        python = str(given.python or sys.executable)
        if not os.access(python, os.X_OK) or not os.path.isfile(python):
            raise ValueError(f"engine.python: {python} is not a program; set it to the path of a Python")
        return LocalEngine(
            host.root,
            host.nodes,
            log_bytes=given.log_bytes,
            python=python,
            most_processes=given.most_processes,
            groups=_task_groups if given.hold_to_limits else lambda: NONE,
            reserve=host.reserve,
            accounts=host.accounts,
        )


def _task_groups() -> ControlGroups:
    """The control groups of tasks; what they cannot hold tasks to is logged."""
    from pai_backend.engine.local.control_groups import control_groups

    found = control_groups()
    for name, why in found.reasons.items():
        log.warning("tasks are not held to their %s: %s", name, why)
    return found
