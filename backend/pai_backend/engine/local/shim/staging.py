"""Fetching a task's inputs before its command runs: another program, kept by the same shim in the same logs.

Until it is done the task has not started, and a stop ends it. It may be cut short at any instant and run again:
the command was not executed, and the program takes up what is half done.
"""

from __future__ import annotations

import os
import sys

from pai_backend.engine.local import layout, processes
from pai_backend.engine.local.shim import container_folder
from pai_backend.engine.local.shim.capture import Capture
from pai_backend.engine.local.shim.command import Launch, Pipes, adopt_orphans, spawn
from pai_backend.engine.local.shim.supervise import CommandSupervisor, ProgramEnd, broken_capture

PROGRAM = "pai_backend.storage.stage"


class Program:
    """What is run before a command, in words. (``dataclasses`` cost the shim time that every start waits for.)"""

    def __init__(self, which: str, doing: str, failure: str, *, says_on_stderr: bool = False) -> None:
        """``which`` program it is, ``doing`` what, the reason of an exit for its ``failure``.

        ``says_on_stderr``: whether its standard output is no part of the task's.
        """
        self.which = which
        self.doing = doing
        self.failure = failure
        self.says_on_stderr = says_on_stderr


INPUTS = Program("that fetches inputs", "its inputs were fetched", "input-failed")


def stage(launch: Launch, control: int, capture: Capture, root: str) -> bool:
    """Whether the command may run now; if not, the task's exit is written. Raises OSError."""
    if os.path.exists(layout.STAGING):
        processes.kill_marked(launch.uid)  # what a shim that was killed had begun
    os.close(os.open(layout.STAGING, os.O_WRONLY | os.O_CREAT, 0o600))
    inside = container_folder.words(f"{layout.CONTAINER}/{container_folder.STAGE}")
    # -E and -P: neither the task's Python variables nor what lies in its directory decide what runs here.
    arguments = [sys.executable, "-E", "-P", "-m", PROGRAM, os.path.abspath(layout.STAGE)]
    return prepared(launch, control, capture, root, inside or arguments, INPUTS)


def prepared(launch: Launch, control: int, capture: Capture, root: str, arguments: list[str], what: Program) -> bool:
    """Run a program that comes before the command; whether that may run now. As :func:`stage`."""
    pipes = Pipes()
    if what.says_on_stderr:
        os.dup2(pipes.writers[1], pipes.writers[0])
    adopting = adopt_orphans()
    try:
        pid = spawn(launch, arguments[0], arguments, pipes)
    except OSError as exc:
        message = f"the program {what.which} could not be executed: {exc.strerror or exc}"
        layout.write_exit(".", reason="start-failed", message=message, causer="platform")
        return False
    pipes.close_writers()
    layout.nudge(root, launch.uid)
    supervisor = CommandSupervisor(launch, pid, control, pipes, capture, adopting=adopting)
    supervisor.loop()
    supervisor.close()
    return _judged(supervisor.end(), capture, what)


def _judged(end: ProgramEnd, capture: Capture, what: Program) -> bool:
    if end.stopped or os.path.exists(layout.STOP):
        verdict = ("stopped", f"stopped while {what.doing}", "user")
    elif end.capture_error is not None:
        verdict = broken_capture(end.capture_error)
    elif not end.failed:
        return True
    else:
        said = capture.last_line("stderr").removeprefix("pai: ")
        verdict = (what.failure, said or f"the program {what.which} {end.how}", "user")
    capture.close()
    reason, message, causer = verdict
    layout.write_exit(".", reason=reason, message=message, causer=causer)
    return False
