"""What is available of a task from outside: its logs, and its ports."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from pai_backend.engine.base import (
    EngineError,
    GpuMeter,
    LogStream,
    TaskState,
)
from pai_backend.model.ids import TaskUid
from pai_backend.model.node import Placement
from pai_backend.testing.engine_contract.observing import read_log, watching
from pai_backend.testing.engine_contract.world import EngineMaker, EngineWorld


class Reach(EngineWorld):
    """Logs and ports."""

    @pytest.mark.asyncio
    async def test_logs_are_kept_by_stream_and_read_from_any_offset(
        self, make_engine: EngineMaker, placement: Placement
    ) -> None:
        """Both streams alone, and merged; offsets from either end."""
        plan = self.plan(placement, "echo one; sleep 0.2; echo two >&2; sleep 0.2; printf three")
        engine = make_engine()
        async with watching(engine) as watch:
            await engine.start(plan)
            followed = await read_log(engine, plan.uid, LogStream.ALL, follow=True)
            await watch.state(plan.uid, TaskState.EXITED)
        assert followed == b"one\ntwo\nthree"
        split = (b"one\nthree", b"two\n") if self.SPLITS_LOGS else (followed, b"")
        assert await read_log(engine, plan.uid, LogStream.STDOUT) == split[0]
        assert await read_log(engine, plan.uid, LogStream.STDERR) == split[1]
        assert await read_log(engine, plan.uid, LogStream.ALL, 4) == b"two\nthree"
        assert await read_log(engine, plan.uid, LogStream.ALL, -5, follow=True) == b"three"
        assert await read_log(engine, plan.uid, LogStream.ALL, 13) == b""
        assert await engine.log_extent(plan.uid, LogStream.ALL) == (0, 13)
        assert await engine.log_extent(plan.uid, LogStream.STDERR) == (0, len(split[1]))

    @pytest.mark.asyncio
    async def test_logs_tell_when_their_bytes_came(self, make_engine: EngineMaker, placement: Placement) -> None:
        """Within two seconds: one of the engine, and one for clocks of nodes and for busy machines."""
        plan = self.plan(placement, "echo early; sleep 2.5; printf 'late\nlast'")
        engine = make_engine()
        async with watching(engine) as watch:
            await engine.start(plan)
            logs = engine.logs(plan.uid, LogStream.ALL, 0, True)
            assert await anext(logs) == b"early\n"
            first = datetime.now(UTC)
            assert [each.offset for each in await engine.log_times(plan.uid, LogStream.ALL, 0, 6)] == [0]
            assert await anext(logs)
            second = datetime.now(UTC)
            await watch.state(plan.uid, TaskState.EXITED)
        early, late = await engine.log_times(plan.uid, LogStream.ALL, 0, 15)
        assert (early.offset, late.offset) == (0, 6)
        assert abs(first - early.at) < timedelta(seconds=2)
        assert abs(second - late.at) < timedelta(seconds=2)
        assert await engine.log_times(plan.uid, LogStream.ALL, 12, 99) == [replace(late, offset=12)]
        with pytest.raises(KeyError):
            await make_engine().log_times(TaskUid("j0-0-0-0"), LogStream.ALL, 0, 1)

    @pytest.mark.asyncio
    async def test_logs_of_an_unknown_task_are_a_key_error(self, make_engine: EngineMaker) -> None:
        """Not an empty log."""
        with pytest.raises(KeyError):
            await read_log(make_engine(), TaskUid("j0-0-0-0"), LogStream.ALL)
        with pytest.raises(KeyError):
            await make_engine().log_extent(TaskUid("j0-0-0-0"), LogStream.ALL)

    @pytest.mark.asyncio
    async def test_dial_reaches_a_port_of_the_task(
        self, make_engine: EngineMaker, placement: Placement, free_port: int
    ) -> None:
        """Both ways, and an error that can be shown when nothing answers."""
        plan = self.plan(placement, self.server_command(free_port))
        engine = make_engine()
        with pytest.raises(EngineError, match=str(free_port)):
            await engine.dial(placement, plan.uid, free_port)
        async with watching(engine) as watch:
            await engine.start(plan)
            assert await anext(engine.logs(plan.uid, LogStream.STDOUT, 0, True)) == b"up\n"
            connection = await engine.dial(placement, plan.uid, free_port)
            connection.writer.write(b"hello")
            connection.writer.write_eof()
            assert await connection.reader.read() == b"HELLO"
            connection.writer.close()
            await watch.state(plan.uid, TaskState.EXITED)

    @pytest.mark.asyncio
    async def test_gpus_that_cannot_be_read_have_a_reason_and_the_task_goes_on(
        self, make_engine: EngineMaker, placement: Placement, free_port: int
    ) -> None:
        """A task without GPUs has none that could be read; to ask all the same harms nothing."""
        plan = self.plan(placement, self.server_command(free_port))
        engine = make_engine()
        async with watching(engine) as watch:
            await engine.start(plan)
            assert await anext(engine.logs(plan.uid, LogStream.STDOUT, 0, True)) == b"up\n"
            if isinstance(engine, GpuMeter):
                with pytest.raises(EngineError, match=r"\w+ \w+"):
                    await engine.gpu_use(placement, plan.uid)
            connection = await engine.dial(placement, plan.uid, free_port)
            connection.writer.write(b"hello")
            assert await connection.reader.readexactly(5) == b"HELLO"
            connection.writer.close()
            ended = await watch.state(plan.uid, TaskState.EXITED)
            assert ended.exit is not None
            assert ended.exit.code == 0

    @pytest.mark.asyncio
    async def test_ports_that_are_listened_on_are_busy(
        self, make_engine: EngineMaker, placement: Placement, free_port: int
    ) -> None:
        """Asked of the machine of the placement."""
        plan = self.plan(placement, self.server_command(free_port))
        engine = make_engine()
        assert await engine.busy_ports(placement.machine, [free_port]) == set()
        async with watching(engine) as watch:
            await engine.start(plan)
            assert await anext(engine.logs(plan.uid, LogStream.STDOUT, 0, True)) == b"up\n"
            busy = {free_port} if self.SHARES_PORTS else set()
            assert await engine.busy_ports(placement.machine, [free_port]) == busy
            await engine.stop(plan.uid, 1.0)
            await watch.state(plan.uid, TaskState.EXITED)
        assert await engine.busy_ports(placement.machine, [free_port]) == set()
