"""A task in a container: Podman makes it, its keeper conmon becomes a child of this shim, and ends when it does.

The container has the shim's own pipes, so nothing stands between the task and its log. Podman leaves once it runs;
conmon, whose parent that was, comes to the shim as all orphans do, and its exit status is the container's.
Source: podman-run(1), ``--log-driver=passthrough``; conmon's source, which exits as the container did.
"""

from __future__ import annotations

import json
import os
import select
import signal
import time

from pai_backend.engine.local import layout, processes
from pai_backend.engine.local.shim import container_folder as folder
from pai_backend.engine.local.shim.capture import Capture
from pai_backend.engine.local.shim.command import Launch, Pipes, adopt_orphans, spawn
from pai_backend.engine.local.shim.staging import Program, prepared
from pai_backend.engine.local.shim.supervise import CommandSupervisor, ProgramEnd, Verdict, broken_capture

BEGIN_LOOK_S = 0.02  # how often it is looked whether the command runs, once its container does
SILENT_S = 60.0  # above the time that a launcher waits for the addresses of its peers
PODMAN_S = 120.0  # of one call; what takes longer stands still
LOOK_S = 0.25  # how often a task that would be kept is asked whether its command still runs
_CONTAINER = layout.CONTAINER
_MOST_BYTES = 65536  # of a record: the task may write it as long as it likes


def run(launch: Launch, control: int, capture: Capture, root: str) -> None:
    """Fetch the image, run the container to its end, and write that down. Raises OSError."""
    if not _image_is_here(launch, control, capture, root):
        return
    layout.write_started(".", launch.life)
    if not adopt_orphans():
        _refuse("start-failed", "this system gives orphans no new parent, which containers of tasks need", capture)
        return
    pipes = Pipes()
    status = _done(launch, folder.RUN, pipes)
    pipes.close_writers()
    if status != 0:
        _copy(pipes, capture)
        said = capture.last_line("stderr") or f"it ended with status {status}"
        _refuse("start-failed", f"podman could not start the container: {said}", capture)
        _done(launch, folder.REMOVE)
        return
    conmon = int(_text(folder.CONMON))
    init = _init(conmon)
    layout.nudge(root, launch.uid)
    supervisor = ContainerSupervisor(launch, conmon, init, control, pipes, capture, root)
    supervisor.loop()
    capture.close()
    supervisor.record()
    layout.nudge(root, launch.uid)
    _done(launch, folder.REMOVE)


def _image_is_here(launch: Launch, control: int, capture: Capture, root: str) -> bool:
    """Whether the container may be made now; if not, the task's exit is written."""
    pull = folder.words(f"{_CONTAINER}/{folder.PULL}")
    if not pull:
        return True
    os.close(os.open(f"{_CONTAINER}/{folder.PULLING}", os.O_WRONLY | os.O_CREAT, 0o600))
    what = Program("that fetches the image", "its image was fetched", "image-pull-failed", says_on_stderr=True)
    if not prepared(launch, control, capture, root, pull, what):
        return False
    os.unlink(f"{_CONTAINER}/{folder.PULLING}")
    return True


def _done(launch: Launch, name: str, pipes: Pipes | None = None) -> int:
    """Run one of the command lines to its end; its status. Without pipes what it says is lost."""
    line = folder.words(f"{_CONTAINER}/{name}")
    if not line:
        return 1
    own = pipes or Pipes()
    try:
        pid = spawn(launch, line[0], line, own)
        _end_in_time(pid)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except OSError:
        return 127
    finally:
        if pipes is None:
            own.close_writers()
            for reader in own.readers:
                os.close(reader)


def _end_in_time(pid: int) -> None:
    """Wait until a command line has ended, which is killed when Podman stands still: a task must be able to end."""
    watched = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(watched, select.POLLIN)
        if not poll.poll(PODMAN_S * 1000):
            signal.pidfd_send_signal(watched, signal.SIGKILL)
    finally:
        os.close(watched)


def _init(conmon: int) -> processes.Process:
    """The container's first process, which is written down for those who enter the container.

    One that has ended already has no start, also where its number is another's by now: it was a child of conmon's.
    """
    pid = int(_text(folder.INIT))
    fields = processes.stat_fields(pid)
    start = processes.start_time(pid) if fields and fields[1] == str(conmon) else ""
    draft = f"{_CONTAINER}/.{folder.BEGAN}"
    with open(draft, "w", encoding="ascii") as file:
        file.write(start)
    os.rename(draft, f"{_CONTAINER}/{folder.BEGAN}")
    return pid, start


def _text(name: str) -> str:
    with open(f"{_CONTAINER}/{name}", "rb") as file:
        return file.read(_MOST_BYTES).decode("utf-8", "replace").strip()


def _copy(pipes: Pipes, capture: Capture) -> None:
    """Keep what is left in pipes of which nothing holds the other end."""
    for fd, stream in pipes.readers.items():
        while data := os.read(fd, 65536):
            capture.add(stream, data)
        os.close(fd)


def _refuse(reason: str, message: str, capture: Capture) -> None:
    capture.close()
    layout.write_exit(".", reason=reason, message=message, causer="platform")


class ContainerSupervisor(CommandSupervisor):
    """One running container. What is waited for is conmon, what is signalled is the container's first process."""

    def __init__(
        self,
        launch: Launch,
        conmon: int,
        init: processes.Process,
        control: int,
        pipes: Pipes,
        capture: Capture,
        root: str,
    ) -> None:
        self._init = init
        self._root = root
        self._recorded = False
        self._begun = False
        self._silent_until = time.monotonic() + SILENT_S
        super().__init__(launch, conmon, control, pipes, capture, adopting=True)

    def _patience(self) -> float | None:
        usual = super()._patience()
        if usual is None and not self._begun:
            return BEGIN_LOOK_S * 1000
        looks = self._launch.keep and self._status is None and not self._recorded
        return LOOK_S * 1000 if looks and usual is None else usual

    def _over(self) -> bool:
        if not self._begun and self._has_begun():
            self._begun = True
            layout.nudge(self._root, self._launch.uid)
        if self._launch.keep and not self._recorded and not self._stopped and self._status is None:
            self._keep_when_failed()
        return super()._over()

    def _has_begun(self) -> bool:
        """Whether the launcher has said so. One of before it could is taken to have begun after a while."""
        mark = f"{_CONTAINER}/{folder.BEGUN}"
        if time.monotonic() > self._silent_until and not os.path.exists(mark):
            os.close(os.open(mark, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o644))
        return os.path.exists(mark)

    def _keep_when_failed(self) -> None:
        """Say that the command has failed, while the launcher goes on for those who want to look."""
        said = _record() if os.path.exists(f"{_CONTAINER}/{folder.EXIT}") else None
        if said is not None and said["code"] != 0:
            self._recorded = True
            self._write(said, kept=True)
            layout.nudge(self._root, self._launch.uid)

    def _signal_group(self, number: int) -> None:
        processes.send(self._init, number)

    def _leftovers(self) -> list[processes.Process]:
        """Nothing outlives a container's first process; that one outlives conmon where conmon was killed."""
        pid, start = self._init
        return [self._init] if start and processes.start_time(pid) == start else []

    def record(self) -> None:
        """Write ``exit.json``, by what the launcher said. Raises OSError when the directory is gone."""
        if self._recorded:
            return
        end, said = self.end(), _record()
        if end.capture_error is None and said is not None and said["status"] == end.code:
            if said["reason"] == "stopped" and not end.stopped:
                said |= {"reason": "vanished", "message": "its container was stopped by another client"}
                said |= {"causer": "platform"}
            self._write(said)
            return
        reason, message, causer = _unsaid(end)
        number = int(signal.SIGKILL) if end.code == _KILLED else None
        unexplained = reason == "lost"
        layout.write_exit(".", signal=number, reason=reason, message=message, causer=causer, unexplained=unexplained)

    def _write(self, said: dict[str, object], *, kept: bool = False) -> None:
        code, number = said["code"], said["signal"]
        assert code is None or isinstance(code, int)
        assert number is None or isinstance(number, int)
        reason, message, causer = str(said["reason"]), str(said["message"]), str(said["causer"])
        layout.write_exit(".", code=code, signal=number, reason=reason, message=message, causer=causer, kept=kept)


def _unsaid(end: ProgramEnd) -> Verdict:
    """The verdict on a container whose launcher left no record, or one of another end."""
    if end.capture_error is not None:
        return broken_capture(end.capture_error)
    if end.stopped:
        return "stopped", "stopped on request; its container was killed after the grace", "user"
    if end.code < 0:
        return "lost", "the process that keeps its container was killed", "platform"
    how = f"its container ended with status {end.code}"
    if end.code == _KILLED:
        return "lost", f"{how}: what runs the command in it was killed, perhaps for lack of memory", "platform"
    return "lost", f"{how}, and what runs the command in it left no word", "platform"


_KILLED = 128 + signal.SIGKILL
_REASONS = frozenset(
    {
        *("exited", "signalled", "stopped", "start-failed", "input-failed", "out-of-memory"),
        *("disk-full", "port-conflict", "ssh-barrier"),
    }
)


def _record() -> dict[str, object] | None:
    """What the launcher says of the end, as ``engine.bundle.record`` has it; None when it says nothing that can be.

    It is written by a process of the task, which may only tell what a task may tell of itself. ``status`` is that which
    its container then has.
    """
    try:
        said = json.loads(_text(folder.RECORD))
        code, number, reason = said["code"], said["signal"], said["reason"]
        causer, message = said["causer"], str(said["message"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    if not (_within(code, 0, 255) and _within(number, 1, 64)) or (code is not None and number is not None):
        return None
    if str(reason) not in _REASONS or str(causer) not in ("user", "resource", "platform"):
        return None
    status = code if code is not None else 128 + number if number is not None else 255
    return {"code": code, "signal": number, "reason": reason, "causer": causer, "message": message, "status": status}


def _within(number: object, least: int, most: int) -> bool:
    return number is None or (type(number) is int and least <= number <= most)
