"""How the gateway makes its connections with parts of asyncssh that are not documented. See ``gateway.way``."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import cast

import asyncssh

from pai_backend.access.gateway.joined.front import JoinedClient
from pai_backend.access.gateway.joined.login import JoinedLogin
from pai_backend.access.gateway.joined.relay import Back
from pai_backend.access.gateway.legs import TaskLeg
from pai_backend.access.gateway.login import Doors
from pai_backend.access.gateway.transport import StreamTransport
from pai_backend.access.gateway.upstream import TaskClient, TaskConnector
from pai_backend.access.gateway.way import GatewayMode
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


_HOST_KEY_ALGORITHMS = (b"ssh-ed25519", b"rsa-sha2-256")  # of RFC 8332's two for RSA the recommended one
_OLD_HOST_KEY_ALGORITHMS = (b"ecdsa-sha2-nistp256",)


def _protocols(settings: asyncssh.SSHServerConnectionOptions, doors: Doors) -> Callable[[], asyncio.Protocol]:
    loop = asyncio.get_running_loop()
    # One algorithm for each key: asyncssh sets the chosen one on the key, which all connections share.
    offered = [*_HOST_KEY_ALGORITHMS, *(_OLD_HOST_KEY_ALGORITHMS if doors.options.old_clients else ())]
    settings.server_host_keys = OrderedDict((name, settings.server_host_keys[name]) for name in offered)
    return lambda: cast("asyncio.Protocol", JoinedClient(loop, settings))


JOINED = GatewayMode(JoinedUpstream, JoinedLogin, _protocols)
