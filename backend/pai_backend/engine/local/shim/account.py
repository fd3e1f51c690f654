"""Becoming the account of a task's user, and being in its control groups.

The shim is root's, and so out of the task's reach; its command is not. An account is told as ``UID:GID:GROUP,GROUP``:
the shim looks nothing up. A file of directories, one a line, names the control groups.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Sequence

from pai_backend.engine.local import layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

UMASK = 0o022  # of a task, whatever the backend's is
_ABOVE = 10  # descriptors from here on are not given to programs
_FAULT = 127  # exit status of a child that did not become the program


def become(account: str) -> None:
    """Be this account from now on, for good. Raises OSError where this process may not."""
    uid, gid, groups = account.split(":")
    os.setgroups([int(group) for group in groups.split(",") if group])
    os.setresgid(int(gid), int(gid), int(gid))
    os.setresuid(int(uid), int(uid), int(uid))
    os.umask(UMASK)


def spawn_as(
    account: str, program: str, arguments: list[str], env: dict[str, str], work: str, descriptors: dict[int, int]
) -> int:
    """Start a program as the account, in ``work`` and a session of its own; returns its pid.

    ``descriptors`` are the program's, each with the one of this process that it is a copy of; 0 is /dev/null. For a
    process with one thread: it forks. Raises OSError when the program cannot be executed.
    """

    def run() -> None:
        import signal  # before it is the account, which need not be able to read it

        os.setsid()
        kept = {target: fcntl.fcntl(source, fcntl.F_DUPFD_CLOEXEC, _ABOVE) for target, source in descriptors.items()}
        kept[0] = fcntl.fcntl(os.open(os.devnull, os.O_RDONLY), fcntl.F_DUPFD_CLOEXEC, _ABOVE)
        for target, source in kept.items():
            os.dup2(source, target)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())  # the shim's parent blocked some, and Python ignores others
        for ignored_by_python in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(ignored_by_python, signal.SIG_DFL)
        become(account)
        os.chdir(work)
        os.execve(program, arguments, env)

    return _forked(run)


def done_as(account: str, work: Callable[[], None]) -> bool:
    """Whether ``work``, done as the account in a process of its own, raised no OSError."""

    def run() -> None:
        become(account)
        work()
        os._exit(0)

    try:
        pid = _forked(run)
    except OSError:
        return False
    return os.waitpid(pid, 0)[1] == 0


def _forked(run: Callable[[], None]) -> int:
    """The pid of a child that has executed a program or ended. Raises OSError, of whatever ``run`` raised in it."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            writer = fcntl.fcntl(writer, fcntl.F_DUPFD_CLOEXEC, _ABOVE)
            run()
        except BaseException as exc:  # noqa: BLE001 - the parent raises it
            os.write(writer, str(getattr(exc, "errno", None) or errno.EIO).encode())
        finally:
            os._exit(_FAULT)
    os.close(writer)
    with open(reader, "rb") as file:
        said = file.read()
    if said:
        os.waitpid(pid, 0)
        raise OSError(int(said), os.strerror(int(said)))
    return pid


def groups_of(directory: str) -> list[str]:
    """The control groups of the task in ``directory``; none when it is held to nothing."""
    try:
        with open(os.path.join(directory, layout.GROUPS), encoding="utf-8") as file:
            return file.read().splitlines()
    except FileNotFoundError:
        return []


def join(groups: list[str], pid: int = 0) -> None:
    """Put a process into the groups, by default this one; what it starts from then on is in them. Raises OSError."""
    for group in groups:
        _write(os.path.join(group, "cgroup.procs"), str(pid))


def leave(groups: list[str], homes: list[str], pid: int = 0) -> None:
    """Put a process back where it was before :func:`join`. Where that is refused it goes on within the group."""
    for home in homes[: len(groups)]:
        try:
            _write(os.path.join(home, "cgroup.procs"), str(pid))
        except OSError:  # the command may run by now, and must be kept
            continue


def homes_of(groups: list[str]) -> list[str]:
    """Where this process is now, in the hierarchies of these groups."""
    if not groups:
        return []
    with open("/proc/self/cgroup", encoding="utf-8", errors="surrogateescape") as file:
        unified = [line[3:].rstrip("\n") for line in file if line.startswith("0::")]
    homes = []
    for group in groups:
        above = os.path.dirname(group)
        own = os.path.join(above, os.path.basename(unified[0])) if unified else above
        # With v2 it is beside the group, in one without limits; with v1 it is in the one above.
        is_v2 = os.path.exists(os.path.join(above, "cgroup.subtree_control"))
        homes.append(own if is_v2 and os.path.isdir(own) else above)
    return homes


def admit_no_more(groups: Sequence[str]) -> None:
    """Let no process of the groups make another one: what is being killed cannot be faster than that."""
    for group in groups:
        try:
            _write(os.path.join(group, "pids.max"), "0")
        except FileNotFoundError:  # it counts something else, or was removed with its last process
            continue


def oom_counters(groups: list[str]) -> list[str]:
    """Files that may count how often the kernel has killed in the groups for lack of memory."""
    names = ("memory.events.local", "memory.events", "memory.oom_control")
    return [os.path.join(group, name) for group in groups for name in names]


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
