"""asyncssh's connections in less memory: thousands of them are open, and do nothing most of the time.

A connection of asyncssh has some 150 attributes, most of which matter until somebody is logged in only. CPython shares
the names of attributes between objects that have few (30), and gives each other object a table of its own.
"""

from __future__ import annotations

import asyncio
from types import FunctionType
from typing import Any, cast

from asyncssh.connection import SSHConnection
from asyncssh.logging import logger

_NOTHING = cast("set[Any]", frozenset())
"""In place of sets that nothing is added to any more."""

_TASKS: set[asyncio.Task[None]] = set()
"""Tasks of all connections: asyncssh keeps them until they are done because asyncio does not, and for nothing else."""


def fields_of(kind: type, *already: type) -> tuple[str, ...]:
    """The private attributes that the constructor of a class sets, to be the slots of a class that is derived from it.

    What a class has a value for, or one of those in ``already`` a slot, is not among them: a new slot would hide that.
    What is set elsewhere needs none, and is kept as before.
    """
    made = vars(kind)["__init__"]
    assert isinstance(made, FunctionType)
    names = (name for name in made.__code__.co_names if name.startswith("_") and name.islower())
    return tuple(name for name in names if not any(hasattr(each, name) for each in (kind, *already)))


class Lean(SSHConnection):
    """A connection that keeps what it still needs."""

    __slots__ = ("_heard_at", *fields_of(SSHConnection))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._heard_at = 0.0
        self._tasks = _TASKS
        self._close_event = cast("asyncio.Event", Closing())

    def let_go(self) -> None:
        """The login, or another exchange of keys, is over: keep nothing that only it needed.

        Of an exchange that has begun already everything is kept.
        """
        if not self._kex_complete:
            return
        self._client_kexinit = self._server_kexinit = b""
        self._extensions_to_send.clear()
        self._extra.clear()
        self._server_sig_algs = _NOTHING
        self._trusted_host_keys = self._trusted_ca_keys = self._revoked_host_keys = _NOTHING
        self._x509_revoked_certs = _NOTHING
        self._logger = logger

    # ---- keepalives ----------------------------------------------------------------------------
    def _reset_keepalive_timer(self) -> None:
        """Called by asyncssh for all that is received: note when, where asyncssh would make a timer anew."""
        self._heard_at = self._loop.time()
        if self._auth_complete and self._keepalive_timer is None:
            self._set_keepalive_timer()

    def _keepalive_timer_callback(self) -> None:
        """Called by the timer: ask the other end, unless it was heard meanwhile."""
        due = self._heard_at + self._keepalive_interval
        if due > self._loop.time():
            self._keepalive_timer = self._loop.call_at(due, self._keepalive_timer_callback)
        else:
            super()._keepalive_timer_callback()


class Closing:
    """What asyncssh needs of ``asyncio.Event`` to tell that a connection is closed; nobody waits for most of them."""

    __slots__ = ("_set", "_waited")

    def __init__(self) -> None:
        self._set = False
        self._waited: asyncio.Event | None = None

    def is_set(self) -> bool:
        """Whether it has been told."""
        return self._set

    def set(self) -> None:
        """Tell all who wait, and who will. Idempotent."""
        self._set = True
        if self._waited is not None:
            self._waited.set()

    async def wait(self) -> bool:
        """Return when it has been told."""
        if not self._set:
            self._waited = self._waited or asyncio.Event()
            await self._waited.wait()
        return True
