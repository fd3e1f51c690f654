"""The shim's loop: keep the command's output, obey ``stop``, end what it leaves behind, write the exit.

It sleeps in ``poll`` until output, a child's death or a line in ``control`` wakes it. How a command ended is recorded
in words that claim nothing which was not seen. That the kernel killed for lack of memory is proven by the counter of
the control group only; without one (macOS, a kernel before 4.13, no control group) nothing is claimed.
Source: the kernel's documentation, cgroup-v2 ``memory.events`` and cgroup-v1 ``memory.oom_control``.
"""

from __future__ import annotations

import _socket  # the ``socket`` module costs ten times as much, and each shim would keep it
import errno
import os
import select
import signal
import time

from pai_backend.engine.local import layout, processes
from pai_backend.engine.local.layout import LOOPBACK
from pai_backend.engine.local.shim.account import admit_no_more, groups_of, oom_counters
from pai_backend.engine.local.shim.capture import Capture
from pai_backend.engine.local.shim.command import Launch, Pipes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MOUNT = "/sys/fs/cgroup"
MEMBERSHIP = "/proc/self/cgroup"


def oom_kills(mount: str = MOUNT, membership: str = MEMBERSHIP, own: Sequence[str] = ()) -> int | None:
    """How many processes of the task's control group the out-of-memory killer has ended; None when unknown.

    ``own`` are counters of groups of the task alone; else those of the group that this process is in count.
    """
    for path in (*own, *_counters(mount, membership)):
        try:
            with open(path, encoding="ascii") as file:
                lines = file.read().splitlines()
        except OSError:  # not here: the hierarchy may be mounted from further down, as in a container
            continue
        for line in lines:
            name, _, count = line.partition(" ")
            if name == "oom_kill" and count.isdigit():
                return int(count)
    return None


def _counters(mount: str, membership: str) -> list[str]:
    """Where the counter may be, the most exact place first."""
    try:
        with open(membership, encoding="utf-8", errors="surrogateescape") as file:
            rows = [line.rstrip("\n").split(":", 2) for line in file]
    except OSError:
        return []
    found = []
    for _, controllers, path in (row for row in rows if len(row) == 3):
        inside = "" if path == "/" else path
        if "memory" in controllers.split(","):
            found += [f"{mount}/memory{inside}/memory.oom_control", f"{mount}/memory/memory.oom_control"]
        elif not controllers:
            for name in ("memory.events.local", "memory.events"):
                found += [f"{mount}{inside}/{name}", f"{mount}/{name}"]
    return found


Verdict = tuple[str, str, str]
"""Reason, message, causer."""

_KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)  # of the command itself, or of the program that bash ran for it


class ProgramEnd:
    """What was seen of the end of a program.

    ``code`` is its exit status, minus the number of the signal that ended it; ``survivors`` counts what could
    not be killed; ``visited`` says whether SSH sessions were in the task.
    """

    def __init__(
        self,
        code: int,
        *,
        stopped: bool = False,
        capture_error: OSError | None = None,
        survivors: int = 0,
        visited: bool = False,
        oom_kills: int = 0,
    ) -> None:
        self.code = code
        self.stopped = stopped
        self.capture_error = capture_error
        self.survivors = survivors
        self.visited = visited
        self.oom_kills = oom_kills

    @property
    def failed(self) -> bool:
        """Whether it did not succeed, by itself."""
        return not self.stopped and (self.code != 0 or self.capture_error is not None)

    @property
    def how(self) -> str:
        """In a few words."""
        return f"exited with status {self.code}" if self.code >= 0 else f"ended by signal {_signal_name(-self.code)}"


def judge(end: ProgramEnd, launch: Launch) -> Verdict:
    """The verdict on a command."""
    reason, message, causer = _cause(end, launch)
    if end.survivors:
        message += f"; {end.survivors} of its processes could not be killed"
    return reason, message, causer


def _cause(end: ProgramEnd, launch: Launch) -> Verdict:
    if end.capture_error is not None:
        return broken_capture(end.capture_error)
    if end.stopped:
        return "stopped", f"stopped on request; {end.how}", "user"
    if end.code in _KILLED and end.oom_kills:
        return "out-of-memory", f"{end.how} while the kernel killed processes here for lack of memory", "user"
    if end.failed and not end.survivors and not end.visited and (taken := taken_port(launch.ports)):
        return "port-conflict", f"{end.how}; another program listens on its {taken}", "platform"
    return ("exited" if end.code >= 0 else "signalled"), end.how, "user"


def broken_capture(error: OSError) -> Verdict:
    """The verdict when output could not be kept."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "disk-full", "the disk became full while its output was written; make room and retry", "resource"
    if error.errno == errno.ENOENT:
        return "vanished", "the task's directory was removed while it ran", "platform"
    return "lost", f"its output could not be written: {error.strerror}", "platform"


def taken_port(ports: dict[str, tuple[int, ...]]) -> str:
    """A port of the task with a listener although nothing of the task is left; empty when there is none."""
    for label, numbers in ports.items():
        for port in numbers:
            if _listened_on(port):
                return f"port {port} ({label})"
    return ""


def _listened_on(port: int) -> bool:
    return any(not _bindable(address, port) for address in ("0.0.0.0", LOOPBACK))  # macOS tells them apart


def _bindable(address: str, port: int) -> bool:
    probe = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    try:
        probe.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)  # as servers do: TIME_WAIT is free
        probe.bind((address, port))
    except OSError as exc:
        return exc.errno != errno.EADDRINUSE
    finally:
        probe.close()
    return True


def _signal_name(number: int) -> str:
    try:
        return f"{number} ({signal.Signals(number).name})"
    except ValueError:  # a real-time signal has no name
        return str(number)


LEFTOVER_GRACE_S = 2.0  # between TERM and KILL for what a command leaves behind when it ends by itself
GIVE_UP_S = 5.0  # after KILL: a process in uninterruptible sleep may outlive any signal
LOOK_S = 0.02  # how often leftovers are looked for once the command has ended
READ_BYTES = 65536  # the capacity of a pipe, pipe(7)
FINAL_READS = 64  # bounds the last look at a pipe, in case something that cannot be killed still fills it


class CommandSupervisor:
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
        """Keep what can be read; False when there is nothing now or the stream has ended."""
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

    def end(self) -> ProgramEnd:
        """What was seen of the end. Call it when the program has ended."""
        status = self._status or 0
        before, after = self._oom_kills, oom_kills(own=oom_counters(self._groups))
        return ProgramEnd(
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
        layout.write_exit(
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
        """Release what the loop needed; for a shim that goes on afterwards."""
        signal.set_wakeup_fd(-1)
        os.close(self._wake)
        os.close(self._wakeup)
