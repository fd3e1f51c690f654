"""The tasks of one login whose channels are opened in the task one by one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import asyncssh

from pai_backend.access.broker.rights import Limits
from pai_backend.access.gateway.activity import ChannelRequest
from pai_backend.access.gateway.documented.copying import ChannelEnd, ClientSession, TaskSession
from pai_backend.access.gateway.documented.permits import Permits
from pai_backend.access.gateway.entering import Entering, reachable
from pai_backend.access.gateway.legs import TaskLeg
from pai_backend.access.gateway.names import EntryPoint
from pai_backend.access.gateway.reading_only import ReadingOnly


class CopiedEntering(Entering):
    """What a login opens in its task, within its limits."""

    permits: Permits
    """Of the task that was entered."""

    def _join(self, back: TaskLeg, entry: EntryPoint, limits: Limits) -> None:
        self.permits = Permits(limits, reachable(entry, limits))
        self.task = back.connection

    def _to_task(self, size: int) -> None:
        self.activity.add(size, to_task=True)

    def _to_client(self, size: int) -> None:
        self.activity.add(size, to_task=False)

    # ---- sessions ------------------------------------------------------------------------------
    def session(self, gone: Callable[[], None]) -> ClientSession:
        """The client's end of a session."""
        return ClientSession(self.activity, self._refusal, self._open_session, gone)

    def _refusal(self, name: str, subject: str) -> str:
        self.activity.note(ChannelRequest(name, subject))
        return self.permits.request(name, subject)

    async def _open_session(self, client: ClientSession) -> TaskSession:
        chan: asyncssh.SSHServerChannel[bytes] = client.chan
        if self.permits.reads_only:
            client.reads = ReadingOnly()
        end = TaskSession(self._to_client)
        wanted: dict[str, Any] = {"env": self.permits.environment(dict(chan.get_environment())), "request_pty": False}
        if client.has_terminal:
            wanted |= {
                "request_pty": "force",
                "term_type": chan.get_terminal_type(),
                "term_size": chan.get_terminal_size(),
                "term_modes": chan.get_terminal_modes(),
            }
        await self.task.create_session(
            lambda: end,
            chan.get_command(),
            subsystem=chan.get_subsystem(),
            encoding=None,
            **wanted,
        )
        return end

    # ---- forwarding ----------------------------------------------------------------------------
    async def connection(
        self, dest_host: str, dest_port: int, orig_host: str, orig_port: int, gone: Callable[[], None]
    ) -> ChannelEnd:
        """The client's end of a connection to a port. Raises ChannelOpenError."""
        self.require(self.permits.connection(dest_host, dest_port))
        far = ChannelEnd(self._to_client)
        await self.task.create_connection(lambda: far, dest_host, dest_port, orig_host, orig_port, encoding=None)
        return self._near(far, "direct-tcpip", gone)

    async def unix_connection(self, path: str, gone: Callable[[], None]) -> ChannelEnd:
        """The client's end of a connection to a socket in the file system. Raises ChannelOpenError."""
        self.require(self.permits.sockets())
        far = ChannelEnd(self._to_client)
        await self.task.create_unix_connection(lambda: far, path, encoding=None)
        return self._near(far, "direct-streamlocal@openssh.com", gone)

    def _near(self, far: ChannelEnd, kind: str, gone: Callable[[], None]) -> ChannelEnd:
        self.activity.note(ChannelRequest(kind))
        return Near(far, self._to_task, gone)

    @staticmethod
    def require(refusal: str) -> None:
        """Raise ChannelOpenError where there is a refusal."""
        if refusal:
            raise asyncssh.ChannelOpenError(asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED, refusal)

    # ---- listening -----------------------------------------------------------------------------
    async def listen(self, client: asyncssh.SSHServerConnection, host: str, port: int) -> asyncssh.SSHListener | bool:
        """Listen in the task for the client; False where that cannot be."""
        if self.permits.sockets():
            return False

        def arrived(orig_host: str, orig_port: int) -> ChannelEnd:
            async def offer(far: Arrived, near: ChannelEnd) -> None:
                await client.create_connection(
                    lambda: near, host, listener.get_port(), orig_host, orig_port, encoding=None
                )

            return self._arrived(offer)

        try:
            listener = await self.task.create_server(arrived, host, port, encoding=None)
        except asyncssh.ChannelListenError:
            return False
        return listener

    async def listen_on_socket(self, client: asyncssh.SSHServerConnection, path: str) -> asyncssh.SSHListener | bool:
        """The same with a socket in the file system."""
        if self.permits.sockets():
            return False

        async def offer(far: Arrived, near: ChannelEnd) -> None:
            await client.create_unix_connection(lambda: near, path, encoding=None)

        try:
            return await self.task.create_unix_server(lambda: self._arrived(offer), path, encoding=None)
        except asyncssh.ChannelListenError:
            return False

    def _arrived(self, offer: Callable[[Arrived, ChannelEnd], Any]) -> Arrived:
        return Arrived(self._to_client, ChannelEnd(self._to_task), offer)


class Near(ChannelEnd):
    """The client's end of a connection whose task's end is open already."""

    def __init__(self, far: ChannelEnd, count: Callable[[int], None], gone: Callable[[], None]) -> None:
        super().__init__(count, gone)
        self._far = far

    def session_started(self) -> None:
        """Called by asyncssh when the client has been told that the connection stands."""
        self.meet(self._far)


class Arrived(ChannelEnd):
    """The task's end of a connection to what the client listens with.

    Nothing is read before the client has taken it.
    """

    def __init__(
        self, count: Callable[[int], None], near: ChannelEnd, offer: Callable[[Arrived, ChannelEnd], Any]
    ) -> None:
        super().__init__(count)
        self._near, self._offer = near, offer

    def session_started(self) -> None:
        """Called by asyncssh."""
        self._offering = asyncio.create_task(self._hand_on(), name="gateway-arrived")

    async def _hand_on(self) -> None:
        try:
            await self._offer(self, self._near)
        except asyncssh.Error:  # the client does not take it
            if self.is_open:
                self.chan.close()
            return
        self.meet(self._near)
