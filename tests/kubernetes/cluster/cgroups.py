"""Control groups of a node, so that two kubelets on one machine do not take each other's pods for their own."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from tests.kubernetes.cluster.commands import until

MOUNT = Path("/sys/fs/cgroup")
_WANTED = ("cpuset", "cpu", "io", "memory", "hugetlb", "pids")  # what kubelet asks for, where the kernel has it
_EMPTY_S = 20.0


def unified(mount: Path = MOUNT) -> bool:
    """Whether this machine has cgroup v2 alone. Of a mixed one kubelet uses the controllers of v1."""
    return (mount / "cgroup.controllers").exists()


def create(name: str, mount: Path = MOUNT) -> None:
    """Make a group that has every controller."""
    if unified(mount):
        _delegate(mount)
        (mount / name).mkdir(exist_ok=True)
        return
    for hierarchy in _hierarchies(mount):
        group = hierarchy / name
        group.mkdir(exist_ok=True)
        for file in ("cpuset.cpus", "cpuset.mems"):  # a new cpuset of v1 allows nothing
            if (hierarchy / file).exists():
                (group / file).write_text((hierarchy / file).read_text())


async def remove(name: str, mount: Path = MOUNT) -> None:
    """Remove the group and all below it. Its processes have been killed, but the kernel may still count them."""
    groups = [mount / name] if unified(mount) else [hierarchy / name for hierarchy in _hierarchies(mount)]

    async def gone() -> bool:
        left = [group for group in groups if group.exists() and not _removed(group)]
        return not left

    await until(gone, f"the end of the processes in the control group {name}", _EMPTY_S, 0.05)


def _removed(group: Path) -> bool:
    """Remove the empty ones below and it itself; False when some are not empty yet."""
    empty = True
    for inner in sorted((path for path in group.rglob("*") if path.is_dir()), reverse=True):
        empty &= _rmdir(inner)
    return _rmdir(group) and empty


def _rmdir(group: Path) -> bool:
    try:
        group.rmdir()
    except FileNotFoundError:
        return True
    except OSError as error:
        # A cgroup with processes is busy; one that has others below it is "not empty" or busy.
        if error.errno in (errno.EBUSY, errno.ENOTEMPTY):
            return False
        raise
    return True


def _hierarchies(mount: Path) -> list[Path]:
    return sorted(path for path in mount.iterdir() if path.is_dir() and not path.is_symlink())


def _delegate(mount: Path) -> None:
    """Give the root's controllers to its children.

    In a container the root has processes, and v2 refuses to divide a group that has some: they move into a group
    ``init`` first, as every container engine does that runs inside of a container.
    """
    there = (mount / "cgroup.controllers").read_text().split()
    control = mount / "cgroup.subtree_control"
    missing = [name for name in _WANTED if name in there and name not in control.read_text().split()]
    if not missing:
        return
    order = " ".join(f"+{name}" for name in missing)
    try:
        control.write_text(order)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        leaf = mount / "init"
        leaf.mkdir(exist_ok=True)
        for pid in (mount / "cgroup.procs").read_text().split():
            _move(pid, leaf)
        control.write_text(order)


def _move(pid: str, group: Path) -> None:
    descriptor = os.open(group / "cgroup.procs", os.O_WRONLY | os.O_CREAT)
    try:
        os.write(descriptor, pid.encode())
    except ProcessLookupError:
        pass  # it has ended meanwhile
    except OSError as error:
        if error.errno != errno.EINVAL:  # a thread of the kernel cannot be moved, and does not count
            raise
    finally:
        os.close(descriptor)
