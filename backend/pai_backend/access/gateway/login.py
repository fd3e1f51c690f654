"""One client at the gateway, from its first byte to its last.

A stranger learns nothing: every wrong key and every unknown name is "Permission denied". Only after a key or
certificate has proved itself are there sentences: in the banner while it waits or has to try another key, on a
session's stderr, or as a channel's refusal.
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass

import asyncssh

from pai_backend.access.broker.rights import Credential, Limits
from pai_backend.access.gateway import names
from pai_backend.access.gateway.activity import LoginActivity
from pai_backend.access.gateway.door import Door
from pai_backend.access.gateway.entering import Entering, EntryContext
from pai_backend.access.gateway.legs import ClientLeg
from pai_backend.access.gateway.names import EntryPoint, LoginRefused
from pai_backend.access.gateway.options import GatewayOptions
from pai_backend.access.gateway.proof import Proof, ProvenCredential, line_of
from pai_backend.access.gateway.reasons import RefusalReason
from pai_backend.access.gateway.reporting import LoginReporter
from pai_backend.model.ids import JobUid

CLIENT_CHARACTERS = 80  # of a client's version, in logs and events
SENTENCE_CHARACTERS = 400

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Doors:
    """What every login of this gateway needs."""

    options: GatewayOptions
    room: EntryContext
    reporter: LoginReporter
    admit: Callable[[Login], None]
    """Called for a new connection."""
    progress: Callable[[Login], None]
    """Called when keys are exchanged and the login has begun."""
    proved: Callable[[Login, Credential], str]
    """Called when a user has authenticated; why they cannot enter all the same, or an empty text."""
    left: Callable[[Login], None]
    lost: Callable[[Login], None]
    """Called when the task's end is gone while the client's still stands."""


class Login(asyncssh.SSHServer, ABC):
    """asyncssh's callbacks for one client connection, and what the rest of the gateway may do with it."""

    def __init__(self, doors: Doors) -> None:
        self._doors = doors
        self._front: ClientLeg | None = None
        self._proof: Proof | None = None
        self._inside: Entering | None = None
        self._said: tuple[str, ...] = ()
        self._ended = False
        self._since = time.monotonic()
        self.name, self.address, self.port, self.client = "", "?", 0, "?"
        """What it asked for, where it comes from and what it is, fit to be shown."""
        self.credential: Credential | None = None
        """Who logged in; None before that."""
        self.reason, self.reason_text = RefusalReason.CLOSED, ""

    # ---- the connection ------------------------------------------------------------------------
    def begin(self, front: ClientLeg) -> None:
        """A client has come."""
        self._front = front
        self.address, self.port = (front.get_extra_info("peername") or ("?", 0))[:2]
        self._doors.admit(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncssh once, however the connection ended."""
        self._doors.left(self)
        if self._inside is not None:
            self._inside.close()
        if exc is not None and self.reason is RefusalReason.CLOSED:
            self.reason, self.reason_text = _why_lost(exc)
        self._note_client()
        self._doors.reporter.ended(self, time.monotonic() - self._since)
        self._front = None

    def end(self, refused: LoginRefused) -> None:
        """End this login for a reason that its user is shown. Idempotent."""
        if self._front is not None and self._front.alive and not self._ended:
            self._ended = True
            self.reason, self.reason_text = refused.reason, str(refused)
            self._front.end(self._inside.sessions if self._inside else None, str(refused))

    @property
    def entries(self) -> Collection[tuple[EntryPoint, Limits]]:
        """Tasks that this login has entered, and what it may do there."""
        return self._inside.entries if self._inside is not None else ()

    @property
    def visited(self) -> Collection[EntryPoint]:
        """Every task that it has entered, whether it still is there or not."""
        return self._inside.visited.values() if self._inside is not None else ()

    @property
    def activity(self) -> LoginActivity | None:
        """What it is used for; None before it is complete."""
        return self._inside.activity if self._inside is not None else None

    @property
    def terminal_job(self) -> tuple[JobUid, int | None] | None:
        """The job that its terminals are in, with that job's idle timeout, if any; None where none has to be told."""
        return self._inside.terminal_job if self._inside is not None else None

    def say_on_terminals(self, text: str) -> None:
        """Show a line on its terminals beside what the task says."""
        if self._inside is not None and not self._ended:
            self._inside.say_on_terminals(text)

    def _note_client(self) -> None:
        """What its client calls itself, as long as the connection knows (``let_go``)."""
        version = self._front.get_extra_info("client_version") if self._front else None
        if version is not None:
            self.client = names.plain(str(version), CLIENT_CHARACTERS)

    # ---- who is it -----------------------------------------------------------------------------
    async def begin_auth(self, username: str) -> bool:
        """Called by asyncssh for the first request of each name; only the first name of a connection counts."""
        if self._proof is None:
            self._doors.progress(self)
            self.name = names.plain(username)
            self._note_client()
            self._proof = Proof(self._doors.room.store, Door(self._doors.room.store, username))
        return True

    def password_auth_supported(self) -> bool:
        """Public keys only."""
        return False

    def public_key_auth_supported(self) -> bool:
        """Public keys only."""
        return True

    async def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        """Called by asyncssh when a key has signed."""
        assert self._proof is not None
        return await self._proof.take_key(key.get_fingerprint(), line_of(key))

    async def _is_welcome(self) -> bool:
        """Whether a known user may enter. Tells them why not; waits for the task where the options say so."""
        assert self._proof is not None
        assert self._proof.offer is not None
        offer, door = self._proof.offer, self._proof.door
        if not offer.welcome:
            self._refused_at(offer.credential, names.not_for(door.text))
            return False
        crowd = self._doors.proved(self, offer.credential)
        if crowd:
            self._refused_at(offer.credential, LoginRefused(crowd, RefusalReason.CROWDED))
            return False
        self.credential = offer.credential
        options = self._doors.options
        wait_s = options.wait_s
        if self._front is not None and door.starts(offer.credential):
            wait_s = max(wait_s, options.start_wait_s)
        if wait_s and self._front is not None:
            self._front.keep_waiting()
            await door.wait(offer.credential, wait_s, self._say)
        return self._front is not None and self._front.alive

    def _refused_at(self, credential: Credential, refused: LoginRefused) -> None:
        assert self._proof is not None
        self._say(str(refused))
        self._doors.reporter.refused(self, credential, self._proof.door.job_seen, refused)

    def _say(self, text: str) -> None:
        """Show a line before the login is complete; the same one only once."""
        if self._front is not None and self._front.alive and text not in self._said:
            self._said += (text,)
            self._front.send_auth_banner(f"pai: {names.plain(text, SENTENCE_CHARACTERS)}\r\n")

    def auth_completed(self) -> None:
        """Called by asyncssh when the key last validated has signed."""
        assert self._front is not None
        assert self._proof is not None
        assert self._proof.offer is not None
        who = self._proof.offer
        self._inside = self._entering(self._front, who, self._proof.door)
        self._inside.activity.client_version = self.client
        self._proof, self._said = None, ()  # a login may stay for days
        self._doors.reporter.logged_in(self, who.credential)

    @abstractmethod
    def _entering(self, front: ClientLeg, who: ProvenCredential, door: Door) -> Entering:
        """What is behind this login."""

    # ---- entering the task ---------------------------------------------------------------------
    async def _enter(self) -> None:
        """Open the back leg and join it; or keep the sentence for the session that asked."""
        assert self._inside is not None
        assert self.credential is not None
        outcome = await self._inside.enter()
        if isinstance(outcome, LoginRefused):
            self._doors.reporter.refused(self, self.credential, self._inside.door.job_seen, outcome)
        else:
            self._doors.reporter.entered(self, self.credential, outcome)

    async def _jumps(self, host: str) -> bool:
        """Whether a host is a task of ours; the way to it is open then, or its refusal ready."""
        assert self._inside is not None
        assert self.credential is not None
        way = await self._inside.prepare_jump(host)
        if isinstance(way, LoginRefused):
            self._doors.reporter.refused(self, self.credential, None, way)
        elif way is not None:
            self._doors.reporter.entered(self, self.credential, way)
        return way is not None

    def _task_lost(self) -> None:
        if self._front is not None and self._front.alive and not self._ended:
            self._doors.lost(self)

    def _refusal(self) -> str:
        text = self._inside.refusal if self._inside is not None else ""
        return names.plain(text or "This connection jumps to other tasks; open a new one.", SENTENCE_CHARACTERS)


def _why_lost(exc: Exception) -> tuple[RefusalReason, str]:
    """Why a connection broke, by what asyncssh says of it."""
    text = names.plain(str(exc)) or type(exc).__name__
    if isinstance(exc, asyncssh.ConnectionLost):
        late = "timeout" in text.lower() or "keepalive" in text.lower()
        return (RefusalReason.TIMEOUT if late else RefusalReason.LOST), text
    if isinstance(exc, asyncssh.DisconnectError):
        return (RefusalReason.CLOSED if exc.code == asyncssh.DISC_BY_APPLICATION else RefusalReason.PROTOCOL), text
    return (RefusalReason.LOST if isinstance(exc, OSError) else RefusalReason.PROTOCOL), text
