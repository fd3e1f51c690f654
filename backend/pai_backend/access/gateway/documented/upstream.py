"""The task's leg as a connection that asyncssh makes by its documented function."""

from __future__ import annotations

import asyncssh

from pai_backend.access.gateway.legs import TaskLeg
from pai_backend.access.gateway.upstream import TaskClient, TaskConnector
from pai_backend.engine.base import Connection
from pai_backend.engine.splicing import spliced


class TaskServerConnection:
    """asyncssh's connection to a task, as a login wants it."""

    def __init__(self, connection: asyncssh.SSHClientConnection) -> None:
        self.connection = connection
        self.close = connection.close

    @property
    def alive(self) -> bool:
        """As :class:`TaskLeg` has it."""
        return not self.connection.is_closed()


class CopiedUpstream(TaskConnector):
    """The way to tasks, by ``asyncssh.connect``."""

    async def _connected(
        self, connection: Connection, settings: asyncssh.SSHClientConnectionOptions, client: TaskClient
    ) -> TaskLeg:
        sock = await spliced(connection)
        try:
            return TaskServerConnection(
                await asyncssh.connect("task", sock=sock, options=settings, client_factory=lambda: client)
            )
        except BaseException:
            sock.close()
            raise
