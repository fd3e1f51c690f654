"""One client whose channels are opened in the task one by one, by asyncssh's documented callbacks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, cast

import asyncssh

from pai_backend.access.gateway.activity import LoginActivity
from pai_backend.access.gateway.documented.copying import ChannelEnd
from pai_backend.access.gateway.documented.entering import CopiedEntering
from pai_backend.access.gateway.door import Door
from pai_backend.access.gateway.entering import SSH_PORT, Entering
from pai_backend.access.gateway.jump import TaskJump
from pai_backend.access.gateway.legs import ClientLeg
from pai_backend.access.gateway.login import Doors, Login
from pai_backend.access.gateway.names import LoginRefused
from pai_backend.access.gateway.proof import ProvenCredential, line_of
from pai_backend.access.gateway.reasons import RefusalReason
from pai_backend.access.gateway.refusing import RefusedSession
from pai_backend.access.gateway.sessions import Message, Sessions


class ClientConnection:
    """asyncssh's connection of a client, as a login wants it."""

    def __init__(self, connection: asyncssh.SSHServerConnection, address: Any) -> None:
        """``address`` is whom the connection comes from: asyncssh itself sees a pair of sockets."""
        self.connection, self._address = connection, address
        self.get_extra_info = self._extra_info
        self.send_auth_banner = connection.send_auth_banner
        self.abort = connection.abort

    @property
    def alive(self) -> bool:
        """As :class:`ClientLeg` has it."""
        return not self.connection.is_closed()

    def _extra_info(self, name: str, default: Any = None) -> Any:
        return self._address if name == "peername" else self.connection.get_extra_info(name, default)

    def keep_waiting(self) -> None:
        """As :class:`ClientLeg` has it; there is no documented way."""

    def say(self, messages: Iterable[Message]) -> None:
        """As :class:`ClientLeg` has it; there is no documented way."""

    def end(self, sessions: Sessions | None, text: str) -> None:
        """As :class:`ClientLeg` has it."""
        self.connection.disconnect(asyncssh.DISC_BY_APPLICATION, text)


class CopiedLogin(Login):
    """asyncssh's callbacks for one client connection."""

    def __init__(self, doors: Doors, address: Any = None) -> None:
        super().__init__(doors)
        self._address = address
        self._tries = doors.options.max_auth_tries
        self._channels = 0
        self._entered = asyncio.Lock()

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        """Called by asyncssh for a new client."""
        self._conn = conn
        self.begin(ClientConnection(conn, self._address))

    # ---- who is it -----------------------------------------------------------------------------
    async def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        """Called by asyncssh for a key that is offered, and again before it checks what it has signed."""
        assert self._proof is not None
        known = await self._proof.take_key(key.get_fingerprint(), line_of(key))
        if known and self._proof.offer is not None and self._proof.offer.welcome:
            return True
        self._tries -= 1
        if self._tries <= 0:
            text = "Too many authentication failures"
            self._conn.disconnect(asyncssh.DISC_NO_MORE_AUTH_METHODS_AVAILABLE, text)
        return False

    def auth_completed(self) -> None:
        """Called by asyncssh when the key last validated has signed."""
        assert self._proof is not None
        assert self._proof.offer is not None
        offer = self._proof.offer
        crowd = self._doors.proved(self, offer.credential)
        if crowd:
            self.credential = offer.credential
            self._doors.reporter.refused(self, offer.credential, None, LoginRefused(crowd, RefusalReason.CROWDED))
            self._conn.disconnect(asyncssh.DISC_BY_APPLICATION, crowd)
            return
        self.credential = offer.credential
        super().auth_completed()

    def _entering(self, front: ClientLeg, who: ProvenCredential, door: Door) -> Entering:
        return CopiedEntering(self._doors.room, front, who, door, self._task_lost)

    # ---- what it asks for ----------------------------------------------------------------------
    async def _task(self) -> CopiedEntering | None:
        """The task, entered when something is asked of it for the first time; None where that cannot be."""
        if self._inside is None:
            return None
        async with self._entered:
            if not self._inside.is_entered:
                await self._enter()
        return cast("CopiedEntering", self._inside) if self._inside.is_entered else None

    def _take_channel(self) -> None:
        most = self._doors.options.max_channels
        if self._channels >= most:
            text = f"This connection has {most} channels open, the maximum."
            raise asyncssh.ChannelOpenError(asyncssh.OPEN_RESOURCE_SHORTAGE, text)
        self._channels += 1

    def _give_channel(self) -> None:
        self._channels -= 1

    async def session_requested(self) -> asyncssh.SSHServerSession[bytes]:
        """Called by asyncssh for a shell, a command or a subsystem."""
        self._take_channel()
        try:
            task = await self._task()
            if task is None:
                return RefusedSession(self._refusal(), self._give_channel)
            task.require(task.permits.session())
            return task.session(self._give_channel)
        except BaseException:
            self._give_channel()
            raise

    async def connection_requested(
        self, dest_host: str, dest_port: int, orig_host: str, orig_port: int
    ) -> asyncssh.SSHTCPSession[bytes]:
        """Called by asyncssh for direct-tcpip: a jump to another task, or a port of this one."""
        self._take_channel()
        try:
            if dest_port == SSH_PORT and await self._jumps(dest_host):
                return self._jump(dest_host)
            task = await self._task()
            if task is None:
                raise asyncssh.ChannelOpenError(asyncssh.OPEN_CONNECT_FAILED, self._refusal())
            return await task.connection(dest_host, dest_port, orig_host, orig_port, self._give_channel)
        except BaseException:
            self._give_channel()
            raise

    def _jump(self, host: str) -> ChannelEnd:
        way = self._inside.take_way(host, SSH_PORT) if self._inside is not None else None
        if way is None or self._inside is None:
            raise asyncssh.ChannelOpenError(asyncssh.OPEN_CONNECT_FAILED, self._refusal())
        task, gone = way
        activity = self._inside.activity

        def over() -> None:
            gone()
            task.close()
            self._give_channel()

        return Jump(task, activity, over)

    async def unix_connection_requested(self, dest_path: str) -> asyncssh.SSHUNIXSession[bytes]:
        """Called by asyncssh for direct-streamlocal."""
        self._take_channel()
        try:
            task = await self._task()
            if task is None:
                raise asyncssh.ChannelOpenError(asyncssh.OPEN_CONNECT_FAILED, self._refusal())
            return await task.unix_connection(dest_path, self._give_channel)
        except BaseException:
            self._give_channel()
            raise

    async def server_requested(self, listen_host: str, listen_port: int) -> asyncssh.SSHListener | bool:
        """Called by asyncssh for ``ssh -R``."""
        task = await self._task()
        return False if task is None else await task.listen(self._conn, listen_host, listen_port)

    async def unix_server_requested(self, listen_path: str) -> asyncssh.SSHListener | bool:
        """The same with a socket in the file system."""
        task = await self._task()
        return False if task is None else await task.listen_on_socket(self._conn, listen_path)


class Jump(ChannelEnd):
    """The client's end of a stream to a task's own SSH server."""

    def __init__(self, task: TaskJump, activity: LoginActivity, gone: Callable[[], None]) -> None:
        super().__init__(lambda size: activity.add(size, to_task=True), gone)
        self._task, self._activity = task, activity

    def session_started(self) -> None:
        """Called by asyncssh when data may flow."""
        self._task.start(self)

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        """Called by asyncssh with bytes of the client."""
        self._count(len(data))
        self._task.write(data)

    def eof_received(self) -> bool:
        """Called by asyncssh when the client's own SSH has ended; one that was killed takes nothing any more."""
        self._task.close()
        if self.chan is not None:
            self.chan.abort()
        return False

    def pause_writing(self) -> None:
        """Called by asyncssh when the client's window is used up."""
        self._task.pause_reading()

    def resume_writing(self) -> None:
        """Called by asyncssh when it takes again."""
        self._task.resume_reading()

    # ---- the task's end (``jump.JumpClient``) --------------------------------------------------
    def from_task(self, data: bytes) -> None:
        """Bytes of the task."""
        self._activity.add(len(data), to_task=False)
        if self.is_open:
            self.chan.write(data)

    def task_gone(self) -> None:
        """The task's end has closed."""
        if self.is_open:
            self.chan.close()

    def hold_client(self, *, hold: bool) -> None:
        """Read nothing more of the client, or go on."""
        if self.is_open:
            (self.chan.pause_reading if hold else self.chan.resume_reading)()
