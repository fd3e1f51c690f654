"""Becoming the account of a task's user. The shim is root's, and so out of the task's reach; its command is not.

An account is told as ``UID:GID:GROUP,GROUP``: the shim looks nothing up.
"""

from __future__ import annotations

import errno
import fcntl
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

UMASK = 0o022  # of a task, whatever the backend's is
_ABOVE = 10  # descriptors from here on are none that a program is given
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
