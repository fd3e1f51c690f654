"""Holding a task to its memory, CPUs and number of processes, by control groups where the machine lets us make some.

A group is made below the one that this process is in: with cgroup v1 as root (or where its directory may be written),
with v2 where systemd has delegated the group (``Delegate=yes``). What cannot be held to is named, with the reason.
Source: the kernel's documentation, cgroup-v1 and cgroup-v2; systemd, "Control Group APIs and Delegation".
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pai_backend.model.ids import TaskUid

CONTROLLERS = ("memory", "cpu", "pids")
_PERIOD_US = 100_000  # the kernel's own: a quota holds for so long
_BACKEND = "pai-backend"  # where v2 puts what is in a group that is to have groups with limits
_TASK = "pai-task-"


@dataclass(frozen=True)
class TaskLimits:
    """What a task may use; 0 is no limit."""

    memory_mb: int
    cpus: int
    pids: int

    def files(self, *, v2: bool) -> dict[str, tuple[tuple[str, str], ...]]:
        """By controller, the files of a group in the order in which they are written, and their content."""
        memory, quota = str(self.memory_mb * 2**20), str(self.cpus * _PERIOD_US)
        made: dict[str, tuple[tuple[str, str], ...]] = {}
        if self.memory_mb:
            v1_files = (("memory.limit_in_bytes", memory), ("memory.memsw.limit_in_bytes", memory))
            made["memory"] = (("memory.max", memory), ("memory.swap.max", "0")) if v2 else v1_files
        if self.cpus:
            v1_files = (("cpu.cfs_period_us", str(_PERIOD_US)), ("cpu.cfs_quota_us", quota))
            made["cpu"] = (("cpu.max", f"{quota} {_PERIOD_US}"),) if v2 else v1_files
        if self.pids:
            made["pids"] = (("pids.max", str(self.pids)),)
        return made


@dataclass(frozen=True)
class ControlGroups:
    """Where groups of tasks are made, by controller, and why not for the others."""

    v1: Mapping[str, Path]
    v2: Path | None
    v2_controllers: frozenset[str]
    reasons: Mapping[str, str]
    """Controller -> why tasks are not held to what it counts."""

    def make(self, uid: TaskUid, limits: TaskLimits) -> list[Path]:
        """The groups of a task, made as far as they are not there. Raises OSError."""
        groups = []
        files = limits.files(v2=False)
        for controller, base in self.v1.items():
            if controller in files:
                groups.append(_made(base / f"{_TASK}{uid}", files[controller]))
        if self.v2 is not None:
            wanted = limits.files(v2=True)
            own = [file for name in sorted(self.v2_controllers & wanted.keys()) for file in wanted[name]]
            if own:
                groups.append(_made(self.v2 / f"{_TASK}{uid}", own))
        return groups

    @property
    def hold_processes(self) -> bool:
        """Whether they hold a task to its number of processes."""
        return "pids" in self.v1 or "pids" in self.v2_controllers

    def of(self, uid: TaskUid) -> list[Path]:
        """The groups of a task that are there, whether or not its directory still names them."""
        return [group for base in self._bases() if (group := base / f"{_TASK}{uid}").is_dir()]

    def remove(self, uid: TaskUid) -> None:
        """Remove the groups of a task that is over; one with a process that nothing could kill stays."""
        for group in self.of(uid):
            with suppress(OSError):
                os.rmdir(group)

    def uids(self) -> set[TaskUid]:
        """The tasks that have groups, of whatever backend."""
        return {TaskUid(path.name.removeprefix(_TASK)) for base in self._bases() for path in base.glob(f"{_TASK}*")}

    def _bases(self) -> set[Path]:
        return {*self.v1.values(), *([self.v2] if self.v2 is not None else [])}


NONE = ControlGroups({}, None, frozenset(), {})
"""No limits at all."""


def control_groups(mounts: str = "/proc/self/mountinfo", membership: str = "/proc/self/cgroup") -> ControlGroups:
    """The groups that this process may make. For cgroup v2 it moves what is in its own group into a group of that."""
    try:
        places = _places(Path(mounts).read_text("utf-8"), Path(membership).read_text("utf-8"))
    except OSError:
        return ControlGroups({}, None, frozenset(), dict.fromkeys(CONTROLLERS, "this system has no control groups"))
    v1, reasons = {}, {}
    for controller in CONTROLLERS:
        base = places.get(controller)
        if base is None:
            reasons[controller] = "its control group is not mounted here"
        elif os.access(base / "cgroup.procs", os.W_OK) and os.access(base, os.W_OK):
            v1[controller] = base
        else:
            reasons[controller] = f"{base} may not be written"
    v2, found = _delegated(places.get(""), frozenset(CONTROLLERS) - v1.keys(), reasons)
    return ControlGroups(v1, v2, found, {name: why for name, why in reasons.items() if name not in found})


def _places(mounts: str, membership: str) -> dict[str, Path]:
    """The directory of this process's own group by controller; v2's has the name "". Source: proc(5), cgroups(7)."""
    own = {}
    for line in membership.splitlines():
        _, names, path = line.split(":", 2)
        for name in names.split(","):
            own[name] = path
    found = {}
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        root, mount = before.split(" ")[3:5]
        for name in _hierarchy(kind, options):
            if name in own and name not in found:
                inside = os.path.relpath(own[name], root) if own[name].startswith(root.rstrip("/")) else "."
                found[name] = Path(os.path.normpath(os.path.join(mount, inside)))
    return found


def _hierarchy(kind: str, options: str) -> list[str]:
    """What a mount of this kind is of, by the names in a list of groups; nothing where it is of no groups."""
    if kind == "cgroup2":
        return [""]
    return options.split(",") if kind == "cgroup" else []


def _delegated(
    base: Path | None, wanted: frozenset[str], reasons: dict[str, str]
) -> tuple[Path | None, frozenset[str]]:
    """The v2 group below which groups can be made, and the controllers that it can give them."""
    if base is None or not wanted:
        return None, frozenset()
    try:
        there = wanted & set((base / "cgroup.controllers").read_text("ascii").split())
        if not there:
            return None, frozenset()
        if not _is_ours(base):
            for name in there:
                reasons[name] = f"{base} is not delegated to this backend; run it as a systemd unit with Delegate=yes"
            return None, frozenset()
        # A group that has processes cannot give its groups limits, so those here move into one of its own.
        (base / _BACKEND).mkdir(exist_ok=True)
        for pid in (base / "cgroup.procs").read_text("ascii").split():
            with suppress(ProcessLookupError):
                (base / _BACKEND / "cgroup.procs").write_text(pid, "ascii")
        (base / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in sorted(there)), "ascii")
    except OSError as exc:
        for name in wanted:
            reasons[name] = f"{base}: {exc.strerror or exc}"
        return None, frozenset()
    return base, frozenset(there)


def _is_ours(base: Path) -> bool:
    """Whether systemd says that it leaves this group to us (from 251 on to an ordinary user, too).

    That it may be written is not enough: a desktop's terminal has a group of its user's, with other programs in it.
    """
    if not os.access(base / "cgroup.procs", os.W_OK):
        return False
    for mark in ("user.delegate", "trusted.delegate"):
        with suppress(OSError):
            if os.getxattr(base, mark) == b"1":
                return True
    return False


def _made(group: Path, files: tuple[tuple[str, str], ...] | list[tuple[str, str]]) -> Path:
    group.mkdir(exist_ok=True)
    for name, content in files:
        path = group / name
        optional = "swap" in name or "memsw" in name  # kernels without swap have no limit of it
        if path.exists() or not optional:
            path.write_text(content, "ascii")
    return group
