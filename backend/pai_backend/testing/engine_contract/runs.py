"""Tasks run once, to an end that is known, across restarts of the engine."""

from __future__ import annotations

import asyncio

import pytest

from pai_backend.engine.base import (
    Engine,
    EngineError,
    Listed,
    LogStream,
    NodeSeen,
    StartRefused,
    TaskSeen,
    TaskState,
)
from pai_backend.model.ids import TaskUid, job_of
from pai_backend.model.job import Causer
from pai_backend.model.node import Placement
from pai_backend.testing.engine_contract.observing import PATIENCE_S, read_log, watching
from pai_backend.testing.engine_contract.serving import LOOK_AGAIN_S
from pai_backend.testing.engine_contract.world import Behind, EngineMaker, EngineWorld


class Runs(EngineWorld):
    """Starting, stopping, ending, and being forgotten."""

    @pytest.mark.asyncio
    async def test_the_first_listing_has_the_nodes_and_is_marked(
        self, make_engine: EngineMaker, placement: Placement
    ) -> None:
        """Nodes come before the mark, and the placement's node is among them."""
        async with watching(make_engine()) as watch:
            before = watch.events[: watch.events.index(Listed())]
            assert placement.node in [event.node.name for event in before if isinstance(event, NodeSeen)]

    @pytest.mark.asyncio
    async def test_a_task_runs_and_its_exit_status_is_reported(
        self, make_engine: EngineMaker, placement: Placement, behind: Behind
    ) -> None:
        """Running comes before the end, and nothing of the task is left then."""
        plan = self.plan(placement, "sleep 0.3; exit 7")
        engine = make_engine()
        async with watching(engine) as watch:
            await engine.start(plan)
            ended = await watch.state(plan.uid, TaskState.EXITED)
            assert not behind.processes(plan.uid)
        assert ended.exit is not None
        assert (ended.exit.code, ended.exit.signal, ended.exit.reason) == (7, None, "exited")
        assert [seen.state for seen in watch.of(plan.uid)][-2:] == [TaskState.RUNNING, TaskState.EXITED]

    @pytest.mark.asyncio
    async def test_an_exit_says_when_the_command_started_if_it_did(
        self, make_engine: EngineMaker, placement: Placement
    ) -> None:
        """Also of a task that was over before anybody saw it run, and after a restart of the engine."""
        short, stopped, impossible = (self.plan(placement, "true", index) for index in range(3))
        much = {f"V{number}": "#" * 100_000 for number in range(70)}  # more than any system takes
        impossible = impossible.model_copy(update={"env": impossible.env | much})
        engine = make_engine()
        async with watching(engine) as watch:
            await engine.start(short)
            await engine.stop(stopped.uid, 1.0)
            await engine.start(impossible)
            seen = [await watch.state(plan.uid, TaskState.EXITED) for plan in (short, stopped, impossible)]
        started, ended = seen[0].since, seen[0].exit
        assert started is not None
        assert ended is not None
        assert started <= ended.at
        assert [one.since for one in seen[1:]] == [None, None]
        async with watching(make_engine()) as watch:
            assert [one.since for one in watch.of(short.uid)] == [started]

    @pytest.mark.asyncio
    async def test_a_signal_that_ends_the_command_is_reported(
        self, make_engine: EngineMaker, placement: Placement
    ) -> None:
        """Signals are not exit codes."""
        plan = self.plan(placement, "kill -SEGV $$")
        engine = make_engine()
        async with watching(engine) as watch:
            await engine.start(plan)
            ended = await watch.state(plan.uid, TaskState.EXITED)
        assert ended.exit is not None
        assert (ended.exit.code, ended.exit.signal, ended.exit.status) == (None, 11, 139)

    @pytest.mark.asyncio
    async def test_a_repeated_start_runs_nothing_twice(self, make_engine: EngineMaker, placement: Placement) -> None:
        """While it runs, after it ended, and from a new engine over the same state."""
        plan = self.plan(placement, "echo ran")
        engine = make_engine()
        async with watching(engine) as watch:
            await asyncio.gather(*(engine.start(plan) for _ in range(5)))
            await watch.state(plan.uid, TaskState.EXITED)
            await engine.start(plan)
        again = make_engine()
        async with watching(again) as watch:
            await again.start(plan)
            await watch.state(plan.uid, TaskState.EXITED)
            assert len(watch.of(plan.uid)) == 1
        assert await read_log(again, plan.uid, LogStream.STDOUT) == b"ran\n"

    @pytest.mark.asyncio
    async def test_the_command_goes_through_one_bash_parse_with_the_plans_environment(
        self, make_engine: EngineMaker, placement: Placement
    ) -> None:
        """Quotes and backslashes mean what they mean to bash, once."""
        command = r"""printf '%s|' "$PAI_JOB_NAME" "a\\b" a\"b '$X' [[ "$PAI_TASK_UID" "${#BASH_VERSION}"; printf end"""
        plan = self.plan(placement, command, PAI_JOB_NAME="a job's name")
        engine = make_engine()
        async with watching(engine) as watch:
            await engine.start(plan)
            await watch.state(plan.uid, TaskState.EXITED)
        fields = (await read_log(engine, plan.uid, LogStream.STDOUT)).decode().split("|")
        assert fields[:6] == ["a job's name", "a\\b", 'a"b', "$X", "[[", plan.uid]
        assert fields[6:] != ["0", "end"]

    @pytest.mark.asyncio
    async def test_stop_gives_grace_and_then_kills(
        self, make_engine: EngineMaker, placement: Placement, behind: Behind
    ) -> None:
        """A command that heeds TERM ends in its own way, one that does not is killed; both are ``stopped``."""
        # bash says on standard error that its sleep was ended, which is part of the log where streams are not split.
        polite = self.plan(
            placement, "exec 2>/dev/null; trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.05; done"
        )
        deaf = self.plan(placement, "trap '' TERM; echo up; while :; do sleep 0.05; done", index=1)
        engine = make_engine()
        async with watching(engine) as watch:
            for plan, grace in ((polite, 10.0), (deaf, 0.3)):
                await engine.start(plan)
                assert await anext(engine.logs(plan.uid, LogStream.STDOUT, 0, True)) == b"up\n"
                assert behind.processes(plan.uid)
                await engine.stop(plan.uid, grace)
                await engine.stop(plan.uid, grace)
            ended = [(await watch.state(plan.uid, TaskState.EXITED)).exit for plan in (polite, deaf)]
        assert [(e.code, e.signal, e.reason) for e in ended if e] == [(5, None, "stopped"), (None, 9, "stopped")]
        assert await read_log(engine, polite.uid, LogStream.STDOUT) == b"up\nbye\n"
        assert not behind.processes(deaf.uid)

    @pytest.mark.asyncio
    async def test_a_stop_that_comes_before_the_start_wins(
        self, make_engine: EngineMaker, placement: Placement
    ) -> None:
        """The watch says stopped at once, and the start that comes later does nothing."""
        plan = self.plan(placement, "echo ran")
        engine = make_engine()
        async with watching(engine) as watch:
            await engine.stop(plan.uid, 1.0)
            ended = await watch.state(plan.uid, TaskState.EXITED)
            assert ended.exit is not None
            assert ended.exit.reason == "stopped"
            await engine.start(plan)
        assert await read_log(engine, plan.uid, LogStream.ALL, follow=True) == b""
        assert await engine.log_extent(plan.uid, LogStream.ALL) == (0, 0)

    @pytest.mark.asyncio
    async def test_running_tasks_survive_the_engine(
        self, make_engine: EngineMaker, placement: Placement, behind: Behind
    ) -> None:
        """A new engine lists the task as running, with the same processes, and sees its end."""
        plan = self.plan(placement, "echo up; sleep 1000 & wait")
        engine = make_engine()
        async with watching(engine) as watch:
            await engine.start(plan)
            await watch.state(plan.uid, TaskState.RUNNING)
            assert await anext(engine.logs(plan.uid, LogStream.STDOUT, 0, True)) == b"up\n"
        await engine.aclose()
        before = behind.processes(plan.uid)
        again = make_engine()
        async with watching(again) as watch:
            assert [seen.state for seen in watch.of(plan.uid)] == [TaskState.RUNNING]
            assert set(before) & set(behind.processes(plan.uid))
            await again.stop(plan.uid, 0.5)
            await watch.state(plan.uid, TaskState.EXITED)

    @pytest.mark.asyncio
    async def test_a_task_that_cannot_be_accounted_for_is_lost(
        self, make_engine: EngineMaker, placement: Placement, behind: Behind
    ) -> None:
        """The platform is to blame, and nothing of the task goes on."""
        plan = self.plan(placement, "sleep 1000 & sleep 1000")
        engine = make_engine()
        async with watching(engine) as watch:
            await engine.start(plan)
            await watch.state(plan.uid, TaskState.RUNNING)
            behind.crash(plan.uid)
            ended = await watch.state(plan.uid, TaskState.EXITED)
        assert ended.exit is not None
        assert ended.exit.reason in ("lost", "vanished")
        # It may have been seen to end by the signal that took it away.
        assert (ended.exit.causer, ended.exit.code) == (Causer.PLATFORM, None)
        await self.gone(behind, plan.uid)

    @pytest.mark.asyncio
    async def test_a_forgotten_task_is_not_listed_and_cannot_start_again(
        self, make_engine: EngineMaker, placement: Placement
    ) -> None:
        """Its logs stay readable."""
        plan = self.plan(placement, "echo kept")
        engine = make_engine()
        async with watching(engine) as watch:
            await engine.start(plan)
            await watch.state(plan.uid, TaskState.EXITED)
            await engine.forget(plan.uid)
            await engine.forget(plan.uid)
            await engine.start(plan)
            await engine.stop(plan.uid, 1.0)
        again = make_engine()
        async with watching(again) as watch:
            assert watch.of(plan.uid) == []
        found = await read_log(again, plan.uid, LogStream.ALL)
        assert found == b"kept\n", found

    @pytest.mark.asyncio
    async def test_nothing_is_left_of_an_erased_job(self, make_engine: EngineMaker, placement: Placement) -> None:
        """Not before its tasks are forgotten, and as often as one likes."""
        plan = self.plan(placement, "echo kept")
        engine = make_engine()
        async with watching(engine) as watch:
            await engine.start(plan)
            await watch.state(plan.uid, TaskState.EXITED)
            with pytest.raises(EngineError, match="not forgotten"):
                await engine.erase(job_of(plan.uid))
            await engine.forget(plan.uid)
            await engine.erase(job_of(plan.uid))
            await engine.erase(job_of(plan.uid))
        again = make_engine()
        assert await again.recall(plan.uid) is None
        async with asyncio.timeout(PATIENCE_S):  # a pod is there until its kubelet has removed it
            while await _is_known(again, plan.uid):  # noqa: ASYNC110 - and sends no event
                await asyncio.sleep(LOOK_AGAIN_S)

    @pytest.mark.asyncio
    async def test_forget_refuses_a_task_that_runs(self, make_engine: EngineMaker, placement: Placement) -> None:
        """Forgetting is for ended tasks."""
        plan = self.plan(placement, "sleep 1000")
        engine = make_engine()
        async with watching(engine) as watch:
            await engine.start(plan)
            await watch.state(plan.uid, TaskState.RUNNING)
            with pytest.raises(EngineError, match="has not ended"):
                await engine.forget(plan.uid)
            await engine.stop(plan.uid, 0.0)
            await watch.state(plan.uid, TaskState.EXITED)

    @pytest.mark.asyncio
    async def test_a_plan_for_no_node_of_the_engine_is_refused(
        self, make_engine: EngineMaker, placement: Placement
    ) -> None:
        """Trying again cannot help, and no trace is left."""
        engine = make_engine()
        elsewhere = placement.model_copy(update={"node": "nowhere"})
        async with watching(engine) as watch:
            with pytest.raises(StartRefused, match="nowhere"):
                await engine.start(self.plan(elsewhere, "true"))
            assert not any(isinstance(event, TaskSeen) for event in watch.events)


async def _is_known(engine: Engine, uid: TaskUid) -> bool:
    """Whether the engine has, or can have, output of the task."""
    try:
        await engine.log_extent(uid, LogStream.ALL)
    except KeyError:
        return False
    return True
