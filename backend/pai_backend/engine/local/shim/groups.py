"""Being in a task's control groups, and what they count. A file of directories, one a line, names the groups."""

from __future__ import annotations

import os
from collections.abc import Sequence

from pai_backend.engine.local import layout


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
