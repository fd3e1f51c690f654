"""One client whose connection is joined to its task's, message by message."""

from __future__ import annotations

import asyncssh

from pai_backend.access.broker.lookup import CertificateFacts
from pai_backend.access.gateway.door import Door
from pai_backend.access.gateway.entering import Entering
from pai_backend.access.gateway.joined.entering import JoinedEntering
from pai_backend.access.gateway.joined.front import JoinedClient
from pai_backend.access.gateway.joined.pipe import JumpChannel, Pipe, jump_channel
from pai_backend.access.gateway.legs import ClientLeg
from pai_backend.access.gateway.login import Login
from pai_backend.access.gateway.proof import ProvenCredential
from pai_backend.access.gateway.refusing import RefusedSession


class JoinedLogin(Login):
    """asyncssh's callbacks for one client connection, which is a :class:`JoinedClient`."""

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        """Called by asyncssh for a new client."""
        assert isinstance(conn, JoinedClient)
        conn.max_auth_tries = self._doors.options.max_auth_tries
        conn.max_channels = self._doors.options.max_channels
        conn.is_certified, conn.is_welcome = self._is_certified, self._is_welcome
        self.begin(conn)

    async def _is_certified(self, facts: CertificateFacts) -> bool:
        """As ``validate_public_key``, for a certificate."""
        assert self._proof is not None
        return await self._proof.take_certificate(facts)

    def auth_completed(self) -> None:
        """Called by asyncssh when the key last validated has signed."""
        super().auth_completed()
        assert isinstance(self._front, JoinedClient)
        self._front.enter, self._front.jumps = self._enter, self._jumps

    def _entering(self, front: ClientLeg, who: ProvenCredential, door: Door) -> Entering:
        return JoinedEntering(self._doors.room, front, who, door, self._task_lost)

    # ---- while there is no task to go to -------------------------------------------------------
    def session_requested(self) -> asyncssh.SSHServerSession[bytes]:
        """Called by asyncssh for a session when the task was refused."""
        return RefusedSession(self._refusal())

    def connection_requested(
        self, dest_host: str, dest_port: int, orig_host: str, orig_port: int
    ) -> tuple[JumpChannel, Pipe]:
        """Called by asyncssh for direct-tcpip: the way of a jump, or a refusal."""
        way = self._inside.take_way(dest_host, dest_port) if self._inside is not None else None
        if way is None or self._inside is None or not isinstance(self._front, JoinedClient):
            raise asyncssh.ChannelOpenError(asyncssh.OPEN_CONNECT_FAILED, self._refusal())
        channel, gone = way
        return jump_channel(self._front), Pipe(channel, self._inside.activity, gone)

    def unix_connection_requested(self, dest_path: str) -> bool:
        """Called by asyncssh for direct-streamlocal when the task was refused."""
        raise asyncssh.ChannelOpenError(asyncssh.OPEN_CONNECT_FAILED, self._refusal())
