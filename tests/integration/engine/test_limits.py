"""Tasks that want more than they may: the kernel's control groups hold them, where this machine lets us make some."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from pai_backend.engine.base import LogStream, TaskState
from pai_backend.engine.local import processes
from pai_backend.engine.local.control_groups import ControlGroups, control_groups
from pai_backend.engine.local.engine import LocalEngine
from pai_backend.engine.local.processes import threads_here
from pai_backend.model.ids import TaskUid
from pai_backend.model.job import TaskExit
from pai_backend.testing.engine_contract import read_log, watching
from tests.integration.engine.conftest import MakePlan
from tests.support.backend_process import until
from tests.support.local_engine import NODE, LocalBehind

PROCESSES = 60
FILL = "python3 -c 'held = bytearray(300_000_000); print(len(held))'"
BOMB = "f() { f | f & }; f; sleep 3"
MANY = """python3 - <<'END'
import os, time
made = 0
try:
    while made < 1000:
        if os.fork() == 0:
            time.sleep(1000)
        made += 1
except BlockingIOError:
    print("refused after", made, flush=True)
END"""


@pytest.fixture(scope="module")
def groups() -> ControlGroups:
    """Those of this machine. Without the right to make any there is nothing to hold a task with."""
    found = control_groups()
    if not found.v1 and found.v2 is None:
        pytest.skip(f"this machine lets us make no control groups: {dict(found.reasons)}")
    return found


@pytest.fixture
def engine(root: Path, behind: LocalBehind, groups: ControlGroups) -> Iterator[LocalEngine]:
    """An engine that holds its tasks to what they ask for."""
    yield LocalEngine(root, [NODE], most_processes=PROCESSES, groups=lambda: groups)
    for directory in (root / "tasks").iterdir():
        groups.remove(TaskUid(directory.name))


async def run(engine: LocalEngine, make_plan: MakePlan, command: str, **asked: int) -> tuple[TaskExit, str]:
    """A task's end, and what it said."""
    plan = make_plan(command).model_copy(update=asked)
    async with watching(engine) as watch:
        await engine.start(plan)
        ended = (await watch.state(plan.uid, TaskState.EXITED)).exit
    assert ended is not None
    return ended, (await read_log(engine, plan.uid, LogStream.ALL)).decode()


@pytest.mark.asyncio
async def test_a_task_that_takes_more_memory_than_it_may_is_ended_and_told_so(
    engine: LocalEngine, make_plan: MakePlan
) -> None:
    ended, said = await run(engine, make_plan, FILL, memory_mb=100)
    assert (ended.reason, ended.code) == ("out-of-memory", 137), said


@pytest.mark.asyncio
async def test_a_task_that_takes_what_it_may_is_left_alone(engine: LocalEngine, make_plan: MakePlan) -> None:
    ended, said = await run(engine, make_plan, FILL, memory_mb=600)
    assert (ended.code, said) == (0, "300000000\n")


@pytest.mark.asyncio
async def test_a_task_makes_no_more_processes_than_it_may(engine: LocalEngine, make_plan: MakePlan) -> None:
    ended, said = await run(engine, make_plan, MANY)
    assert (ended.reason, ended.code) == ("exited", 0), said
    made = int(said.split()[-1])
    assert PROCESSES - 5 <= made < PROCESSES


@pytest.mark.asyncio
async def test_a_fork_bomb_ends_with_its_task(engine: LocalEngine, behind: LocalBehind, make_plan: MakePlan) -> None:
    ended, _ = await run(engine, make_plan, BOMB)
    assert ended.reason == "exited"
    assert "could not be killed" not in ended.message
    assert behind.processes(make_plan("").uid) == []


@pytest.mark.asyncio
async def test_where_no_group_counts_processes_those_of_the_account_are_limited(
    root: Path, behind: LocalBehind, make_plan: MakePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fork bomb of a user without rights ends there; the kernel does not hold root to it, getrlimit(2)."""
    assert threads_here() >= 1
    monkeypatch.setattr(processes, "threads_here", lambda: 1000)
    _, said = await run(LocalEngine(root, [NODE], most_processes=PROCESSES), make_plan, "ulimit -u; ulimit -Hu")
    assert said.split() == [str(1000 + PROCESSES)] * 2


@pytest.mark.asyncio
async def test_a_task_has_no_more_of_the_cpus_than_it_asked_for(
    engine: LocalEngine, groups: ControlGroups, make_plan: MakePlan
) -> None:
    """What the kernel was told; how long the machine's other work lets it run is another matter."""
    command = "cat $(cat ../groups | sed -e 's,$,/cpu.cfs_quota_us,') $(cat ../groups | sed -e 's,$,/cpu.max,')"
    _, said = await run(engine, make_plan, f"{command} 2>/dev/null", cpus=2)
    assert "200000" in said.split() or "cpu" in groups.reasons


@pytest.mark.asyncio
async def test_the_groups_of_a_task_go_when_it_is_forgotten(
    engine: LocalEngine, root: Path, make_plan: MakePlan
) -> None:
    await run(engine, make_plan, "true", memory_mb=100)
    uid = make_plan("").uid
    made = [Path(line) for line in (root / "tasks" / uid / "groups").read_text().splitlines()]
    assert made
    assert all(group.is_dir() for group in made)
    await engine.forget(uid)
    assert not any(group.exists() for group in made)


@pytest.mark.asyncio
async def test_what_keeps_a_task_is_not_in_its_groups(engine: LocalEngine, root: Path, make_plan: MakePlan) -> None:
    """So that the killer for lack of memory and a full table of processes leave it alone."""
    _, said = await run(engine, make_plan, "echo $$ $PPID; cat $(sed -e 's,$,/cgroup.procs,' ../groups)", memory_mb=100)
    own, keeper, *there = said.split()
    assert own in there
    assert keeper not in there


@pytest.mark.asyncio
async def test_what_a_killed_backend_did_not_remove_the_next_one_does(
    engine: LocalEngine, root: Path, make_plan: MakePlan
) -> None:
    """It was killed when the task had been put away, and its groups and packages had not."""
    await run(engine, make_plan, "true", memory_mb=100)
    uid = make_plan("").uid
    made = [Path(line) for line in (root / "tasks" / uid / "groups").read_text().splitlines()]
    (root / "tasks" / uid).rename(root / "done" / uid)
    async with watching(engine):
        assert not any(group.exists() for group in made)
        assert not (root / "done" / uid / "python").exists()


UNMARKED = "(ulimit -x 100; env -i setsid bash -c 'echo $$ >pid; exec sleep 1000' &)"
FAST = """cat >fast.py <<'END'
import os
os.setsid()
os.open("pid", os.O_CREAT)
while True:
    if os.fork():
        os._exit(0)
END
env -i "$(command -v python3)" fast.py &"""


@pytest.mark.asyncio
@pytest.mark.parametrize("way", ["killed", "stopped"])
@pytest.mark.parametrize("survivor", [UNMARKED, FAST], ids=["without a mark", "faster than signals"])
async def test_nothing_of_a_task_leaves_its_groups_alive(
    engine: LocalEngine, root: Path, make_plan: MakePlan, survivor: str, way: str
) -> None:
    """A task may lower the limit that is its mark, and a program that forks all the time is gone before it is met."""
    kill = "kill -9 $PPID; " if way == "killed" else ""
    plan = make_plan(f"{survivor}\nuntil [ -e pid ]; do sleep 0.02; done; {kill}sleep 1000")
    async with watching(engine) as watch:
        await engine.start(plan)
        if way == "stopped":
            await watch.state(plan.uid, TaskState.RUNNING)
            await asyncio.to_thread(until, (root / "tasks" / plan.uid / "work" / "pid").exists)
            await engine.stop(plan.uid, 0.1)
        ended = (await watch.state(plan.uid, TaskState.EXITED)).exit
    assert ended is not None
    assert ended.reason == ("lost" if way == "killed" else "stopped")
    assert "could not be killed" not in ended.message
    groups = [Path(line) for line in (root / "tasks" / plan.uid / "groups").read_text().splitlines()]
    assert [(group / "cgroup.procs").read_text() for group in groups] == [""] * len(groups)
