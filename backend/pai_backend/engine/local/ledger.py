"""What the directories below the engine's root say about its tasks, and the few steps that change it.

Rules of the file. A fact is a file, so any process can be killed between any two lines. Everything
here may run twice. Who writes ``exit.json`` holds the task's lock and has seen that there is none.
All methods block on the disk: call them in a thread.
"""

from __future__ import annotations

import errno
import functools
import logging
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pai_backend.engine.base import EngineError, Records, StartRefused, TaskPlan, TaskSeen, TaskState
from pai_backend.engine.local import layout, processes
from pai_backend.engine.local.account import by_record
from pai_backend.engine.local.accounts import SystemAccounts
from pai_backend.engine.local.builder import build_task, build_tombstone, checked_uid, clear_abandoned, replace_file
from pai_backend.engine.local.control_groups import NONE, ControlGroups, TaskLimits
from pai_backend.engine.local.environment import inherited
from pai_backend.engine.local.interpreter import Interpreter, interpreter
from pai_backend.engine.local.owners import PASSABLE
from pai_backend.engine.local.peers import config_text
from pai_backend.engine.local.reading import fetching, has_begun, is_kept, is_preparing, locked, read_record
from pai_backend.engine.local.shims import Shims
from pai_backend.model.ids import TaskUid, job_of
from pai_backend.model.job import Causer, TaskExit
from pai_backend.platform.disk_reserve import NO_ROOM

_log = logging.getLogger(__name__)

OVERDUE_S = 15.0
"""How long after its grace a task that was asked to end is killed from outside; its shim gives up after 7 s."""

UNSTARTED = (TaskState.STARTING, TaskState.PULLING)
"""States of a task whose command was not executed: its shim may be started again."""


class TaskDirectories:
    """The tasks below one root. Making one touches nothing."""

    def __init__(
        self,
        root: Path,
        log_bytes: int,
        python: str = sys.executable,
        *,
        most_processes: int = 0,
        groups: Callable[[], ControlGroups] = lambda: NONE,
        accounts: SystemAccounts | None = None,
    ) -> None:
        """``python`` is the path of the Python whose packages tasks read; ``groups`` is asked once, at the first start.

        A task may have ``most_processes`` at once, threads included; 0 is no limit. With ``accounts`` it runs as that
        of its user, else as this process's own.
        """
        self._accounts = accounts
        self._most_processes = most_processes
        self._groups = functools.cache(groups)
        self.root = root
        self._log_bytes = log_bytes
        self._python = python
        self._shims = Shims()
        self._stopping: dict[TaskUid, float] = {}  # when a task that lives was first seen to be asked to end

    def live(self, uid: TaskUid) -> Path:
        """Where the task is until it is forgotten."""
        return self.root / layout.TASKS / uid

    def find(self, uid: TaskUid) -> Path | None:
        """The task's directory, live or forgotten; None when the uid is unknown."""
        if not checked_uid(uid):
            return None
        for folder in (layout.TASKS, layout.DONE):
            path = self.root / folder / uid
            if path.is_dir():
                return path
        return None

    def uids(self) -> set[TaskUid]:
        """All tasks that are not forgotten."""
        try:
            return {TaskUid(name) for name in os.listdir(self.root / layout.TASKS) if checked_uid(name)}
        except FileNotFoundError:
            return set()

    def kept(self, uid: TaskUid) -> bool:
        """Whether a shim keeps the task now."""
        return layout.has_reader(_control(self.live(uid)))

    def clear_abandoned(self) -> None:
        """Remove what a start or a forgetting that was killed left behind. Only for the process that watches."""
        clear_abandoned(self.root / layout.TASKS)
        done = self.root / layout.DONE
        for name in layout.LIVE_FOLDERS:
            for path in done.glob(f"*/{name}"):
                shutil.rmtree(path, ignore_errors=True)
        for uid in self._groups().uids():
            if (done / uid).is_dir():
                self._groups().remove(uid)

    def start(self, plan: TaskPlan) -> bool:
        """Make the task durable and spawn its shim, unless it ever was started or stopped.

        Returns whether the task is among the live ones (it is not when it was forgotten).

        Raises StartRefused or EngineError; after an EngineError a repeated call goes on where this one failed.
        """
        if not checked_uid(plan.uid):
            raise StartRefused(f"{plan.uid!r} is not a task uid: letters, digits, '-' and '.' only, at most 128")
        try:
            existing = self.find(plan.uid)
            if existing is None:
                self.prepare_folders()
                self._keep_job_record(plan)
                self.build(plan)
            elif not self._startable(existing):
                return existing.parent.name == layout.TASKS
            self.spawn(plan.uid)
            with suppress(FileNotFoundError):  # a stop came first, or it has ended and is forgotten already
                layout.make_durable(str(self.live(plan.uid)))
            return True
        except ValueError as exc:
            raise StartRefused(f"task {plan.uid} cannot be started: {exc}") from exc
        except OSError as exc:
            raise EngineError(f"task {plan.uid} could not be started: {_os_error(exc)}") from exc

    def build(self, plan: TaskPlan) -> None:
        """Make the directory of a new task. Raises EngineError, OSError; ValueError for what can never run."""
        account = self._accounts.of(plan.user) if self._accounts is not None else None
        build_task(self.live(plan.uid), plan, self._log_bytes, self.python(), account)

    def python(self) -> Interpreter:
        """The Python of tasks. Raises EngineError when it cannot be used."""
        return interpreter(self._python, inherited(os.environ))

    def prepare_folders(self) -> None:
        """The folders of tasks, when they are not there yet."""
        for folder in (self.root, *(self.root / name for name in (layout.TASKS, layout.DONE, layout.JOBS))):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._accounts is not None:
            for folder in (self.root, self.root / layout.TASKS):
                folder.chmod(PASSABLE)

    def _keep_job_record(self, plan: TaskPlan) -> None:
        """Write what the tasks of a job share, once a job: it never changes."""
        path = self.root / layout.JOBS / job_of(plan.uid)
        if plan.job_record and not path.exists():
            replace_file(path, plan.job_record.encode())

    def records(self, uid: TaskUid) -> Records:
        """What a live task carries for a database that lost it. Raises EngineError."""
        if not checked_uid(uid):
            return Records()
        directory = self.live(uid)
        try:
            plan = read_record(directory / layout.PLAN) or {}
            return Records(
                str(plan.get("database", "")),
                _text(self.root / layout.JOBS / job_of(uid)),
                _text(directory / layout.RECORD),
            )
        except (OSError, ValueError) as exc:
            raise EngineError(f"what task {uid} carries cannot be read: {exc}") from None

    def recall(self, uid: TaskUid) -> TaskSeen | None:
        """How a task ended that was put away; None for any other. Raises EngineError."""
        if not checked_uid(uid):
            return None
        directory = self.root / layout.DONE / uid
        try:
            ended = read_exit(directory)
            started = read_record(directory / layout.STARTED)
        except (OSError, ValueError, KeyError) as exc:
            raise EngineError(f"the end of task {uid} cannot be read: {exc}") from None
        if ended is None:
            return None
        return TaskSeen(uid, TaskState.EXITED, ended, _since(started, ended), ended.message)

    @staticmethod
    def _startable(directory: Path) -> bool:
        """Whether this existing task was never executed, never ended, and no shim keeps it now."""
        begun = any((directory / name).exists() for name in (layout.STARTED, layout.EXIT))
        return not begun and directory.parent.name == layout.TASKS and not layout.has_reader(_control(directory))

    def spawn(self, uid: TaskUid) -> None:
        """Start a shim for a task that has not begun, see :class:`Shims`. Raises OSError.

        Its control groups are made here and not with its directory: they do not outlive the machine.
        """
        directory = self.live(uid)
        plan = read_record(directory / layout.PLAN) or {}
        limits = TaskLimits(int(plan.get("memory_mb", 0)), int(plan.get("cpus", 0)), self._most_processes)
        if groups := self._groups().make(uid, limits):
            replace_file(directory / layout.GROUPS, "".join(f"{group}\n" for group in groups).encode())
        held = not self._most_processes or self._groups().hold_processes
        account = by_record(plan.get("account"))
        counted = () if account is None else (account.uid,)
        most = 0 if held else processes.threads_here(*counted) + self._most_processes
        self._shims.spawn(uid, directory, most, "" if account is None else account.told)

    def reap(self) -> set[TaskUid]:
        """Collect shims of ours that have ended, never waiting; the tasks they kept."""
        return self._shims.reap()

    def look(self, uid: TaskUid) -> TaskSeen | None:
        """The task as it is now; None when it has no directory.

        Asks for the shim before it reads the exit: the shim writes the exit before it leaves, so that
        "no shim and no exit" then means that none will come.
        """
        directory = self.live(uid)
        alive = layout.has_reader(_control(directory))
        if not directory.is_dir():
            return None
        ended = read_exit(directory)
        started = read_record(directory / layout.STARTED)
        if ended is not None:
            return TaskSeen(uid, TaskState.EXITED, ended, _since(started, ended), ended.message)
        if started is None or not has_begun(directory):
            if is_preparing(directory):
                return TaskSeen(uid, TaskState.PULLING, message=fetching(directory))
            return TaskSeen(uid, TaskState.STARTING)
        seen = TaskSeen(uid, TaskState.RUNNING, since=_since(started))
        if alive:
            return seen
        if (directory / layout.STOP).exists():
            return self._settle(seen, "stopped", "stopped on request; what kept the task was killed", Causer.USER)
        same = started.get(layout.LIFE) == processes.machine_life()
        message = "the process that kept the task was killed" if same else "the machine restarted"
        return self._settle(seen, "lost", message, unexplained=same)

    def settle_unstarted(self, uid: TaskUid) -> TaskSeen | None:
        """The task after its shim ended: one that left neither a start nor an exit has failed to start."""
        seen = self.look(uid)
        if seen is None or seen.state not in UNSTARTED:
            return seen
        detail = _last_line(self.live(uid) / layout.SHIM_LOG)
        message = f"the process that keeps the task ended before the command began: {detail}"
        return self._settle(seen, "start-failed", message)

    def settle_vanished(self, uid: TaskUid) -> TaskSeen:
        """End a task whose directory was removed, and leave a tombstone so that it cannot start again."""
        self._kill(uid)
        message = "the task's directory was removed while it ran"
        ended = _exit_now("vanished", message, Causer.PLATFORM, unexplained=True)
        try:
            build_tombstone(
                self.live(uid), reason=ended.reason, message=message, causer=ended.causer.value, unexplained=True
            )
        except OSError as exc:
            _log.warning("task %s vanished, and that could not be written down: %s", uid, _os_error(exc))
        return TaskSeen(uid, TaskState.EXITED, ended, message=ended.message)

    def _settle(
        self,
        seen: TaskSeen,
        reason: str,
        message: str,
        causer: Causer = Causer.PLATFORM,
        *,
        unexplained: bool = False,
    ) -> TaskSeen:
        """Write the exit of a task without a shim, after ending what is left of it.

        Unchanged when a process holds its lock after all, or it vanished meanwhile: a later look will tell.
        """
        uid = seen.uid
        directory = self.live(uid)
        with locked(directory) as held:
            if not held:
                return seen
            if (ended := read_exit(directory)) is None:
                if not self._kill(uid):
                    message += "; some of its processes could not be killed"
                ended = _exit_now(reason, message, causer, unexplained=unexplained)
                try:
                    who = causer.value
                    layout.write_exit(
                        str(directory), reason=reason, message=message, causer=who, unexplained=unexplained
                    )
                except OSError as exc:
                    _log.warning("the end of task %s could not be written down: %s", uid, _os_error(exc))
            return TaskSeen(uid, TaskState.EXITED, ended, seen.since, ended.message)

    def stop(self, uid: TaskUid, grace_s: float) -> bool:
        """Ask the task to end, durably; a task never started gets an exit at once. Raises EngineError.

        Returns whether the task is among the live ones (it is not when it was forgotten).
        """
        if not checked_uid(uid):
            raise EngineError(f"{uid!r} is not a task uid")
        try:
            if self.find(uid) is None:
                self.prepare_folders()
                message = "stopped before it started"
                if build_tombstone(self.live(uid), reason="stopped", message=message, causer=Causer.USER.value):
                    return True
            self._stop_existing(uid, max(0, round(grace_s * 1000)))
            return self.live(uid).is_dir()
        except OSError as exc:
            raise EngineError(f"task {uid} could not be stopped: {_os_error(exc)}") from exc
        except ValueError as exc:
            raise _unreadable(uid) from exc

    def _stop_existing(self, uid: TaskUid, grace_ms: int) -> None:
        directory = self.live(uid)
        ended = (directory / layout.EXIT).exists()
        if not directory.is_dir() or (ended and not is_kept(directory)):
            return
        try:
            with open(directory / layout.STOP, "w", encoding="ascii") as file:
                file.write(str(grace_ms))
                file.flush()
                os.fsync(file.fileno())
            layout.sync_directory(str(directory))
        except OSError as exc:
            if exc.errno in NO_ROOM:  # it may be this task that fills the disk; that it was asked is written later
                layout.send_line(_control(directory), f"stop {grace_ms}")
            raise
        if ended:
            self._release(uid)
            return
        # The mark first, then the FIFO: a shim that is just starting opens the FIFO and then looks for the mark.
        if layout.send_line(_control(directory), f"stop {grace_ms}") or (directory / layout.STARTED).exists():
            return
        with locked(directory) as held:
            if held and not any((directory / name).exists() for name in (layout.STARTED, layout.EXIT)):
                if (directory / layout.STAGING).exists():
                    self._kill(uid)
                message = "stopped before it started"
                layout.write_exit(str(directory), reason="stopped", message=message, causer=Causer.USER.value)

    def _kill(self, uid: TaskUid) -> bool:
        """End all processes of a task that nothing keeps; False when some could not be killed. Blocks."""
        return processes.kill_marked(uid, [str(group) for group in self._groups().of(uid)])

    def end_overdue(self, uid: TaskUid) -> None:
        """Kill a task, and what keeps it, that was asked to end and has not, long after its grace.

        What keeps it may stand still, by a signal of the task. Blocks.
        """
        try:
            grace_s = int((self.live(uid) / layout.STOP).read_text("ascii") or 0) / 1000
        except (OSError, ValueError):  # not asked, or just being asked
            return
        first = self._stopping.setdefault(uid, time.monotonic())
        if time.monotonic() > first + grace_s + OVERDUE_S:
            del self._stopping[uid]
            started = read_record(self.live(uid) / layout.STARTED) or {}
            keeper = int(started.get("pid", 0))
            if keeper and started.get(layout.LIFE) == processes.machine_life():
                processes.send((keeper, processes.start_time(keeper)), signal.SIGKILL)
            self._kill(uid)

    def _release(self, uid: TaskUid) -> None:
        """End what is going on in a task that was kept, once its directory says that it is no longer kept."""
        layout.nudge(str(self.root), uid)  # the agent closes its SSH server
        self._kill(uid)

    def refresh(self, uid: TaskUid, job_info: str) -> None:
        """Replace the job info file of a task that is not over, as a whole for its readers, and what ``ssh`` in it is
        informed of the job's tasks. Raises EngineError.

        It is not flushed: a crash of the machine that could lose it ends the task as well.
        """
        directory = self.live(uid)
        if not checked_uid(uid) or not directory.is_dir() or (directory / layout.EXIT).exists():
            return
        try:
            replace_file(directory / layout.JOB_INFO, job_info.encode())
            if (directory / layout.SSH_CONFIG).exists():
                replace_file(directory / layout.SSH_CONFIG, config_text(job_info, directory).encode())
        except (FileNotFoundError, NotADirectoryError):  # forgotten or removed just now
            return
        except OSError as exc:
            raise EngineError(f"the job info of task {uid} could not be written: {_os_error(exc)}") from exc

    def forget(self, uid: TaskUid) -> None:
        """Move an ended task out of the live ones, without its secrets. Raises EngineError when it has not ended."""
        directory = self.live(uid)
        if not checked_uid(uid) or not directory.is_dir():
            return
        if not (directory / layout.EXIT).exists():
            raise EngineError(f"task {uid} has not ended; stop it before it is forgotten")
        try:
            kept = is_kept(directory)
            for name in layout.SECRET_FILES:
                (directory / name).unlink(missing_ok=True)
            self._stopping.pop(uid, None)
            done = self.root / layout.DONE / uid
            os.rename(directory, done)
            layout.sync_directory(str(self.root / layout.DONE))
            if kept:
                self._release(uid)
            self._groups().remove(uid)
            for name in layout.LIVE_FOLDERS:
                shutil.rmtree(done / name, ignore_errors=True)  # what could not be removed is, at the next start
        except FileNotFoundError:
            return
        except OSError as exc:
            raise EngineError(f"task {uid} could not be put away: {_os_error(exc)}") from exc
        except ValueError as exc:
            raise _unreadable(uid) from exc


_NEVER_BEGAN = frozenset({"start-failed", "input-failed", "image-pull-failed"})


def read_exit(directory: Path) -> TaskExit | None:
    """The recorded end of the task in ``directory``; None while there is none."""
    record = read_record(directory / layout.EXIT)
    if record is None:
        return None
    at = datetime.fromtimestamp(float(str(record.pop("at"))), UTC)
    record.pop(layout.KEPT, None)
    record["unexplained"] = bool(record.pop(layout.UNEXPLAINED, 0))
    return TaskExit.model_validate({**record, "at": at})


def _text(path: Path) -> str:
    """The text of a file; empty when there is none."""
    try:
        return path.read_text("ascii")
    except (FileNotFoundError, NotADirectoryError):
        return ""


def _since(started: dict[str, Any] | None, ended: TaskExit | None = None) -> datetime | None:
    """When the command started; None when it never did. The record comes first, and executing may fail after it."""
    if started is None or (ended is not None and ended.reason in _NEVER_BEGAN):
        return None
    return datetime.fromtimestamp(float(str(started["at"])), UTC)


def _control(directory: Path) -> str:
    return str(directory / layout.CONTROL)


def _unreadable(uid: TaskUid) -> EngineError:
    return EngineError(f"the exit record of task {uid} is not JSON; remove {layout.EXIT} from its directory")


def _exit_now(reason: str, message: str, causer: Causer, *, unexplained: bool = False) -> TaskExit:
    return TaskExit(reason=reason, message=message, causer=causer, unexplained=unexplained, at=datetime.now(UTC))


def _last_line(path: Path) -> str:
    """The end of the shim's own complaint, a Python error without values of the task."""
    try:
        lines = path.read_text("utf-8", "replace").strip().splitlines()
    except FileNotFoundError:
        lines = []
    return lines[-1][:300] if lines else "it printed nothing"


def _os_error(exc: OSError) -> str:
    """Place, reason and, where there is a usual one, remedy."""
    remedy = {
        errno.ENOSPC: "; free some disk space",
        errno.EDQUOT: "; free some disk quota",
        errno.EAGAIN: "; the machine's limit of processes is reached",
        errno.EMFILE: "; raise the limit of open files (ulimit -n)",
    }.get(exc.errno or 0, "")
    place = f" ({os.fsdecode(exc.filename)})" if isinstance(exc.filename, str | bytes | os.PathLike) else ""
    return f"{exc.strerror or exc}{place}{remedy}"
