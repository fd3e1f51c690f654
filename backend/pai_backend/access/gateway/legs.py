"""What a login knows of its two connections, whichever way they are made (``way``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import asyncssh

from pai_backend.access.gateway.sessions import Message, Sessions


class ClientLeg(Protocol):
    """The connection from a client to the gateway."""

    @property
    def alive(self) -> bool:
        """Whether the connection still stands."""
        ...

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """As asyncssh's connections have it."""
        ...

    def send_auth_banner(self, msg: str, lang: str = "en-US") -> None:
        """Show a text before the login is complete."""
        ...

    def keep_waiting(self) -> None:
        """The client has proved who it is: from here on it is not the login's time limit that bounds its wait."""
        ...

    def say(self, messages: Iterable[Message]) -> None:
        """Send messages of the gateway's own."""
        ...

    def end(self, sessions: Sessions | None, text: str) -> None:
        """End a login for a reason: the task's leg now, then the client's with ``text``."""
        ...

    def abort(self) -> None:
        """Close the connection at once."""
        ...


class TaskLeg(Protocol):
    """The connection from the gateway to a task."""

    @property
    def alive(self) -> bool:
        """Whether the connection still stands."""
        ...

    @property
    def connection(self) -> asyncssh.SSHClientConnection:
        """Asyncssh's connection."""
        ...

    def close(self) -> None:
        """End it."""
        ...
