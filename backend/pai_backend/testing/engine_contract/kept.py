"""Failed tasks that are kept for their user."""

from __future__ import annotations

import socket
from collections.abc import Callable

import asyncssh
import pytest
from pydantic import SecretStr

from pai_backend.engine.base import LogStream, SshPlan, TaskState
from pai_backend.model.node import Placement
from pai_backend.testing.engine_contract.observing import watching
from pai_backend.testing.engine_contract.serving import Serving
from pai_backend.testing.engine_contract.world import Behind, EngineMaker


class Kept(Serving):
    """Staying reachable by SSH, and being released."""

    @pytest.mark.asyncio
    async def test_a_failed_task_that_is_kept_serves_ssh_until_it_is_stopped_or_forgotten(
        self,
        make_engine: EngineMaker,
        placement: Placement,
        behind: Behind,
        serving_ssh: None,
        ssh_plan: Callable[[], SshPlan],
    ) -> None:
        """Its exit is reported at once and its leftovers are gone; a new engine finds it as the old one left it."""
        commands = {"released": "sleep 1000 & exit 3", "forgotten": "exit 4"}
        plans = [
            self.plan(placement, command, index).model_copy(update={"keep_on_failure": True, "ssh": ssh_plan()})
            for index, command in enumerate(commands.values())
        ]
        engine = make_engine()
        async with watching(engine) as watch:
            for plan in plans:
                await engine.start(plan)
            ended = [(await watch.state(plan.uid, TaskState.EXITED)).exit for plan in plans]
            assert [(e.code, e.reason) for e in ended if e] == [(3, "exited"), (4, "exited")]
            assert not behind.processes(plans[0].uid)
            for plan in plans:
                assert await self.answers_ssh(engine, placement, plan)
        await engine.aclose()
        again = make_engine()
        async with watching(again) as watch:
            for plan in plans:
                assert await self.answers_ssh(again, placement, plan)
            await again.stop(plans[0].uid, 1.0)
            await again.forget(plans[1].uid)
            for plan in plans:
                await self.stops_answering(again, placement, plan)
            assert [seen.state for seen in watch.of(plans[0].uid)] == [TaskState.EXITED]

    @pytest.mark.asyncio
    @pytest.mark.parametrize("command", ["exit 0", "echo up; sleep 1000"])
    async def test_only_a_failure_keeps_a_task(
        self,
        make_engine: EngineMaker,
        placement: Placement,
        serving_ssh: None,
        ssh_plan: Callable[[], SshPlan],
        command: str,
    ) -> None:
        """Not success, and not a stop."""
        plan = self.plan(placement, command).model_copy(update={"keep_on_failure": True, "ssh": ssh_plan()})
        engine = make_engine()
        async with watching(engine) as watch:
            await engine.start(plan)
            if "up" in command:
                assert await anext(engine.logs(plan.uid, LogStream.STDOUT, 0, True)) == b"up\n"
                await engine.stop(plan.uid, 1.0)
            await watch.state(plan.uid, TaskState.EXITED)
            await self.stops_answering(engine, placement, plan)

    @pytest.fixture
    def ssh_plan(self) -> Callable[[], SshPlan]:
        """Makes the SSH part of a plan: a free port and a new host key."""

        def make() -> SshPlan:
            with socket.create_server(("127.0.0.1", 0)) as probe:
                port = probe.getsockname()[1]
            key = asyncssh.generate_private_key("ssh-ed25519").export_private_key().decode()
            return SshPlan(port=port, host_key=SecretStr(key), authorized_keys=())

        return make
