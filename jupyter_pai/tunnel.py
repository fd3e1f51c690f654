"""A way into a task for programs of this machine: one SSH connection through the gateway, made again when it has ended.

It is the one module that speaks SSH itself instead of calling OpenSSH: each of its streams leads to a port that the
task has at that moment, which ``ssh -L`` fixes when it starts.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import asyncssh

from jupyter_pai import access, certificates
from jupyter_pai.connect.ssh_config import KEEPALIVE_COUNT, KEEPALIVE_INTERVAL_S
from jupyter_pai.errors import ClientError, Denied, NotFound
from jupyter_pai.sync import Client
from jupyter_pai.wire_types import SshEntry

LOOPBACK = "127.0.0.1"
LOGIN_S = 120.0
"""For one login; the gateway holds back who comes before the task runs."""

Said = Callable[[str], None]


class TaskAway(ClientError):
    """The task does not run now, or the way to it is interrupted; it may be open again in a moment."""

    default_code = "UnavailableError"


@dataclass(frozen=True)
class ServiceName:
    """A service as its user names it. Without role and index it is that of the first task that has the label."""

    job: str
    label: str
    role: str | None = None
    index: int | None = None


@dataclass(frozen=True)
class _Found:
    """The task that a name leads to now, and what opens it."""

    reached: access.Reached
    wanted: certificates.Wanted | None
    port: int


class TaskTunnel:
    """Streams to one service of a job, wherever its task runs. ``said`` shows what the gateway tells meanwhile.

    ``certify``: log in by a certificate, which is renewed while the connection lasts, else by the registered key.
    Not safe for several loops. Close it with :meth:`aclose`.
    """

    def __init__(self, client: Client, service: ServiceName, root: Path, *, said: Said, certify: bool = True) -> None:
        self.service = service
        self._client, self._root, self._said, self._certify = client, root, said, certify
        self._connecting = asyncio.Lock()
        self._connection: asyncssh.SSHClientConnection | None = None
        self._port = 0
        self._renewal = contextlib.ExitStack()

    async def connect(self) -> str:
        """Log in to the task unless that is done already; returns the task's SSH name.

        Raises NotFound (no such job, task or label), Denied, TaskAway, and other ClientErrors of the backend.
        """
        connection = await self._connected()
        return str(connection.get_extra_info("username"))

    async def open(self) -> tuple[asyncssh.SSHReader[bytes], asyncssh.SSHWriter[bytes]]:
        """A stream to the service. Raises as :meth:`connect` does, and ConnectionRefusedError when nothing listens."""
        try:
            return await self._stream(await self._connected())
        except TaskAway:  # an end that was not noticed yet
            return await self._stream(await self._connected())

    async def aclose(self) -> None:
        """End the connection and its streams."""
        await self._leave()

    async def _stream(
        self, connection: asyncssh.SSHClientConnection
    ) -> tuple[asyncssh.SSHReader[bytes], asyncssh.SSHWriter[bytes]]:
        try:
            return await connection.open_connection(LOOPBACK, self._port)
        except asyncssh.ChannelOpenError as error:
            if connection.is_closed():
                raise TaskAway(f"The connection to {self.service.job} has ended.") from error
            raise ConnectionRefusedError(
                f"Service {self.service.label} of {self.service.job} does not answer: {error.reason}"
            ) from error

    async def _connected(self) -> asyncssh.SSHClientConnection:
        async with self._connecting:
            if self._connection is None or self._connection.is_closed():
                await self._leave()
                found = await asyncio.to_thread(self._find)
                self._connection, self._port = await self._log_in(found), found.port
                if found.wanted is not None:
                    self._renewal.enter_context(certificates.renewed(self._client, found.wanted))
            return self._connection

    async def _leave(self) -> None:
        connection, self._connection = self._connection, None
        await asyncio.to_thread(self._renewal.close)
        if connection is not None:
            connection.abort()
            await connection.wait_closed()

    def _find(self) -> _Found:
        """Where the service is now. Blocks. Raises ClientError."""
        entry = self._entry()
        reached = access.reach(
            self._client,
            self.service.job,
            self._root,
            role=entry["role"],
            index=entry["index"],
            register=not self._certify,
        )
        wanted = access.certificate(self._client, reached) if self._certify else None
        if self._certify and wanted is None:
            access.register_key(self._client, reached.files)
        return _Found(reached, wanted, entry["ports"][self.service.label])

    def _entry(self) -> SshEntry:
        name = self.service
        entries = [
            entry
            for entry in self._client.ssh(name.job)["entries"]
            if name.role in (None, entry["role"]) and name.index in (None, entry["index"])
        ]
        if not entries:
            raise NotFound(
                f"Job {name.job} has no such task.",
                code="NoTaskError",
                hint=f"See its tasks with `pai show {name.job}`.",
            )
        having = [entry for entry in entries if name.label in entry["ports"]]
        for entry in having:
            if entry["reachable"]:
                return entry
        placed = [entry for entry in entries if entry["reachable"]]
        if placed and not having:
            known = ", ".join(dict.fromkeys(label for entry in placed for label in entry["ports"]))
            raise NotFound(
                f"Job {name.job} has no service {name.label} that you may forward.",
                code="NoServiceError",
                hint=f"It has: {known or 'none'}.",
            )
        first = (having or entries)[0]
        raise TaskAway(f"Task {first['role']}-{first['index']} of {name.job} is {first['state']}{self._why()}.")

    def _why(self) -> str:
        try:
            why = self._client.job(self.service.job)["why"].rstrip(".")
        except NotFound:  # it is another user's, who shares no more than a login
            return ""
        return f": {why}" if why else ""

    async def _log_in(self, found: _Found) -> asyncssh.SSHClientConnection:
        login, files, said = found.reached.login, found.reached.files, self._said

        class Shown(asyncssh.SSHClient):
            def auth_banner_received(self, msg: str, lang: str) -> None:
                said(msg.strip())

        try:
            return await asyncssh.connect(
                login.host,
                login.port,
                username=login.alias,
                client_factory=Shown,
                client_keys=[str(files.identity)],
                client_certs=[] if found.wanted is None else [str(found.wanted.path)],
                known_hosts=str(files.known_hosts),
                host_key_alias=login.host_key_alias,
                config=None,
                agent_path=None,
                login_timeout=LOGIN_S,
                keepalive_interval=KEEPALIVE_INTERVAL_S,
                keepalive_count_max=KEEPALIVE_COUNT,
            )
        except asyncssh.PermissionDenied as error:
            raise Denied(
                f"The gateway refuses the login to {login.alias}.", hint=f"Run `pai doctor {self.service.job}`."
            ) from error
        except asyncssh.HostKeyNotVerifiable as error:
            raise Denied(
                f"{login.host}:{login.port} has another host key than the backend names: {error.reason}",
                hint="Do not go on: another server may answer there. Ask an administrator.",
            ) from error
        except (asyncssh.DisconnectError, OSError, TimeoutError) as error:
            raise TaskAway(f"The gateway at {login.host}:{login.port} does not let us in: {error}") from error
