"""Which tasks of a job are asked how much their GPUs work, and what the job's look comes to."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from datetime import timedelta
from typing import cast

import pytest

from pai_backend.controller import uses
from pai_backend.controller.uses import AT_ONCE_OF_A_JOB, MOST_SKIPPED, GpuLooks, GpuSight
from pai_backend.engine.base import Engine, EngineError, GpuUse
from pai_backend.lifecycle.idleness import gpus_at_a_look, looks_believed
from pai_backend.model.ids import TaskUid
from pai_backend.model.job import Phase, Task
from pai_backend.model.node import Placement
from pai_backend.testing.builders import make_placement, make_role, make_spec, make_tasks, make_uid

pytestmark = pytest.mark.asyncio

JOB = make_uid(1)
LONG, SHORT = timedelta(hours=8), timedelta(minutes=10)
NAME = "worker"


class Meter:
    """An engine whose tasks tell what ``tells`` has by their index: 0 unless another number or use, or why not."""

    def __init__(self, tells: Mapping[int, int | str | GpuUse] | None = None) -> None:
        self.tells: dict[int, int | str | GpuUse] = dict(tells or {})
        self.asked: list[int] = []
        self.open = self.most = 0
        self.hangs = False

    async def gpu_use(self, placement: Placement, uid: TaskUid) -> GpuUse:
        index = int(uid.split("-")[2])
        self.asked.append(index)
        self.open += 1
        self.most = max(self.most, self.open)
        try:
            await (asyncio.Event().wait() if self.hangs else asyncio.sleep(0))
        finally:
            self.open -= 1
        told = self.tells.get(index, 0)
        if isinstance(told, str):
            raise EngineError(told)
        return GpuUse(told) if isinstance(told, int) else told


class Watched:
    """A job with so many tasks that have GPUs."""

    def __init__(self, meter: object, count: int, idle_timeout: timedelta = LONG) -> None:
        placed = {"placement": make_placement(gpus=(0,)), "phase": Phase.RUNNING}
        tasks = make_tasks(JOB, make_spec(roles=[make_role(NAME, instances=count)]))
        self.tasks: list[Task] = [task.model_copy(update=placed) for task in tasks]
        self.looks = GpuLooks(cast("Engine", meter))
        self.meter = meter
        self.idle_timeout = idle_timeout

    async def look(self) -> GpuSight:
        return await self.looks.look(JOB, self.tasks, self.idle_timeout)

    async def asked(self) -> list[int]:
        """Whom the next look asks."""
        assert isinstance(self.meter, Meter)
        self.meter.asked.clear()
        await self.look()
        return self.meter.asked


async def test_one_question_a_look_is_enough_while_the_first_works() -> None:
    meter = Meter(dict.fromkeys(range(2000), 90))
    job = Watched(meter, 2000, SHORT)
    assert await job.look() == GpuSight(works=True)
    for _ in range(5):
        assert len(await job.asked()) == 1


async def test_looks_that_are_very_close_ask_once_in_a_while_and_believe_it() -> None:
    meter = Meter({0: 90})
    job = Watched(meter, 1, timedelta(seconds=10))
    asked = [len(await job.asked()) for _ in range(20)]
    assert asked == [1, *[0] * 9] * 2
    assert (await job.look()).works
    meter.tells = {0: 0}
    meter.asked.clear()
    sights = [await job.look() for _ in range(40)]
    assert [sight.works for sight in sights] == [True] * 9 + [False] * 31
    assert {sight.unread for sight in sights} == {""}
    assert len(meter.asked) == 4, "and those that rest once in a while, too"


async def test_the_one_that_works_is_found_among_thousands_and_asked_first_from_then_on() -> None:
    meter = Meter({1234: 97})
    job = Watched(meter, 2000, SHORT)
    sights = [await job.look() for _ in range(5)]  # a quarter of the idle timeout
    assert GpuSight(works=True) in sights
    assert all(sight.works or "it has not been checked yet" in sight.unread for sight in sights)
    assert await job.asked() == [1234]
    assert meter.most <= AT_ONCE_OF_A_JOB


async def test_thousands_that_rest_are_asked_in_turn_and_rest_once_all_were_asked() -> None:
    meter = Meter()
    job = Watched(meter, 2000, SHORT)
    share = gpus_at_a_look(2000, SHORT)
    turns = [await job.asked() for _ in range(1)] + [list(await job.asked()) for _ in range(4)]
    assert [len(each) for each in turns[1:]] == [share] * 4
    assert await job.look() == GpuSight(works=False)


async def test_what_rested_long_ago_may_work_now() -> None:
    """One task works for hours, and nobody else is asked meanwhile."""
    meter = Meter()
    job = Watched(meter, 80, SHORT)
    assert [(await job.look()).unread for _ in range(5)][-1] == "", "all were asked"
    meter.tells = {0: 50}
    while not (await job.look()).works:
        pass
    last = next(index for index in reversed(meter.asked) if index)  # others are asked before it again
    for _ in range(looks_believed(SHORT)):
        assert await job.look() == GpuSight(works=True)
    meter.tells = {last: 80}
    sights = [await job.look() for _ in range(6)]
    assert GpuSight(works=False) not in sights
    assert sights[-1] == GpuSight(works=True)


async def test_gpus_that_worked_and_do_not_answer_now_may_work() -> None:
    meter = Meter({0: 60})
    job = Watched(meter, 2)
    assert (await job.look()).works
    meter.tells = {0: "no answer"}
    assert await job.look() == GpuSight(works=False, unread="no answer (task worker-0)")
    meter.tells = {}
    assert await job.look() == GpuSight(works=False)


async def test_a_gpu_of_a_task_that_works_counts_though_another_cannot_be_read() -> None:
    job = Watched(Meter({0: GpuUse(97, "MIG"), 1: "no nvidia-smi"}), 2)
    assert [await job.look() for _ in range(6)] == [GpuSight(works=True)] * 6
    job = Watched(Meter({0: GpuUse(3, "MIG"), 1: "no nvidia-smi"}), 3)
    assert await job.look() == GpuSight(works=False, unread="MIG (task worker-0 and 1 more)")


async def test_who_cannot_be_read_is_asked_less_and_less_often_but_for_ever() -> None:
    job = Watched(Meter({0: "no nvidia-smi"}), 1)
    questions = [len(await job.asked()) for _ in range(100)]
    at = [number for number, count in enumerate(questions) if count]
    pauses = [after - before for before, after in itertools.pairwise(at)]
    assert pauses[:5] == [1, 2, 4, 8, 16]
    assert set(pauses[5:]) == {MOST_SKIPPED}
    assert "no nvidia-smi" in (await job.look()).unread


async def test_tasks_that_hang_delay_a_look_for_a_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uses, "TASK_ANSWER_S", 0.1)
    monkeypatch.setattr(uses, "LOOK_S", 0.15)
    meter = Meter()
    meter.hangs = True
    job = Watched(meter, 100)
    begun = asyncio.get_running_loop().time()
    assert (await job.look()).unread == "the engine does not answer (task worker-0 and 99 more)"
    assert asyncio.get_running_loop().time() - begun < 5
    assert meter.open == 0
    meter.hangs = False
    sights = [await job.look() for _ in range(9)]
    assert sights[-1] == GpuSight(works=False), "they are asked again"


async def test_jobs_without_gpus_and_engines_without_a_meter_are_not_asked() -> None:
    assert await Watched(object(), 1).look() == GpuSight(works=False, unread="this engine does not report it")
    job = Watched(Meter({0: 99}), 1)
    assert await job.looks.look(JOB, [], LONG) == GpuSight(works=False)


async def test_what_is_known_of_a_job_goes_with_it() -> None:
    job = Watched(Meter({0: "no nvidia-smi"}), 1)
    for _ in range(8):
        await job.look()
    assert await job.asked() == []
    job.looks.forget(JOB)
    assert await job.asked() == [0]
