"""Signing in to a service: one-time tickets for the way there, session cookies for the stay.

A service has a host name of its own, so the browser brings no credential along. The panel asks the api
for a ticket and opens the service with it; the proxy redeems the ticket once and answers with a cookie that only
that host (or path) ever sees. Both are signed statements of who may enter which service of which job, until when.

A signature alone cannot make a ticket single-use, and a list in memory does not hold across api replicas: so a
ticket is spent by claiming its number in the store, which gives it to exactly one caller.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from http.cookies import SimpleCookie
from typing import Protocol

from pydantic import ValidationError
from tornado.web import create_signed_value, decode_signed_value

from pai_backend.model.base import Model
from pai_backend.model.errors import Unauthorized
from pai_backend.model.ids import JobUid
from pai_backend.model.text import Text

COOKIE = "pai-session"
HOST_COOKIE = f"__Host-{COOKIE}"
"""Where TLS and the whole host are ours: browsers take it from this host alone, never from one for a wider domain."""
LINK_COOKIE = "pai-link"
HOST_LINK_COOKIE = f"__Host-{LINK_COOKIE}"
COOKIES = (COOKIE, HOST_COOKIE, LINK_COOKIE, HOST_LINK_COOKIE)
TICKET_LIFE = timedelta(seconds=60)
SESSION_LIFE = timedelta(hours=12)

_TICKET_KIND = "pai-ticket"  # part of what is signed: a cookie is never taken for a ticket or the other way round
_REMEMBERED = 1024  # sessions whose signature has been checked: a page load brings one a hundred times
_SIGNATURE_AGE_DAYS = 31.0  # an outer bound only; ``expires_at`` inside the statement is what counts


class ClaimStore(Protocol):
    """The part of the store that decides who comes first."""

    async def claim(self, name: str, until: datetime, now: datetime) -> bool:
        """Whether the caller is the first to claim this name."""
        ...


class Claims(Model):
    """Who may enter which service, until when."""

    user: str
    admin: bool
    """Whether an administrator has stated a reason to enter another user's job."""
    token: str
    """Digest of the token that it was issued to; it ends with that."""
    service: str
    job: JobUid
    expires_at: datetime
    number: str = ""
    link: str = ""
    """Digest of the token of a link that it was issued to, instead of a user's."""


def utc_now() -> datetime:
    """The clock used where no other is given."""
    return datetime.now(UTC)


class TicketOffice:
    """Issues and redeems tickets and session cookies. Any number of replicas may share store and key."""

    def __init__(self, claims: ClaimStore, key: str, now: Callable[[], datetime] = utc_now) -> None:
        self._claims = claims
        self._key = key
        self._now = now
        self._sessions: dict[tuple[str, str], Claims] = {}

    def issue(
        self, user: str, service: str, job: JobUid, *, token: str, admin: bool = False, life: timedelta = TICKET_LIFE
    ) -> tuple[str, datetime]:
        """A ticket and when it expires. ``token`` is the digest of what its user has shown."""
        claims = Claims(
            user=user,
            admin=admin,
            token=token,
            service=service,
            job=job,
            expires_at=(until := self._now() + life),
            number=secrets.token_hex(16),
        )
        return self._sign(_TICKET_KIND, claims), until

    async def redeem(self, ticket: str, service: str) -> Claims:
        """What the ticket says, once. Raises Unauthorized (forged, expired, for another service, used before)."""
        claims = self._read(_TICKET_KIND, ticket, service)
        if claims is None:
            raise Unauthorized(
                Text("This sign-in link is not valid or has expired."), hint=Text("Open the service again.")
            )
        if not await self._claims.claim(f"ticket:{claims.number}", claims.expires_at, self._now()):
            raise Unauthorized(Text("This sign-in link was used before."), hint=Text("Open the service again."))
        return claims

    def cookie(self, claims: Claims, *, path: str, secure: bool) -> str:
        """The ``Set-Cookie`` text of a session (12 h) for what these claims allow, on the answering host alone."""
        session = claims.model_copy(update={"expires_at": self._now() + SESSION_LIFE, "number": ""})
        name = HOST_COOKIE if secure and path == "/" else COOKIE
        return self._cookie(name, self._sign(COOKIE, session), path, SESSION_LIFE, secure=secure)

    def link_cookie(self, link: str, service: str, job: JobUid, until: datetime, *, secure: bool) -> str:
        """The same for who came by a link, which is over at ``until``. ``link``: digest of its token."""
        life = min(SESSION_LIFE, until - self._now())
        claims = Claims(
            user="", admin=False, token="", service=service, job=job, expires_at=self._now() + life, link=link
        )
        name = HOST_LINK_COOKIE if secure else LINK_COOKIE
        return self._cookie(name, self._sign(LINK_COOKIE, claims), "/", life, secure=secure)

    def _cookie(self, name: str, value: str, path: str, life: timedelta, *, secure: bool) -> str:
        jar: SimpleCookie = SimpleCookie()
        jar[name] = value
        morsel = jar[name]
        morsel["path"] = path
        morsel["max-age"] = str(int(life.total_seconds()))
        morsel["httponly"] = True
        morsel["samesite"] = "Lax"
        morsel["secure"] = secure
        return morsel.OutputString()

    def proof(self, service: str) -> str:
        """A text that only this backend makes for that service. No secret: it shows a browser whom it reached."""
        return hmac.new(self._key.encode(), b"reached\0" + service.encode(), hashlib.sha256).hexdigest()[:32]

    def session(self, value: str, service: str, kind: str = COOKIE) -> Claims | None:
        """What a session cookie's value says about this service; None when it is not ours, or over.

        ``kind``: ``LINK_COOKIE`` for one of a link.
        """
        claims = self._sessions.get((kind, value))
        if claims is None and (claims := self._read(kind, value.strip('"'), service)) is not None:
            if len(self._sessions) >= _REMEMBERED:
                del self._sessions[next(iter(self._sessions))]  # the oldest
            self._sessions[kind, value] = claims
        return claims if claims is not None and self._holds(claims, service) else None

    def _sign(self, kind: str, claims: Claims) -> str:
        # The stamp of the signature is not used (version 2 has it): the statement carries its own end.
        return create_signed_value(self._key, kind, claims.model_dump_json(), version=2, clock=self._clock).decode()

    def _read(self, kind: str, text: str, service: str) -> Claims | None:
        raw = decode_signed_value(
            self._key, kind, text, max_age_days=_SIGNATURE_AGE_DAYS, clock=self._clock, min_version=2
        )
        if raw is None:
            return None
        try:
            claims = Claims.model_validate_json(raw)
        except ValidationError:
            return None  # signed by another version of this program: the user signs in again
        return claims if self._holds(claims, service) else None

    def _holds(self, claims: Claims, service: str) -> bool:
        return claims.service == service and self._now() < claims.expires_at

    def _clock(self) -> float:
        return self._now().timestamp()
