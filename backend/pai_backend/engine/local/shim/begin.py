"""The shim's way to a running command, as short as it can be: this is what every start waits for.

No task runs twice: the lock is held while alive, and ``started.json`` is written before the command is
executed and never removed. What is needed only afterwards is imported while the command runs already;
the ``signal`` module alone takes a third of the time from here to the command (9 of 27 ms).
"""

from __future__ import annotations

import errno
import os
import resource

from pai_backend.engine.local import layout
from pai_backend.engine.local.layout import take_lock
from pai_backend.engine.local.shim.account import done_as, groups_of, homes_of, join, leave
from pai_backend.engine.local.shim.capture import Capture
from pai_backend.engine.local.shim.command import Launch, Pipes, adopt_orphans, command_text, execute, read_launch

RLIMIT_LOCKS = 10  # as ``processes`` has it, which is imported later


def main(directory: str, descriptors: str, life: str, mark: str, most_processes: str, account: str = "") -> int:
    """Keep the task in ``directory`` from its start to its end; 0 also when it is another's or over.

    ``descriptors`` is the soft limit that its command is to have: the backend has raised its own. ``life`` is that of
    the machine, ``mark`` the limit of file locks that tells the task's processes, see ``processes``, and
    ``most_processes`` how many the account may have when the task makes one, 0 for no limit. ``account`` is that which
    the task runs as, see ``account``; empty: this process's own.
    """
    os.chdir(directory)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (int(descriptors), hard))
    _carry(int(mark))
    if int(most_processes):
        hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
        most = int(most_processes) if hard == resource.RLIM_INFINITY else min(hard, int(most_processes))
        resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
    os.closerange(3, min(os.sysconf("SC_OPEN_MAX"), 65536))
    if take_lock(layout.LOCK) is None or os.path.exists(layout.STARTED) or os.path.exists(layout.EXIT):
        return 0
    # The FIFO first, then the mark: a stop() that comes between finds this reader or is found as a mark.
    control = os.open(layout.CONTROL, os.O_RDWR | os.O_NONBLOCK)
    launch = read_launch(layout.LAUNCH)
    launch.life, launch.account = life, account
    root = os.path.dirname(os.path.dirname(os.path.abspath(directory)))
    try:
        if os.path.exists(layout.STOP):
            layout.write_exit(".", reason="stopped", message="stopped before it started", causer="user")
        else:
            _run(launch, control, root)
    finally:
        layout.nudge(root, launch.uid)
    return 0


def _run(launch: Launch, control: int, root: str) -> None:
    try:
        capture = Capture(".", launch.log_bytes)
        layout.make_durable(".")
    except OSError as exc:
        _refuse(exc)
        return
    if os.path.exists(layout.STAGE) and not _made(launch):
        from pai_backend.engine.local.shim.staging import stage

        if not stage(launch, control, capture, root):
            return
    if os.path.exists(layout.CONTAINER):
        from pai_backend.engine.local.shim import contained

        contained.run(launch, control, capture, root)
        return
    try:
        pipes = Pipes()
        text = command_text(launch.command)
        layout.write_started(".", launch.life)
    except OSError as exc:
        _refuse(exc)
        return
    adopting = adopt_orphans()
    try:
        groups = groups_of(".")
        homes = homes_of(groups)
        try:
            join(groups)
            pid = execute(launch, pipes, text)
        finally:
            leave(groups, homes)
    except OSError as exc:
        capture.close()
        message = f"the command could not be executed: {exc.strerror or exc}"
        layout.write_exit(".", reason="start-failed", message=message, causer=_start_causer(exc))
        return
    pipes.close_writers()
    launch.command, launch.env = "", {}  # done with: secrets, and of a large job half a MiB
    layout.nudge(root, launch.uid)

    from pai_backend.engine.local.shim.supervise import CommandSupervisor

    supervisor = CommandSupervisor(launch, pid, control, pipes, capture, adopting=adopting)
    supervisor.loop()
    capture.close()
    supervisor.record()


def _carry(mark: int) -> None:
    """Take the mark, and with it all that is started here. Where it is refused the variable alone marks."""
    try:
        resource.setrlimit(RLIMIT_LOCKS, (mark, mark))
    except (OSError, ValueError):  # no such limit on this system, or a task of another backend is what this one runs in
        return


def _made(launch: Launch) -> bool:
    """Whether only directories are to be staged, and exist now; the staging program finds the words if not."""

    def make() -> None:
        for path in launch.directories:
            os.makedirs(path, exist_ok=True)

    if not launch.directories:
        return False
    if launch.account:
        return done_as(launch.account, make)
    try:
        make()
    except OSError:
        return False
    return True


def _refuse(exc: OSError) -> None:
    """Record that the task's directory does not take what must be written before the command runs."""
    reason = "disk-full" if exc.errno in (errno.ENOSPC, errno.EDQUOT) else "start-failed"
    message = f"the task's directory could not be written: {exc.strerror}"
    layout.write_exit(".", reason=reason, message=message, causer="resource")


def _start_causer(exc: OSError) -> str:
    """A command that is too long is the user's; a missing bash or a process limit is the machine's."""
    return "user" if exc.errno == errno.E2BIG else "platform"
