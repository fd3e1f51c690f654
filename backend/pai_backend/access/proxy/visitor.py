"""Who sends a request, and whether another site made the browser send it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

from pai_backend.access.proxy.address import ServiceAddress, query_values
from pai_backend.access.proxy.fields import HeaderFields
from pai_backend.access.proxy.headers import wants_upgrade
from pai_backend.access.proxy.refusal import Refusal, Refused
from pai_backend.access.tickets import (
    COOKIE,
    HOST_COOKIE,
    HOST_LINK_COOKIE,
    LINK_COOKIE,
    Claims,
    TicketOffice,
)
from pai_backend.model.errors import LockedOut
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Job
from pai_backend.model.scope import Scope

_SAFE_METHODS = frozenset({"GET", "HEAD"})
_OVERRIDES = frozenset({"x-http-method", "x-http-method-override", "x-method-override"})
_REPEATABLE = frozenset({"GET", "HEAD", "OPTIONS"})
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


class KnownUser(Protocol):
    """A user as the authenticator gives it."""

    @property
    def name(self) -> str:
        """The user's name."""
        ...

    @property
    def admin(self) -> bool:
        """Whether this user administers the cluster now."""
        ...

    @property
    def token(self) -> str:
        """Digest of the token that stands for the user."""
        ...

    @property
    def within(self) -> str:
        """The virtual cluster whose jobs the token is limited to; empty: it is not."""
        ...

    def may(self, scope: Scope) -> bool:
        """Whether the token allows this part of the API."""
        ...


class Entrants(Protocol):
    """Who may enter tasks, as things are now."""

    async def of_token(self, token: str) -> KnownUser | None:
        """The user of a token; None when it is no longer valid or its user is gone. Raises LockedOut."""
        ...

    async def of_bearer(self, token: str) -> KnownUser | None:
        """The user of a token by which a request comes: it may be of one who is known elsewhere, who is asked."""
        ...

    async def of_digest(self, token: str) -> KnownUser | None:
        """The same by the token's digest."""
        ...


@dataclass(frozen=True)
class Incoming:
    """A request for a service, as far as its header tells."""

    method: str
    address: ServiceAddress
    headers: HeaderFields
    host: str
    scheme: str
    remote_ip: str
    has_body: bool = False
    """Whether a body follows the header."""
    is_from_proxy: bool = False
    """Whether a proxy of ours sends it (``api.proxies``)."""

    @property
    def may_be_repeated(self) -> bool:
        """Whether a task that has ended a connection without a word may be sent this again (RFC 9110 §9.2.2)."""
        return self.method in _REPEATABLE and not self.has_body and not self.upgrades

    @property
    def upgrades(self) -> bool:
        """Whether the client asks to leave HTTP, for WebSocket or another protocol."""
        return wants_upgrade(self.headers)


@dataclass(frozen=True)
class Visitor:
    """Someone who has proved who they are."""

    name: str
    ambient: bool
    """Known by a cookie, which a browser attaches to a request of any page."""
    token: str
    """Digest of what it was known by, or what a session was issued to."""
    job: JobUid | None = None
    """The one job that a session is for; an owner's session at a workspace name is for whichever job holds it."""
    as_admin: bool = False
    """An administrator who has stated why they enter this job."""
    link: str = ""
    """Digest of the token of the link that a visitor without a name came by."""
    within: str = ""
    """The virtual cluster whose jobs the token is limited to; empty: it is not."""

    def reaches(self, job: Job) -> bool:
        """Whether the visitor's token is good for this job at all, be it their own or shared with them."""
        return self.within in ("", job.virtual_cluster)

    def may_enter(self, job: Job) -> bool:
        """Whether the services of this job are open to the visitor without a share.

        May an administrator see it, that opens nothing. The address of a workspace goes on to its owner's next job, and
        so does the owner's session there.
        """
        if self.link or not self.reaches(job):
            return False
        is_owner = self.name == job.user and not self.as_admin
        if self.job in (None, job.uid):
            return self.as_admin or is_owner
        return is_owner and job.spec.address != ""


async def identify(incoming: Incoming, entrants: Entrants, office: TicketOffice) -> Visitor:
    """The sender, by bearer token or session cookie. Raises Refused (sign in) when there is neither."""
    scheme, _, token = incoming.headers.get("Authorization", "").partition(" ")
    user = await entrants.of_bearer(token.strip()) if scheme.lower() == "bearer" else None
    if user is not None and user.may(Scope.SSH):
        return Visitor(user.name, ambient=False, token=user.token, within=user.within)
    own = HOST_COOKIE if incoming.scheme == "https" and not incoming.address.prefix else COOKIE
    for value in _sessions(incoming.headers, own):
        claims = office.session(value, incoming.address.service)
        visitor = await visitor_of(claims, entrants) if claims is not None else None
        if visitor is not None:
            return visitor
    own = HOST_LINK_COOKIE if incoming.scheme == "https" else LINK_COOKIE
    for value in () if incoming.address.prefix else _sessions(incoming.headers, own):
        claims = office.session(value, incoming.address.service, LINK_COOKIE)
        if claims is not None:
            return Visitor("", ambient=True, token="", job=claims.job, link=claims.link)
    raise Refused(Refusal.SIGN_IN)


async def visitor_of(claims: Claims, entrants: Entrants) -> Visitor | None:
    """Whom a ticket or session stands for; None when token, user or administrator rights are no longer valid."""
    user = await entrants.of_digest(claims.token)
    if user is None or user.name != claims.user or (claims.admin and not user.admin):
        return None
    return Visitor(
        user.name, ambient=True, token=claims.token, job=claims.job, as_admin=claims.admin, within=user.within
    )


async def still(visitor: Visitor, entrants: Entrants) -> bool:
    """Whether a visitor who was let in would be let in now, as far as it depends on who that is."""
    if visitor.link:
        return True
    try:
        user = await entrants.of_digest(visitor.token)
    except LockedOut:
        return False
    return user is not None and user.name == visitor.name and (user.admin or not visitor.as_admin)


def refuse_foreign(incoming: Incoming, visitor: Visitor) -> None:
    """Raise Refused when another site made the browser send a request that could do something.

    A page can open a WebSocket to any host, and post a form to it, and the cookie goes along between services of
    one domain whatever SameSite says. A bearer token never goes along by itself, so its requests are the sender's own.
    """
    if not visitor.ambient or (incoming.method in _SAFE_METHODS and not incoming.upgrades):
        return
    origin = incoming.headers.get("Origin")
    if origin is None:
        if incoming.headers.get("Sec-Fetch-Site", "none") in ("cross-site", "same-site"):
            raise Refused(Refusal.FOREIGN)
        return
    if not same_host(origin, incoming.host):
        raise Refused(Refusal.FOREIGN)


def refuse_changes(incoming: Incoming, visitor: Visitor) -> None:
    """Raise Refused for what could change something, from a visitor by a link: all but GET and HEAD (RFC 9110 §9.2.1).

    What passes in a WebSocket cannot be told to be safe, and some applications take another method from a header.
    """
    if not visitor.link:
        return
    is_safe = incoming.method in _SAFE_METHODS and not incoming.has_body and "Upgrade" not in incoming.headers
    overrides = any(low in _OVERRIDES for low, _, _ in incoming.headers.triples)
    if not is_safe or overrides or query_values(incoming.address.query, "_method"):
        raise Refused(Refusal.READ_ONLY)


def same_host(origin: str, host: str) -> bool:
    """Whether an address has the host name and the port of a ``Host`` header."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    default = _DEFAULT_PORTS.get(parts.scheme, "")
    return bool(parts.netloc) and parts.netloc.lower().removesuffix(default) == host.lower().removesuffix(default)


def _sessions(headers: HeaderFields, own: str) -> list[str]:
    pairs = (pair.strip().partition("=") for value in headers.get_list("Cookie") for pair in value.split(";"))
    return [value for name, _, value in pairs if name == own]
