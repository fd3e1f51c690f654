"""Whether the kernel killed for lack of memory where this process lives: the counter of its control group.

Only the counter is proof. Without one (macOS, a kernel before 4.13, no control group) nothing is claimed.
Source: the kernel's documentation, cgroup-v2 ``memory.events`` and cgroup-v1 ``memory.oom_control``.
"""

from __future__ import annotations

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
