"""Which programs use the processors between two moments: a table by the names of processes.

What a process has run itself is its own; what ended programs that it had started used (a container runtime's helpers,
a kubelet's ``mount``) is told beside, since nobody else remembers them. Nothing that is over and was nobody's child is
seen, and neither is the kernel's own work; the table says how much that leaves. An ended program counts with all that
it ever used, so on a machine where others work too more may be told than there was.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import PurePath

import psutil

LEAST_S = 0.05  # a row with less is of no interest
_INTERPRETERS = ("python", "bash")  # what they run names them better


@dataclass(frozen=True)
class Spent:
    """Seconds of CPU: of a process itself, and of what it has started and seen end."""

    own: float
    children: float


@dataclass(frozen=True)
class Moment:
    """What each process has used by now, by pid and start, with its name; and the whole machine."""

    at: float
    busy: float
    spent: dict[tuple[int, float], tuple[str, Spent]]


def moment() -> Moment:
    """The processes as they are."""
    spent: dict[tuple[int, float], tuple[str, Spent]] = {}
    for process in psutil.process_iter():
        try:
            times = process.cpu_times()
            spent[process.pid, process.create_time()] = (
                _name(process),
                Spent(times.user + times.system, times.children_user + times.children_system),
            )
        except psutil.NoSuchProcess:
            continue  # it has ended while we looked
    machine = psutil.cpu_times()
    idle = machine.idle + machine.iowait + machine.steal
    return Moment(time.perf_counter(), time.perf_counter() * (os.cpu_count() or 1) - idle, spent)


def _name(process: psutil.Process) -> str:
    name, words = process.name(), " ".join(process.cmdline()).split()
    if not name.startswith(_INTERPRETERS) or not words:
        return name
    if process.pid == os.getpid():
        return "this bench"
    role = words[words.index("--role") + 1] if "--role" in words else ""
    script = next((PurePath(word).name for word in words[1:] if not word.startswith("-")), "")
    return f"backend {role}" if role else f"{name} {script}".strip()


def table(before: Moment, after: Moment) -> list[tuple[str, Spent]]:
    """Rows by name, the greatest first."""
    rows: dict[str, list[Spent]] = defaultdict(list)
    for key, (name, spent) in after.spent.items():
        earlier = before.spent[key][1] if key in before.spent else Spent(0.0, 0.0)
        rows[name].append(Spent(spent.own - earlier.own, spent.children - earlier.children))
    sums = {name: Spent(sum(s.own for s in some), sum(s.children for s in some)) for name, some in rows.items()}
    kept = [row for row in sums.items() if row[1].own + row[1].children >= LEAST_S]
    return sorted(kept, key=lambda row: -(row[1].own + row[1].children))


def told(title: str, before: Moment, after: Moment) -> str:
    """The table as text."""
    rows = table(before, after)
    lines = [f"{title}: {after.at - before.at:.1f} s, CPU {after.busy - before.busy:.1f} s", f"{'own':>8}{'ended':>8}"]
    lines += [f"{spent.own:8.2f}{spent.children:8.2f}  {name}" for name, spent in rows]
    seen = sum(spent.own + spent.children for _, spent in rows)
    return "\n".join([*lines, f"{after.busy - before.busy - seen:8.2f}{'':8}  not seen"])
