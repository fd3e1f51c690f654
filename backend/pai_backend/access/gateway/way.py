"""The two ways in which the gateway passes logins on, and which of them the installed asyncssh allows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import asyncssh

from pai_backend.access.gateway.login import Doors, Login
from pai_backend.access.gateway.upstream import TaskConnector
from pai_backend.engine.asyncssh_private import required


@dataclass(frozen=True)
class GatewayMode:
    """How connections are made and passed on."""

    upstream: type[TaskConnector]
    login: Callable[[Doors], Login]
    protocols: Callable[[asyncssh.SSHServerConnectionOptions, Doors], Callable[[], asyncio.Protocol]]
    """What serves each client, by settings that all have in common. Called in a running loop."""


def way() -> GatewayMode:
    """Joined legs where asyncssh is as they need it (ADR 0032); else each channel is copied by documented parts."""
    if required.are_there():
        from pai_backend.access.gateway.joined.way import JOINED

        return JOINED
    from pai_backend.access.gateway.documented.way import COPIED

    return COPIED
