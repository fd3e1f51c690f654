"""What processes of a task use, by real processes that carry its mark."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pai_backend.engine.base import GpuWork
from pai_backend.engine.local.processes import limit_mark
from pai_backend.engine.local.task_use import TaskMeter
from pai_backend.model.ids import JobUid, TaskUid, task_uid
from pai_backend.model.node import Gpu

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

BUSY, QUIET = (task_uid(JobUid("j0123456789abcdef"), 0, index, 0) for index in (0, 1))
GPU = Gpu(index=0, type="T", uuid="a", memory_mb=1, simulated=True)

MEMORY = """
import os, sys
room = bytearray(os.urandom(1 << 20)) * 64
child = os.fork()
if child == 0:
    sys.stdin.read()
    os._exit(0)
print("ready", flush=True)
sys.stdin.read()
"""
SPIN = "print('ready', flush=True)\nwhile True: pass"


@contextmanager
def process(uid: TaskUid, code: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process of the task, ready."""
    mark = limit_mark(uid)
    begin = f"import resource; resource.setrlimit(10, ({mark}, {mark}))\n"
    with subprocess.Popen([sys.executable, "-c", begin + code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as made:
        assert made.stdout is not None
        assert made.stdout.readline() == b"ready\n"
        try:
            yield made
        finally:
            made.kill()


def test_time_and_memory_are_those_of_the_task_s_processes_alone() -> None:
    meter = TaskMeter()
    with process(BUSY, SPIN), process(QUIET, MEMORY):
        first = meter.look({BUSY: [], QUIET: []})
        assert [each.cpus for each in first.values()] == [None, None], "one look tells no rate"
        second, rate = first, 0.0
        while not rate:  # a look soon after the one before tells nothing yet
            second = meter.look({BUSY: [], QUIET: [GPU]})
            rate = second[BUSY].cpus or 0.0
        assert 0 < rate < 1.1, "one thread has one processor at most"
        assert meter.look({BUSY: []})[BUSY].cpus == rate
        assert (second[QUIET].cpus or 0.0) < 0.1, "at most the ticks in which it fell asleep"
        assert 60 < (second[QUIET].memory_mb or 0) < 120, "what a forked worker shares counts once"
        assert second[QUIET].gpus == (GpuWork(0, 0),)
    assert meter.look({BUSY: []}) == {}, "of processes that are gone nothing is known"
    assert meter.look({}) == {}


def test_a_process_that_sheds_the_mark_still_counts_by_its_parent() -> None:
    shed = """
import os, resource, sys
child = os.fork()
if child == 0:
    resource.setrlimit(10, (5, 5))
    room = bytearray(os.urandom(1 << 20)) * 64
    print("ready", flush=True)
sys.stdin.read()
"""
    with process(QUIET, shed):
        found = TaskMeter().look({QUIET: []})
    assert (found[QUIET].memory_mb or 0) > 60
