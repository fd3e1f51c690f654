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
from jupyter_pai.errors import ClientError, Denied, NotFound, worded
from jupyter_pai.sync import Client
from jupyter_pai.wire_types import SshEntry
from pai_backend.model.text import Text

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
    wanted: certificates.WantedCertificate | None
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
                raise TaskAway(Text("The connection to {job} has ended.", job=self.service.job)) from error
            raise ConnectionRefusedError(
                Text(
                    "Service {label} of {job} does not answer: {reason}",
                    label=self.service.label,
                    job=self.service.job,
                    reason=error.reason,
                )
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
                Text("Job {job} has no such task.", job=name.job),
                code="NoTaskError",
                hint=Text("See its tasks with `pai show {job}`.", job=name.job),
            )
        having = [entry for entry in entries if name.label in entry["ports"]]
        for entry in having:
            if entry["reachable"]:
                return entry
        placed = [entry for entry in entries if entry["reachable"]]
        if placed and not having:
            known = ", ".join(dict.fromkeys(label for entry in placed for label in entry["ports"]))
            raise NotFound(
                Text("Job {job} has no service {label} that you may forward.", job=name.job, label=name.label),
                code="NoServiceError",
                hint=Text("It has: {known}.", known=known or "none"),
            )
        first = (having or entries)[0]
        state = Text(first["state"])
        about = {"role": first["role"], "index": first["index"], "job": name.job, "state": state}
        if why := self._why():
            raise TaskAway(Text("Task {role}-{index} of {job} is {state}: {why}.", why=why, **about))
        raise TaskAway(Text("Task {role}-{index} of {job} is {state}.", **about))

    def _why(self) -> str:
        try:
            why = worded(self._client.job(self.service.job), "why", "whyWording")
        except NotFound:  # it is another user's, who shares no more than a login
            return ""
        return why.rstrip(".") if why.endswith(".") else why

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
                Text("The gateway refuses the login to {alias}.", alias=login.alias),
                hint=Text("Run `pai doctor {job}`.", job=self.service.job),
            ) from error
        except asyncssh.HostKeyNotVerifiable as error:
            raise Denied(
                Text(
                    "{host}:{port} has another host key than the backend names: {reason}",
                    host=login.host,
                    port=login.port,
                    reason=error.reason,
                ),
                hint="Do not go on: another server may answer there. Ask an administrator.",
            ) from error
        except (asyncssh.DisconnectError, OSError, TimeoutError) as error:
            raise TaskAway(
                Text(
                    "The gateway at {host}:{port} does not let us in: {error}",
                    host=login.host,
                    port=login.port,
                    error=error,
                )
            ) from error
