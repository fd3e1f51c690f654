"""The SSH server of one task: its host key, its authorised keys, and what a login may do.

It knows the gateway and the task's peers, and no user: see ``engine.jumps`` for clients whose own SSH comes here.

A login has exactly the rights of the task's own processes, so forwarding is as free as a shell is:
connections go anywhere the task could connect to, and listeners are on loopback only.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import asyncssh

from pai_backend.engine import debugger_start
from pai_backend.engine.algorithms import SPEAKS, algorithms
from pai_backend.engine.asyncssh_private import required
from pai_backend.engine.debugger import DEBUG_SOCKET
from pai_backend.engine.jumps import JUMP_SOCKET
from pai_backend.engine.local import layout
from pai_backend.engine.local.accepting import TaskAcceptor
from pai_backend.engine.local.forwarding import (
    connected_below,
    connected_to,
    connected_to_socket,
    listening_on,
    listening_on_socket,
)
from pai_backend.engine.local.jumps import MakeServer, jump_session
from pai_backend.engine.local.layout import LOOPBACK
from pai_backend.engine.local.ssh_process import Process
from pai_backend.engine.local.ssh_session import TaskWorld, serve
from pai_backend.engine.splicing import Spliced

_log = logging.getLogger(__name__)

KEEPALIVE_S = 30
KEEPALIVE_COUNT = 4  # a client that is gone is noticed after two minutes
LOGIN_TIMEOUT_S = 30
_LOOPBACK_NAMES = frozenset({"", "*", "localhost", LOOPBACK, "::1", "0.0.0.0", "::"})


@dataclass
class Jumps:
    """The jumps into one task: ``make`` makes a server for one, ``serving`` are the servers that start."""

    make: MakeServer
    serving: set[asyncio.Task[None]] = field(default_factory=set)


class TaskServer(asyncssh.SSHServer):
    """Decides what one connection may do; asyncssh makes one for each."""

    def __init__(
        self,
        task: TaskWorld,
        connections: set[asyncssh.SSHServerConnection],
        jumps: Jumps,
        changed: Callable[[int], None] = lambda _: None,
    ) -> None:
        """``changed`` is called with the number of connections whenever that has changed."""
        self._task, self._connections, self._jumps, self._changed = task, connections, jumps, changed
        self._connection: asyncssh.SSHServerConnection | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        """Remember the connection, so that it can be ended with the task."""
        self._connection = conn
        self._connections.add(conn)
        self._changed(len(self._connections))

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        if self._connection is not None:
            self._connections.discard(self._connection)
            self._changed(len(self._connections))

    def begin_auth(self, username: str) -> bool:
        """Every user name must authenticate, and any will do: the key says who it is."""
        return True

    def session_requested(self) -> asyncssh.SSHServerSession[bytes]:
        """Shells, commands and SFTP: each is a program of the task's."""
        return Process(lambda process: serve(process, self._task))

    def connection_requested(
        self, dest_host: str, dest_port: int, orig_host: str, orig_port: int
    ) -> Awaitable[asyncssh.SSHTCPSession[bytes]]:
        """Connections from the task's machine (``ssh -L``, ``-W``, ``-D``)."""
        return connected_to(dest_host, dest_port)

    def unix_connection_requested(self, dest_path: str) -> Awaitable[asyncssh.SSHUNIXSession[bytes]]:
        """Connections to sockets in the file system, to the task's debugger, and jumps."""
        if dest_path == JUMP_SOCKET:
            return jump_session(self._jumps.make, self._jumps.serving)
        if dest_path == DEBUG_SOCKET:
            return connected_below(self._task.directory / layout.DEBUGGER, debugger_start.SOCKET)
        return connected_to_socket(dest_path)

    async def server_requested(self, listen_host: str, listen_port: int) -> asyncssh.SSHListener | bool:
        """Listen for the client (``ssh -R``), on loopback whatever it asks for, as OpenSSH does by default."""
        if listen_host not in _LOOPBACK_NAMES or self._connection is None or self._is_full:
            return False
        return await listening_on(self._connection, LOOPBACK, listen_port, listen_host)

    async def unix_server_requested(self, listen_path: str) -> asyncssh.SSHListener | bool:
        """Listen on a socket in the file system for the client."""
        if self._connection is None or self._is_full:
            return False
        return await listening_on_socket(self._connection, listen_path)

    @property
    def _is_full(self) -> bool:
        return bool(getattr(self._connection, "is_full", False))


class Listener:
    """The open SSH port of one task, with all connections that came in by it."""

    def __init__(
        self,
        listening: socket.socket,
        factory: Callable[[], asyncio.BaseProtocol],
        connections: set[asyncssh.SSHServerConnection],
        jumps: Jumps,
    ) -> None:
        self._factory, self._connections, self._jumps = factory, connections, jumps
        self.listen_again(listening)

    def listen_again(self, listening: socket.socket) -> None:
        """Accept connections of this socket, after :meth:`hand_over`."""
        self._acceptor = TaskAcceptor(listening, self._factory)

    @property
    def logins(self) -> int:
        """How many connections are open."""
        return len(self._connections)

    async def hand_over(self) -> None:
        """Stop listening, so that another process may, and let the connections go on."""
        self._acceptor.close()
        await self._acceptor.wait_closed()

    async def wait_empty(self) -> None:
        """Return when no connection is open."""
        while self._connections:
            await next(iter(self._connections)).wait_closed()

    async def aclose(self) -> None:
        """Stop listening and end every connection; returns when they are ended."""
        await self.hand_over()
        coming = list(self._jumps.serving)
        for task in coming:
            task.cancel()
        await asyncio.gather(*coming, return_exceptions=True)
        open_now = list(self._connections)
        for connection in open_now:
            connection.disconnect(asyncssh.DISC_BY_APPLICATION, "the task has ended")
        for connection in open_now:
            await connection.wait_closed()


async def listen(
    task: TaskWorld, port: int, host_key: str, host_certificate: str, authorized_keys: Sequence[str]
) -> Listener:
    """Open the task's SSH port on loopback. The certificate may be empty; keys are lines of authorized_keys.

    Raises OSError when the port is taken, ValueError (asyncssh's key errors) when a key cannot be read.
    """
    bound = socket.create_server((LOOPBACK, port))
    try:
        return await listen_on(bound, task, host_key, host_certificate, authorized_keys)
    except BaseException:
        bound.close()
        raise


async def listen_on(
    bound: socket.socket,
    task: TaskWorld,
    host_key: str,
    host_certificate: str,
    authorized_keys: Sequence[str],
    changed: Callable[[int], None] = lambda _: None,
) -> Listener:
    """Serve the task on a socket; ``changed`` is called with the number of connections. Raises ValueError."""
    connections: set[asyncssh.SSHServerConnection] = set()

    async def make_jump(authorized_key: str) -> asyncio.BaseProtocol:
        known = asyncssh.import_authorized_keys(authorized_key)
        alone = await asyncssh.SSHServerConnectionOptions.construct(options=options, authorized_client_keys=known)
        return _protocol(alone)

    jumps = Jumps(make_jump)

    options = await asyncssh.SSHServerConnectionOptions.construct(
        config=None,
        server_factory=lambda: TaskServer(task, connections, jumps, changed),
        server_host_keys=[_host_key(host_key, host_certificate)],
        authorized_client_keys=asyncssh.import_authorized_keys("\n".join(authorized_keys)),
        **algorithms(),
        server_version=f"{SPEAKS} jupyter-pai-task",
        encoding=None,
        line_editor=False,
        agent_forwarding=True,
        x11_forwarding=False,
        gss_host=None,
        password_auth=False,
        kbdint_auth=False,
        keepalive_interval=KEEPALIVE_S,
        keepalive_count_max=KEEPALIVE_COUNT,
        login_timeout=LOGIN_TIMEOUT_S,
    )
    return Listener(bound, lambda: _protocol(options), connections, jumps)


def _protocol(options: asyncssh.SSHServerConnectionOptions) -> asyncio.BaseProtocol:
    """What serves one connection; with a release of asyncssh that is used as documented, without bounds (ADR 0032)."""
    if required.are_there():
        from pai_backend.engine.asyncssh_private.task_connection import TaskConnection

        return TaskConnection(asyncio.get_running_loop(), options)
    return Spliced(lambda sock, _: _keep(asyncio.create_task(_serve(sock, options), name="ssh-connection")))


_serving: set[asyncio.Task[None]] = set()
"""asyncio itself keeps no task."""


def _keep(task: asyncio.Task[None]) -> None:
    _serving.add(task)
    task.add_done_callback(_serving.discard)


async def _serve(sock: socket.socket, options: asyncssh.SSHServerConnectionOptions) -> None:
    try:
        await asyncssh.run_server(sock, options=options)
    except (asyncssh.Error, OSError) as error:
        _log.debug("a client did not log in: %s", error)


def _host_key(private: str, certificate: str) -> asyncssh.SSHKey | tuple[asyncssh.SSHKey, asyncssh.SSHCertificate]:
    """A host key as asyncssh takes it; with a certificate it presents both, and the client chooses."""
    key = asyncssh.import_private_key(private)
    return (key, asyncssh.import_certificate(certificate)) if certificate else key
