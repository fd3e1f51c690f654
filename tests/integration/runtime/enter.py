"""Become the first process of a container: ``unshare --mount --pid --uts --fork python enter.py DESCRIPTION``.

DESCRIPTION is JSON, see ``rooms.Room``. It does what a container runtime does: mounts, devices, user, capabilities;
then it becomes the launcher. It is a program of its own, and imports nothing of ours.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

NO_NEW_PRIVS, DROP_BOUNDING = 38, 24  # prctl(2)
DEVICES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
# What containerd gives a container: chown, dac_override, fsetid, fowner, mknod, net_raw, setgid, setuid, setfcap,
# setpcap, net_bind_service, sys_chroot, kill, audit_write.
USUAL = {0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31}


def main(asked: dict[str, Any]) -> None:
    root = Path(asked["root"])
    _run("mount", "--make-rprivate", "/")
    _run("mount", "--bind", str(root), str(root))
    for place, source in asked["mounts"].items():
        target = root / place.lstrip("/")
        _run("mount", "--bind", source, str(target))
    _run("mount", "-t", "proc", "proc", str(root / "proc"))
    _devices(root / "dev", asked["termination_log"])
    for place in asked["read_only"]:
        _run("mount", "-o", "remount,bind,ro", str(root / place.lstrip("/")))
    socket.sethostname("worker-0")
    os.chroot(root)
    os.chdir("/pai/work")
    _become(asked["uid"], asked["groups"], drop_all=asked["drop_all"])
    os.execve("/pai/runtime/bin/launch", ["/pai/runtime/bin/launch"], asked["env"])


def _devices(place: Path, termination_log: str) -> None:
    _run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", str(place))
    for name, (major, minor) in DEVICES.items():
        os.mknod(place / name, 0o666 | stat.S_IFCHR, os.makedev(major, minor))
        (place / name).chmod(0o666)
    (place / "pts").mkdir()
    _run("mount", "-t", "devpts", "-o", "newinstance,ptmxmode=0666,mode=0620,gid=5", "devpts", str(place / "pts"))
    (place / "ptmx").symlink_to("pts/ptmx")
    (place / "termination-log").touch()
    _run("mount", "--bind", termination_log, str(place / "termination-log"))


def _become(uid: int, groups: list[int], *, drop_all: bool) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    last = int(Path("/proc/sys/kernel/cap_last_cap").read_text())
    for number in range(last + 1):
        if (drop_all or number not in USUAL) and libc.prctl(DROP_BOUNDING, number, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "prctl")
    os.setgroups(groups)
    os.setgid(uid)
    os.setuid(uid)
    if drop_all and libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def _run(*command: str) -> None:
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
