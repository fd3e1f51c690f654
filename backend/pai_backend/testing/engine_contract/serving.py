"""Whether a task's SSH server is there, asked of the engine."""

from __future__ import annotations

import asyncio

from pai_backend.engine.base import Engine, EngineError, TaskPlan
from pai_backend.model.node import Placement
from pai_backend.testing.engine_contract.observing import PATIENCE_S
from pai_backend.testing.engine_contract.world import EngineWorld

LOOK_AGAIN_S = 0.02  # how often a port is tried: no event tells when it opens


class Serving(EngineWorld):
    """Waits for SSH servers to come and go."""

    async def answers_ssh(self, engine: Engine, placement: Placement, plan: TaskPlan) -> bool:
        """Whether an SSH server says its name on the plan's port, once something listens there."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                if (banner := await self.banner(engine, placement, plan)) is not None:
                    return banner.startswith(b"SSH-2.0-")
                await asyncio.sleep(LOOK_AGAIN_S)

    async def stops_answering(self, engine: Engine, placement: Placement, plan: TaskPlan) -> None:
        """Return when nothing listens on the plan's SSH port. Raises TimeoutError."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                if await self.banner(engine, placement, plan) is None:
                    return
                await asyncio.sleep(LOOK_AGAIN_S)

    @staticmethod
    async def banner(engine: Engine, placement: Placement, plan: TaskPlan) -> bytes | None:
        """What the task's SSH port says first; None when nothing listens there."""
        assert plan.ssh is not None
        try:
            connection = await engine.dial(placement, plan.uid, plan.ssh.port)
        except EngineError:
            return None
        try:
            return await connection.reader.readline() or None
        except ConnectionError:  # closed while it was being opened
            return None
        finally:
            connection.writer.close()
