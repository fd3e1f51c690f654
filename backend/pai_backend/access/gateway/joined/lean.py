"""asyncssh's connections in less memory: thousands of them are open, and do nothing most of the time.

A connection of asyncssh has some 150 attributes, most of which matter only until login. CPython shares the names of
attributes between objects that have few (30), and gives each other object a table of its own.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any, cast

from asyncssh.connection import SSHConnection
from asyncssh.logging import logger

_NOTHING = cast("set[Any]", frozenset())
"""In place of sets that nothing is added to any more."""


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

    __slots__ = fields_of(SSHConnection)

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
