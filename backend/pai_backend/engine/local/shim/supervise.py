"""The shim's loop: keep the command's output, obey ``stop``, end what it leaves behind, write the exit.

It sleeps in ``poll`` until output, a child's death or a line in ``control`` wakes it.
"""

from __future__ import annotations

import os
import select
import signal
import time

from pai_backend.engine.local import layout, processes, records
from pai_backend.engine.local.shim.capture import Capture
from pai_backend.engine.local.shim.command import Pipes
from pai_backend.engine.local.shim.groups import admit_no_more, groups_of, oom_counters
from pai_backend.engine.local.shim.launch import Launch
from pai_backend.engine.local.shim.memory import oom_kills
from pai_backend.engine.local.shim.verdict import End, judge

LEFTOVER_GRACE_S = 2.0  # between TERM and KILL for what a command leaves behind when it ends by itself
GIVE_UP_S = 5.0  # after KILL: a process in uninterruptible sleep may outlive any signal
LOOK_S = 0.02  # how often leftovers are looked for once the command has ended
READ_BYTES = 65536  # the capacity of a pipe, pipe(7)
FINAL_READS = 64  # bounds the last look at a pipe, in case something that cannot be killed still fills it


class Supervisor:
    """One running command, from its execution until nothing of it is left."""

    def __init__(
        self, launch: Launch, main: int, control: int, pipes: Pipes, capture: Capture, *, adopting: bool
    ) -> None:
        """``main`` is the command's pid; ``adopting`` whether orphans become children of this process."""
        self._launch = launch
        self._groups = groups_of(".")
        self._oom_kills = oom_kills(own=oom_counters(self._groups))
        self._main = main
        self._control = control
        self._pipes = pipes
        self._capture = capture
        self._adopting = adopting
        self._poll = select.poll()
        self._status: int | None = None  # wait status of the command; None while it runs
        self._childless = False
        self._stopped = False
        self._deadline: float | None = None  # monotonic; when TERM becomes KILL
        self._told: set[processes.Process] = set()  # who has had TERM
        self._killed = False  # whether the group has had KILL
        self._survivors = 0  # leftovers at the last look
        self._wake, self._wakeup = os.pipe()
        for fd in (self._wake, self._wakeup):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(self._wakeup, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)  # without a handler nothing is written
        for fd in (self._wake, control, *pipes.readers):
            self._poll.register(fd, select.POLLIN)
        self._reap()  # it may have ended before there was a handler

    def loop(self) -> None:
        """Return when the command and everything it left behind is gone, and all output is kept."""
        while not self._over():
            for fd, _ in self._poll.poll(self._patience()):
                if fd == self._control:
                    self._obey()
                elif fd == self._wake:
                    os.read(fd, READ_BYTES)
                else:
                    self._copy(fd)
            if self._capture.error is not None and not self._stopped and self._deadline is None:
                self._ask_to_end(LEFTOVER_GRACE_S)
            self._reap()
        for fd in list(self._pipes.readers):
            reads = 0
            while reads < FINAL_READS and self._copy(fd):
                reads += 1

    def _patience(self) -> float | None:
        """Milliseconds that the loop may sleep; None is for ever."""
        if self._status is not None or self._killed:
            return LOOK_S * 1000
        if self._deadline is None:
            return None
        return max(0.0, self._deadline - time.monotonic()) * 1000 + 1

    def _over(self) -> bool:
        """Carry out what the time demands; True when nothing is left to wait for."""
        now = time.monotonic()
        late = self._deadline is not None and now >= self._deadline
        if self._status is None:
            if late and not self._killed:
                self._killed = True
                self._signal_group(signal.SIGKILL)
            return False
        left = self._leftovers()
        # The kernel knows of children that a look at all processes missed, as one forked and ended meanwhile.
        unseen = self._adopting and not self._childless and not left
        self._survivors = len(left) + unseen
        if not self._survivors:
            return True
        if self._deadline is None:
            self._deadline = now + LEFTOVER_GRACE_S
        if late:
            admit_no_more(self._groups)
        for process in left:
            if late:
                processes.send(process, signal.SIGKILL)
            elif process not in self._told:
                self._told.add(process)
                processes.send(process, signal.SIGTERM)
        return now >= self._deadline + GIVE_UP_S

    def _leftovers(self) -> list[processes.Process]:
        """Living processes of the task, now that its command has ended."""
        found: list[processes.Process] = []
        if not self._childless:
            found = processes.descendants(os.getpid())
        # Without adoption only the mark finds orphans; with it, only what came in from outside needs it,
        # and into a task that is kept one may go on coming in.
        if not self._adopting or (os.path.exists(layout.SESSIONS) and not self._kept()):
            found += [each for each in processes.marked(self._launch.uid, self._groups) if each not in found]
        return found

    def _kept(self) -> bool:
        """Whether the task stays for its user to look at, now that its command has ended."""
        return self._launch.keep and not self._stopped and (self._status != 0 or self._capture.error is not None)

    def _obey(self) -> None:
        """Read requests: ``stop MILLISECONDS`` of grace. Anything else is not from the engine."""
        try:
            lines = os.read(self._control, READ_BYTES).decode("ascii", "replace").splitlines()
        except BlockingIOError:
            return
        for line in lines:
            verb, _, grace = line.partition(" ")
            if verb == "stop" and grace.isdigit() and self._status is None:
                self._stopped = True
                self._ask_to_end(int(grace) / 1000)

    def _ask_to_end(self, grace_s: float) -> None:
        """TERM the group now, once; KILL after the grace, or earlier if an earlier request said so."""
        deadline = time.monotonic() + grace_s
        if self._deadline is None:
            if self._status is None and self._adopting:  # whose TERM comes with the group's: one is enough
                self._told.update(processes.group_below(os.getpid(), self._main))
            self._signal_group(signal.SIGTERM)
            self._deadline = deadline
        self._deadline = min(self._deadline, deadline)

    def _signal_group(self, number: int) -> None:
        """Signal the command's group. Its number cannot be another's while the command is not yet reaped."""
        if self._status is None:
            os.killpg(self._main, number)

    def _copy(self, fd: int) -> bool:
        """Keep what there is to read; False when there is nothing now or the stream has ended."""
        try:
            data = os.read(fd, READ_BYTES)
        except BlockingIOError:
            return False
        if data:
            self._capture.add(self._pipes.readers[fd], data)
            return True
        self._poll.unregister(fd)
        del self._pipes.readers[fd]
        os.close(fd)
        return False

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self._childless = True
                return
            if pid == 0:
                self._childless = False
                return
            if pid == self._main:
                self._status = status

    def end(self) -> End:
        """What was seen of the end. Call it when the program has ended."""
        status = self._status or 0
        before, after = self._oom_kills, oom_kills(own=oom_counters(self._groups))
        return End(
            os.waitstatus_to_exitcode(status),
            stopped=self._stopped,
            capture_error=self._capture.error,
            survivors=self._survivors,
            visited=os.path.exists(layout.SESSIONS),
            oom_kills=0 if before is None or after is None else after - before,
        )

    def record(self) -> None:
        """Write ``exit.json``. Raises OSError when the directory is gone."""
        end = self.end()
        reason, message, causer = judge(end, self._launch)
        code, number = (end.code, None) if end.code >= 0 else (None, -end.code)
        records.write_exit(
            ".",
            code=code,
            signal=number,
            reason=reason,
            message=message,
            causer=causer,
            kept=self._kept(),
            unexplained=reason == "vanished",
        )

    def close(self) -> None:
        """Let go of what the loop needed; for a shim that goes on afterwards."""
        signal.set_wakeup_fd(-1)
        os.close(self._wake)
        os.close(self._wakeup)
