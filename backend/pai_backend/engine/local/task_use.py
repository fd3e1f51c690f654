"""What tasks of this machine use: CPU and memory of their processes from /proc, GPUs from the NVIDIA driver.

One pass over /proc serves all tasks. A process belongs to a task by the mark that it inherits (see ``processes``), or
as a child of one that does; who a process belongs to is looked up once in its life. Memory is the proportional share
(PSS), so that pages which workers share with the process that forked them count once; where that may not be read, as
for other accounts without root, it is the resident size. CPU time of processes that have ended counts as soon as their
parent has waited for them. Source: proc(5), the kernel's Documentation/filesystems/proc.rst.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from pai_backend.engine.base import EngineError, GpuWork, TaskUse
from pai_backend.engine.local.gpu_use import gpu_use
from pai_backend.engine.local.processes import Process, all_pids, limit_mark, stat_fields
from pai_backend.model.ids import TaskUid
from pai_backend.model.node import Gpu

_TICKS = os.sysconf("SC_CLK_TCK") if sys.platform == "linux" else 1
_PAGE = os.sysconf("SC_PAGE_SIZE")
SHORTEST = 0.5
"""Seconds over which a rate is taken at least: the kernel counts in ticks of 10 ms, so that two looks soon after each
other would tell several processors of a task that has one."""


class _Stat(NamedTuple):
    """A process: ``ticks`` of CPU time, with those of children that it has waited for, and ``pages`` in memory."""

    parent: int
    start: str
    ticks: int
    pages: int


def _stats() -> dict[int, _Stat]:
    """All processes that are alive, by number; zombies do not count. Linux only, elsewhere empty."""
    found: dict[int, _Stat] = {}
    for pid in all_pids() if sys.platform == "linux" else ():
        fields = stat_fields(pid)
        if fields and fields[0] not in "ZX":
            found[pid] = _Stat(int(fields[1]), fields[19], sum(map(int, fields[11:15])), int(fields[21]))
    return found


@dataclass
class _Sum:
    """What the processes of one task come to."""

    ticks: int = 0
    bytes: int = 0


class TaskMeter:
    """Remembers from one look to the next what CPU time tasks had used. Not for two threads at once.

    A look that comes less than ``SHORTEST`` after the one before tells the rate that was told then.
    """

    def __init__(self) -> None:
        self._owners: dict[Process, str] = {}
        self._before: dict[TaskUid, tuple[float, int, float | None]] = {}

    def look(self, tasks: Mapping[TaskUid, list[Gpu]]) -> dict[TaskUid, TaskUse]:
        """What these tasks use now, given the GPUs of each. Blocks."""
        sums = self._sums({str(limit_mark(uid)): uid for uid in tasks})
        now, found = time.monotonic(), {}
        for uid, gpus in tasks.items():
            work = _gpu_work(gpus)
            if (total := sums.get(uid)) is None:
                if work:
                    found[uid] = TaskUse(gpus=work)
                continue
            found[uid] = TaskUse(self._rate(uid, now, total.ticks), total.bytes / 2**20, work)
        self._before = {uid: each for uid, each in self._before.items() if uid in tasks}
        return found

    def _rate(self, uid: TaskUid, now: float, ticks: int) -> float | None:
        before = self._before.get(uid)
        if before is None:
            self._before[uid] = now, ticks, None
            return None
        since, had, rate = before
        if now - since >= SHORTEST:
            rate = max(0, ticks - had) / _TICKS / (now - since)
            self._before[uid] = now, ticks, rate
        return rate

    def _sums(self, marks: Mapping[str, TaskUid]) -> dict[TaskUid, _Sum]:
        stats = _stats()
        owners: dict[Process, str] = {}
        sums: dict[TaskUid, _Sum] = {}
        for pid, stat in stats.items():
            process = pid, stat.start
            mark = self._owners.get(process)
            if mark is None:
                mark = _limit(pid)
            owners[process] = mark
        for pid, stat in stats.items():
            uid = marks.get(owners[pid, stat.start])
            parent = stats.get(stat.parent)
            if uid is None and parent is not None:  # it has lowered its limit, and with it the mark
                uid = marks.get(owners[stat.parent, parent.start])
            if uid is not None:
                total = sums.setdefault(uid, _Sum())
                total.ticks += stat.ticks
                total.bytes += _memory(pid, stat.pages)
        self._owners = owners
        return sums


def _limit(pid: int) -> str:
    """The limit of file locks of a process, which is the mark of a task; empty for one that is gone."""
    with suppress(OSError), open(f"/proc/{pid}/limits", encoding="ascii") as file:
        for line in file:
            if line.startswith("Max file locks"):
                return line.split()[3]
    return ""


def _memory(pid: int, pages: int) -> int:
    """The proportional share of a process in bytes; its resident size where that may not be read."""
    with suppress(OSError), open(f"/proc/{pid}/smaps_rollup", "rb") as file:
        for line in file:
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
    return pages * _PAGE


def _gpu_work(gpus: list[Gpu]) -> tuple[GpuWork, ...]:
    """What each GPU does; nothing where the driver tells nothing."""
    if not gpus:
        return ()
    try:
        return gpu_use(gpus).gpus
    except EngineError:
        return ()
