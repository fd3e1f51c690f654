"""One client at the gateway, from its first byte to its last.

A stranger learns nothing: every wrong key and every unknown name is "Permission denied". Only after a
registered key has proved itself are there sentences: on a session's stderr, or as a channel's refusal.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

import asyncssh

from pai_backend.access.gateway import names
from pai_backend.access.gateway.names import Entry, Refused
from pai_backend.access.gateway.options import GatewayOptions
from pai_backend.access.gateway.relay import Back, Front, end, join
from pai_backend.access.gateway.sessions import CUT_STATUS, Sessions
from pai_backend.access.gateway.upstream import open_back
from pai_backend.engine.base import Engine
from pai_backend.model.errors import NoSuchJob
from pai_backend.model.job import Job
from pai_backend.store.base import Store, UserKey

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Doors:
    """What every login of this gateway needs."""

    options: GatewayOptions
    store: Store
    engine: Engine
    client_key: asyncssh.SSHKey
    admit: Callable[[Login], bool]
    """Called for a new connection; False when too many have not logged in yet."""
    logged_in: Callable[[Login], None]
    left: Callable[[Login], None]
    lost: Callable[[Login], None]
    """Called when the task's end is gone while the client's still stands."""


async def find_job(store: Store, name: names.LoginName) -> Job | None:
    """The job a login name means, whoever owns it."""
    if name.alias:
        return await store.by_alias(name.alias)
    try:
        return await store.find(name.job, name.user)
    except NoSuchJob:
        return None


class Login(asyncssh.SSHServer):
    """asyncssh's callbacks for one client connection, and what the rest of the gateway may do with it."""

    def __init__(self, doors: Doors) -> None:
        self._doors = doors
        self._front: Front | None = None
        self._back: Back | None = None
        self._sessions = Sessions()
        self._name = ""
        self._keys: dict[str, UserKey] = {}
        self._key: UserKey | None = None
        self._refusal = ""
        self._from = "?"
        self._ended = False
        self._since = time.monotonic()
        self.entry: Entry | None = None
        """The task of an open back leg."""
        self.reason = "closed by the client"

    # ---- the connection ------------------------------------------------------------------------
    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        """Called by asyncssh for a new client."""
        assert isinstance(conn, Front)
        self._front = conn
        address = conn.get_extra_info("peername") or ("?", 0)
        self._from = f"{address[0]}:{address[1]}"
        if not self._doors.admit(self):
            self.reason = "too many connections that have not logged in"
            conn.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncssh once, however the connection ended."""
        self._doors.left(self)
        if self._back is not None:
            self._back.close()
        if exc is not None:
            self.reason = names.plain(str(exc)) or type(exc).__name__
        self._log_end()
        self._front = None

    @property
    def owner(self) -> str:
        """Whose key logged in; empty before that."""
        return self._key.user if self._key else ""

    @property
    def fingerprint(self) -> str:
        """The key that logged in; empty before that."""
        return self._key.fingerprint if self._key else ""

    def end(self, text: str) -> None:
        """End this login; ``text`` is shown to its user. Idempotent."""
        if self._front is not None and self._front.alive and not self._ended:
            self._ended = True
            self.reason = text
            end(self._front, self._sessions, text)

    def _log_end(self) -> None:
        where = self._peer()
        if self._key is None:
            log.info("not logged in name=%s from=%s reason=%s", names.plain(self._name), where, self.reason)
            return
        sent = self._back.passed_bytes if self._back else 0
        received = self._front.passed_bytes if self._front else 0
        log.info(
            "disconnect name=%s user=%s from=%s seconds=%.1f bytes_in=%d bytes_out=%d reason=%s",
            *(names.plain(self._name), self._key.user, where, time.monotonic() - self._since, received, sent),
            self.reason,
        )

    def _peer(self) -> str:
        version = self._front.get_extra_info("client_version", "?") if self._front else "?"
        return f"{self._from} client={names.plain(str(version), 80)!r}"

    # ---- who is it -----------------------------------------------------------------------------
    async def begin_auth(self, username: str) -> bool:
        """Called by asyncssh for the first request of each name; only the first name of a connection counts."""
        self._keys = {}
        if self._name:
            return True
        self._name = username
        try:
            job = await find_job(self._doors.store, names.parse(username))
            # For an unknown name every registered key is good: its owner then gets a sentence.
            known = await self._doors.store.keys(job.user if job else None)
        except Exception:
            log.exception("the store does not answer; a login is closed")
            raise
        self._keys = {key.fingerprint: key for key in known if job is None or names.may_enter(job, key.user)}
        return True

    def password_auth_supported(self) -> bool:
        """Public keys only."""
        return False

    def public_key_auth_supported(self) -> bool:
        """Public keys only."""
        return True

    async def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        """Called by asyncssh when a key is offered, and again before its signature is checked."""
        candidate = self._keys.get(key.get_fingerprint())
        if candidate is not None:
            self._key = candidate
        return candidate is not None

    def auth_completed(self) -> None:
        """Called by asyncssh when the key last validated has signed."""
        assert self._front is not None
        assert self._key is not None
        log.info(
            "login name=%s user=%s key=%s from=%s",
            *(names.plain(self._name), self._key.user, self._key.fingerprint, self._peer()),
        )
        self._front.enter = self._enter
        self._doors.logged_in(self)

    # ---- entering the task ---------------------------------------------------------------------
    async def _enter(self) -> None:
        """Open the back leg and join it; or keep the sentence for the session that asked."""
        try:
            self.entry = await self._find_entry()
            await self._open(self.entry)
        except Refused as exc:
            self._refuse(str(exc))
        except Exception:
            log.exception("a login failed inside the gateway name=%s", names.plain(self._name))
            self._refuse("The gateway has an internal error; it is in its log. Try again in a moment.")

    def _refuse(self, text: str) -> None:
        self.entry = None
        self._refusal = names.plain(text, 400)
        log.info("refused name=%s user=%s from=%s reason=%s", names.plain(self._name), self.owner, self._peer(), text)

    async def _find_entry(self) -> Entry:
        """Judge anew: between login and first channel a job may start or end and a key may be removed."""
        assert self._key is not None
        if self._key.fingerprint not in {key.fingerprint for key in await self._doors.store.keys(self._key.user)}:
            raise Refused("Your key was removed.")
        name = names.parse(self._name)
        job = await find_job(self._doors.store, name)
        if job is None or not names.may_enter(job, self._key.user):
            raise Refused(names.unknown(self._name))
        return names.find_entry(job, name.rest)

    async def _open(self, entry: Entry) -> None:
        doors, front = self._doors, self._front
        back = await open_back(entry, doors.store, doors.engine, doors.client_key, doors.options, self._back_lost)
        if front is None or not front.alive:
            back.close()
            return
        if not back.alive:  # lost in the moment between its login and now
            raise Refused(f"The connection to {entry.name} was lost. Connect again.")
        self._back = back
        join(front, back, self._sessions)

    def _back_lost(self) -> None:
        if self._back is not None and self._front is not None and self._front.alive and not self._ended:
            self._doors.lost(self)

    # ---- while there is no task to go to -------------------------------------------------------
    def session_requested(self) -> asyncssh.SSHServerSession[bytes]:
        """Called by asyncssh for a session when the task was refused."""
        return _RefusedSession(self._refusal)

    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> bool:
        """Called by asyncssh for direct-tcpip when the task was refused."""
        raise asyncssh.ChannelOpenError(asyncssh.OPEN_CONNECT_FAILED, self._refusal)

    def unix_connection_requested(self, dest_path: str) -> bool:
        """Called by asyncssh for direct-streamlocal when the task was refused."""
        raise asyncssh.ChannelOpenError(asyncssh.OPEN_CONNECT_FAILED, self._refusal)


class _RefusedSession(asyncssh.SSHServerSession[bytes]):
    """A session that says one line on stderr and exits with ssh's own status for failure."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._chan: asyncssh.SSHServerChannel[bytes] | None = None

    def connection_made(self, chan: asyncssh.SSHServerChannel[bytes]) -> None:
        """Called by asyncssh first."""
        self._chan = chan

    def pty_requested(self, *_: object) -> bool:
        """Accepted, so that the client goes on to the request that gets the answer."""
        return True

    def shell_requested(self) -> bool:
        """Accepted; answered in ``session_started``."""
        return True

    def exec_requested(self, command: str) -> bool:
        """Accepted; answered in ``session_started``."""
        return True

    def subsystem_requested(self, subsystem: str) -> bool:
        """Accepted; answered in ``session_started``."""
        return True

    def session_started(self) -> None:
        """Called by asyncssh after the client has read that its request was accepted."""
        assert self._chan is not None
        self._chan.write_stderr(f"pai: {self._text}\r\n".encode())
        self._chan.exit(CUT_STATUS)
