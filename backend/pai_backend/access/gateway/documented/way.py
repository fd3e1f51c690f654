"""How the gateway makes its connections by what asyncssh documents. See ``gateway.way``."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable

import asyncssh

from pai_backend.access.gateway.documented.login import CopiedLogin
from pai_backend.access.gateway.legs import TaskLeg
from pai_backend.access.gateway.login import Doors
from pai_backend.access.gateway.upstream import TaskClient, TaskConnector
from pai_backend.access.gateway.way import GatewayMode
from pai_backend.engine.base import Connection
from pai_backend.engine.splicing import Spliced, spliced


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


log = logging.getLogger(__name__)


def _protocols(settings: asyncssh.SSHServerConnectionOptions, doors: Doors) -> Callable[[], asyncio.Protocol]:
    serving: set[asyncio.Task[None]] = set()

    def serve(sock: socket.socket, transport: asyncio.BaseTransport) -> None:
        address = transport.get_extra_info("peername")
        task = asyncio.create_task(_serve(sock, settings, lambda: CopiedLogin(doors, address)), name="gateway-client")
        serving.add(task)
        task.add_done_callback(serving.discard)

    return lambda: Spliced(serve)


async def _serve(
    sock: socket.socket, settings: asyncssh.SSHServerConnectionOptions, login: Callable[[], CopiedLogin]
) -> None:
    try:
        await asyncssh.run_server(sock, options=settings, server_factory=login)
    except (asyncssh.Error, OSError) as exc:  # the login has been told
        log.debug("a client did not log in: %s", exc)


COPIED = GatewayMode(CopiedUpstream, CopiedLogin, _protocols)
