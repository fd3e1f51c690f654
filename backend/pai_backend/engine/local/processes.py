"""Finding and ending the processes of a task, wherever they have gone.

A process belongs to a task when it descends from the task's shim, is in the task's control groups, or carries the
task's mark (SSH sessions, and daemons whose parents are gone). The mark is a variable of its environment, and on Linux
also a limit, which ``env -i`` does not remove: that of file locks, which nothing has used since Linux 2.4.25,
getrlimit(2). Nothing is signalled by a remembered number alone: a process is a (pid, start time) pair, looked up again
through a pidfd where there is one.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress

from pai_backend.engine.local.layout import MARK
from pai_backend.engine.local.shim.account import admit_no_more

if sys.platform != "linux":
    import subprocess


RLIMIT_LOCKS = 10  # asm-generic/resource.h; Python has no name for it

Process = tuple[int, str]
"""Number and start time: one process, told apart from a later one with the same number."""


def start_time(pid: int) -> str:
    """The start time of a process in the system's own words; empty when there is none of that number."""
    if sys.platform != "linux":
        return _ps("-o", "lstart=", "-p", str(pid)).strip()
    stat = _stat(pid)
    return stat[2] if stat and stat[1] not in "ZX" else ""


def descendants(ancestor: int) -> list[Process]:
    """All living processes below ``ancestor``; zombies do not count. Linux only, elsewhere empty."""
    if sys.platform != "linux":
        return []
    stats = {pid: stat for pid in all_pids() if (stat := _stat(pid))}
    children: dict[int, list[int]] = {}
    for pid, (parent, _, _) in stats.items():
        children.setdefault(parent, []).append(pid)
    found, queue = [], list(children.get(ancestor, ()))
    while queue:
        pid = queue.pop()
        queue.extend(children.get(pid, ()))
        _, state, start = stats[pid]
        if state not in "ZX":
            found.append((pid, start))
    return found


def group_below(ancestor: int, group: int) -> list[Process]:
    """Those of :func:`descendants` that are in a process group."""
    return [process for process in descendants(ancestor) if _group(process[0]) == group]


def limit_mark(uid: str) -> int:
    """The limit of file locks that the task's processes have, as their mark."""
    digest = 0xCBF29CE484222325  # FNV-1a of 64 bits: without an import, as a shim comes here late in its life
    for byte in uid.encode():
        digest = (digest ^ byte) * 0x100000001B3 % 2**64
    return digest % 2**56 + 2**56  # below infinity, above what anybody sets


def threads_here(uid: int | None = None) -> int:
    """How many threads the processes of an account have, as RLIMIT_NPROC counts them; 0 where that is not known.

    None is the account of this process.
    """
    if sys.platform != "linux":
        return 0
    count = 0
    for pid in all_pids():
        with suppress(OSError):  # gone just now
            if os.stat(f"/proc/{pid}").st_uid == (os.geteuid() if uid is None else uid):
                count += len(os.listdir(f"/proc/{pid}/task"))
    return count


def mark(pid: int, uid: str) -> None:
    """Give a process that was just started, and all that it starts, the task's limit; it may be gone already."""
    if sys.platform == "linux":
        import resource

        limit = limit_mark(uid)
        with suppress(OSError, ValueError):
            resource.prlimit(pid, RLIMIT_LOCKS, (limit, limit))


def machine_life() -> str:
    """A word that is another one after the machine, or the container that all this runs in, has started again."""
    boot = _read("/proc/sys/kernel/random/boot_id").decode("ascii", "replace").strip()
    return f"{boot}.{start_time(1)}".replace(" ", "-")


def marked(uid: str, groups: Sequence[str] = ()) -> list[Process]:
    """All living processes of this user that carry the task's mark, but for this one: a shim carries it too.

    Those in ``groups``, the task's control groups, count as well: a task can lower its limit, and with it the mark.
    """
    if sys.platform != "linux":
        return _marked_by_ps(uid)
    variable, limit = f"{MARK}={uid}".encode(), str(limit_mark(uid)).encode()
    held = {pid for group in groups for pid in _read(os.path.join(group, "cgroup.procs")).split()}
    found = []
    for pid in all_pids():
        if pid == os.getpid():
            continue
        if (
            str(pid).encode() in held
            or _has_limit(pid, limit)
            or variable in _read(f"/proc/{pid}/environ").split(b"\0")
        ) and (start := start_time(pid)):
            found.append((pid, start))
    return found


def _has_limit(pid: int, limit: bytes) -> bool:
    rows = _read(f"/proc/{pid}/limits").splitlines()
    return any(row.startswith(b"Max file locks") and limit in row.split() for row in rows)


def _read(path: str) -> bytes:
    """A file of /proc; empty for a process that is gone or another user's: not ours to end."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def send(process: Process, number: int) -> None:
    """Signal exactly this process; nothing happens when it is gone, even if its number was reused."""
    pid, start = process
    try:
        if not hasattr(os, "pidfd_open"):
            if start_time(pid) == start:
                os.kill(pid, number)
            return
        fd = os.pidfd_open(pid)
    except OSError:  # gone
        return
    try:
        if start_time(pid) == start:
            signal.pidfd_send_signal(fd, number)
    except OSError:  # gone just now, or it changed to a user that is out of reach
        return
    finally:
        os.close(fd)


def kill_marked(uid: str, groups: Sequence[str] = (), within_s: float = 2.0) -> bool:
    """KILL all that :func:`marked` finds until nothing is left; False when ``within_s`` was not enough.

    For tasks whose shim is gone: no process is left to give grace or to keep output. Blocks; use a thread.
    """
    deadline = time.monotonic() + within_s
    admit_no_more(groups)
    while found := marked(uid, groups):
        for process in found:
            send(process, signal.SIGKILL)
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)  # the kernel tells only the parent that a process has ended
    return True


def _group(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return 0


def all_pids() -> list[int]:
    """The numbers of all processes. Linux only."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _stat(pid: int) -> tuple[int, str, str] | None:
    """(parent, state, start time) of a process; None when there is none of that number."""
    fields = stat_fields(pid)
    return (int(fields[1]), fields[0], fields[19]) if fields else None


def stat_fields(pid: int) -> list[str]:
    """The fields of a process behind its name, which may hold spaces and brackets, proc(5); none when it is gone."""
    text = _read(f"/proc/{pid}/stat").decode("ascii", "replace")
    return text[text.rindex(")") + 2 :].split() if text else []


if sys.platform != "linux":

    def _ps(*arguments: str) -> str:
        command = ["ps", *arguments]
        return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False).stdout

    def _marked_by_ps(uid: str) -> list[Process]:
        found = []
        for line in _ps("-xwwE", "-o", "pid=,command=").splitlines():
            pid, _, rest = line.strip().partition(" ")
            if f" {MARK}={uid} " in f" {rest} " and (start := start_time(int(pid))):
                found.append((int(pid), start))
        return found
