"""Tasks that end, halt or rob what keeps them. Each process is real, and is looked for by its number."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from pai_backend.engine.base import TaskState
from pai_backend.engine.local import ledger, processes
from pai_backend.engine.local.engine import LocalEngine
from pai_backend.lifecycle.exits import Reaction, explain
from pai_backend.model.ids import TaskUid
from pai_backend.testing.engine_contract import watching
from tests.integration.engine.conftest import MakePlan
from tests.support.living import lives
from tests.support.local_engine import NODE, LocalBehind

# Each writes its number before the shim, which is the parent of bash, is killed.
SURVIVORS = {
    "itself": "echo $$ >pid",
    "child": "sleep 1000 & echo $! >pid",
    "own session": "setsid bash -c 'echo $$ >pid; exec sleep 1000' & ",
    "no variables": "env -i setsid bash -c 'echo $$ >pid; exec sleep 1000' & ",
    "no variables, orphan": "(env -i setsid bash -c 'echo $$ >pid; exec sleep 1000' &)",
    "deaf": """env -i setsid bash -c 'trap "" TERM HUP INT; echo $$ >pid; while :; do sleep 0.1; done' & """,
}
KILL = "until [ -s pid ]; do sleep 0.02; done; kill -9 $PPID; sleep 1000"


def number(root: Path, uid: TaskUid) -> int:
    """What the task wrote."""
    return int((root / "tasks" / uid / "work" / "pid").read_text())


@pytest.mark.asyncio
@pytest.mark.parametrize("survivor", SURVIVORS.values(), ids=SURVIVORS.keys())
async def test_a_task_that_kills_what_keeps_it_is_lost_at_its_own_cost_and_leaves_nothing(
    engine: LocalEngine, root: Path, make_plan: MakePlan, survivor: str
) -> None:
    plan = make_plan(f"{survivor}\n{KILL}")
    async with watching(engine) as watch:
        await engine.start(plan)
        ended = (await watch.state(plan.uid, TaskState.EXITED)).exit
    assert ended is not None
    assert (ended.reason, explain(ended).phrase) == ("lost", "TaskLost")
    assert explain(ended).reaction is Reaction.RETRY_TO_LIMIT
    assert not lives(number(root, plan.uid))


@pytest.mark.asyncio
async def test_what_was_lost_before_a_backend_came_back_is_ended_by_the_next_one(
    root: Path, behind: LocalBehind, make_plan: MakePlan
) -> None:
    plan = make_plan(f"{SURVIVORS['no variables, orphan']}\n{KILL}")
    async with watching(LocalEngine(root, [NODE])) as watch:
        await LocalEngine(root, [NODE]).start(plan)
        await asyncio.to_thread(_await_file, root / "tasks" / plan.uid / "work" / "pid")
        watch.of(plan.uid)
    async with watching(LocalEngine(root, [NODE])) as watch:
        ended = (await watch.state(plan.uid, TaskState.EXITED)).exit
    assert ended is not None
    assert ended.reason == "lost"
    assert not lives(number(root, plan.uid))


def _await_file(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"nobody made {path}"
        time.sleep(0.02)


@pytest.mark.asyncio
async def test_a_task_that_was_lost_when_its_machine_restarted_costs_nothing(
    root: Path, engine: LocalEngine, behind: LocalBehind, make_plan: MakePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The start record says in which life of the machine it was written."""
    plan = make_plan("sleep 1000")
    async with watching(engine) as watch:
        await engine.start(plan)
        await watch.state(plan.uid, TaskState.RUNNING)
    monkeypatch.setattr(processes, "machine_life", lambda: "the next one")
    behind.crash(plan.uid)
    async with watching(LocalEngine(root, [NODE])) as watch:
        ended = (await watch.state(plan.uid, TaskState.EXITED)).exit
    assert ended is not None
    assert (ended.reason, explain(ended).reaction) == ("lost", Reaction.RETRY_FREE)


@pytest.mark.asyncio
async def test_a_task_that_removes_its_own_directory_pays_for_it(engine: LocalEngine, make_plan: MakePlan) -> None:
    plan = make_plan('rm -rf "$(dirname "$PWD")"; sleep 1000')
    async with watching(engine) as watch:
        await engine.start(plan)
        ended = (await watch.state(plan.uid, TaskState.EXITED)).exit
    assert ended is not None
    assert (ended.reason, explain(ended).reaction) == ("vanished", Reaction.RETRY_TO_LIMIT)


@pytest.mark.asyncio
async def test_a_task_that_halts_what_keeps_it_is_stopped_all_the_same(
    engine: LocalEngine, root: Path, make_plan: MakePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "OVERDUE_S", 0.5)
    plan = make_plan("env -i setsid bash -c 'echo $$ >pid; exec sleep 1000' & sleep 0.1; kill -STOP $PPID; sleep 1000")
    async with watching(engine) as watch:
        await engine.start(plan)
        await watch.state(plan.uid, TaskState.RUNNING)
        await asyncio.to_thread(_await_file, root / "tasks" / plan.uid / "work" / "pid")
        await engine.stop(plan.uid, 0.1)
        ended = (await watch.state(plan.uid, TaskState.EXITED)).exit
    assert ended is not None
    assert ended.reason == "stopped"
    assert not lives(number(root, plan.uid))


def test_the_marks_of_tasks_differ_and_are_limits_that_can_be_set() -> None:
    marks = {processes.limit_mark(f"j{job:04x}-0-{task}-0") for job in range(100) for task in range(100)}
    assert len(marks) == 10_000
    assert all(2**56 <= mark < 2**57 for mark in marks)


def test_a_process_is_found_by_its_limit_alone() -> None:
    pid = os.posix_spawn("/bin/sleep", ["sleep", "1000"], {})
    try:
        processes.mark(pid, "j1-0-0-0")
        assert [found for found, _ in processes.marked("j1-0-0-0")] == [pid]
        assert processes.marked("j1-0-0-1") == []
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
