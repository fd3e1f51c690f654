"""The task's leg as one half of a relay."""

from __future__ import annotations

import asyncio

import asyncssh

from pai_backend.access.gateway.joined.relay import Back
from pai_backend.access.gateway.legs import TaskLeg
from pai_backend.access.gateway.transport import StreamTransport
from pai_backend.access.gateway.upstream import TaskClient, TaskConnector
from pai_backend.engine.base import Connection


class JoinedUpstream(TaskConnector):
    """The way to tasks, by legs that can be joined."""

    async def _connected(
        self, connection: Connection, settings: asyncssh.SSHClientConnectionOptions, client: TaskClient
    ) -> TaskLeg:
        settings.waiter = None  # each leg has its own
        back = Back(asyncio.get_running_loop(), settings, client)
        StreamTransport(connection, back).start()
        try:
            await back.ready()
        except BaseException:
            back.abort()
            raise
        return back
