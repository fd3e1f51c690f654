"""Who gets into a service, and where to: the decisions of the proxy on one request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Protocol
from urllib.parse import quote, urlsplit

from pai_backend.access.proxy.address import LINK, REACHED, SIGN_IN, ServiceAddress, query_values
from pai_backend.access.proxy.connections import Connections
from pai_backend.access.proxy.directory import JobFinder, Service, ServiceDirectory, ServicePlace
from pai_backend.access.proxy.forwarding import (
    AUTHORIZE,
    as_asked,
    go_here,
    go_there,
    hears_only_success,
    must_pass_here,
)
from pai_backend.access.proxy.headers import Upstream
from pai_backend.access.proxy.kept import Way
from pai_backend.access.proxy.pages import LINK_HEADER, Reply, link_page, plain_headers, reached, redirect
from pai_backend.access.proxy.refusal import Refusal, Refused
from pai_backend.access.proxy.relayed import given_host, given_prefix, given_scheme, is_relayed, local_path
from pai_backend.access.proxy.shared import SharedServices, ShareFinder, digest_of, opens
from pai_backend.access.proxy.upstream import Wire
from pai_backend.access.proxy.visitor import (
    Entrants,
    Incoming,
    KnownUser,
    Visitor,
    identify,
    refuse_changes,
    refuse_foreign,
    same_host,
    still,
    visitor_of,
)
from pai_backend.access.proxy.watch import RequestWatch
from pai_backend.access.tickets import ClaimStore, TicketOffice, utc_now
from pai_backend.access.uses import Uses
from pai_backend.engine.base import Connection, EngineError
from pai_backend.model.alias import Target, service_alias
from pai_backend.model.errors import Forbidden, NoSuchService, PaiError, Unauthorized
from pai_backend.model.idle import UseSource
from pai_backend.model.ids import JobUid, TaskUid
from pai_backend.model.job import Job
from pai_backend.model.node import Placement
from pai_backend.model.shared_origin import asks_for_worker
from pai_backend.model.text import Text
from pai_backend.model.urls import is_loopback
from pai_backend.store.grants import Act

__all__ = ["Grant", "KnownUser", "Passage", "ServiceProxy"]

DIAL_S = 10.0  # seconds to reach a task's port; an engine on this machine needs milliseconds, a far one a round trip
_READING = frozenset({"GET", "HEAD", "OPTIONS"})
MAX_TOKENS = 4  # in the query of a request
RESPONSE_S = 300.0  # seconds from the end of a request to the first byte of its answer


class Dialer(Protocol):
    """The part of an engine that the proxy needs."""

    async def dial(self, placement: Placement, uid: TaskUid, port: int) -> Connection:
        """A byte stream to that port of the task. Raises EngineError."""
        ...


@dataclass(frozen=True)
class Grant:
    """A one-time way into a service. Each of the two addresses works, once and until ``expires_at``."""

    url: str
    path_url: str
    """Below the api's own root: ``/s/<service alias>/…``; empty for a service of another user."""
    expires_at: datetime
    proof: str
    """What ``REACHED`` of the own address answers."""
    is_jupyter: bool
    """Whether a running Jupyter server is there, which works at both addresses."""


@dataclass(frozen=True)
class Passage:
    """A way to the task that is open."""

    wire: Wire
    to: Upstream
    keep: Callable[[Wire], None]
    """To be called with the connection when the request needs it no longer."""
    dial: Callable[[], Awaitable[Wire]] | None
    """Makes another connection; None for a request that must not be sent twice."""
    still: Callable[[], Awaitable[bool]]
    """Whether the visitor would be let in now. Raises PaiError when that cannot be told."""
    used: Callable[[], None] | None = None
    """To be called whenever something passes; None for a job without an idle timeout."""


class ServiceProxy:
    """Lets owners of jobs through to the services of running tasks, those with whom they share them, and
    administrators who have said why.

    ``entrants`` tells who a token or a session stands for now, at each request, and ``shares`` what is shared.
    ``signing_key`` is the store's secret ``service-signing``, the same in all replicas and for the tokens that tasks
    are given (``launch.jupyter.made_token``). ``uses`` notes what passes. ``public_url`` is where users are told that
    the api is, behind a proxy.
    """

    def __init__(
        self,
        jobs: JobFinder,
        claims: ClaimStore,
        engine: Dialer,
        *,
        domain: str,
        signing_key: str,
        entrants: Entrants,
        shares: ShareFinder,
        now: Callable[[], datetime] = utc_now,
        response_s: float = RESPONSE_S,
        uses: Uses | None = None,
        public_url: str = "",
    ) -> None:
        self.domain = domain
        self._public_url = public_url
        self.response_s = response_s
        self._engine = engine
        self._entrants = entrants
        self._uses = uses
        self._now = now
        self._office = TicketOffice(claims, signing_key, now)
        self._shared = SharedServices(shares, now)
        self._directory = ServiceDirectory(jobs, signing_key)
        self.watch = RequestWatch()
        """Looks at the rights of those whose requests are under way."""
        self._connections = Connections()
        self._exchanges: set[asyncio.Task[None]] = set()

    async def grant(self, job: Job, target: Target, user: KnownUser, base_url: str, *, as_admin: bool = False) -> Grant:
        """A one-time sign-in of ``user`` to a service. ``as_admin``: an administrator, and the job's owner was told.

        ``base_url`` is where the api is reached; the service's host name takes its scheme and port.
        Raises NoSuchService, and Forbidden when the job is not the user's.
        """
        if target.label is None or job.spec.role(target.role).instances <= target.index:
            raise NoSuchService(Text("The job {id} has no such service.", id=job.id))
        administers = as_admin and user.admin
        visitor = Visitor(user.name, ambient=False, token=user.token, as_admin=administers, within=user.within)
        is_own = visitor.may_enter(job)
        if not is_own and not await self.is_shared(job, target, user.name):
            raise Forbidden(Text("The job {id} belongs to another user.", id=job.id))
        service = service_alias(job.alias, job.spec, target.role, target.index, target.label)
        ticket, until = self._office.issue(user.name, service, job.uid, token=user.token, admin=as_admin)
        way = f"{SIGN_IN}?ticket={quote(ticket, safe='')}&next=/"
        try:
            place = (await self._directory.find(service)).place
        except Refused as error:
            raise NoSuchService(Text("The job {id} is gone.", id=job.id)) from error
        return Grant(
            url=f"{self._origin(service, base_url)}{way}",
            path_url=f"/s/{service}{way}" if is_own else "",
            expires_at=until,
            proof=self._office.proof(service),
            is_jupyter=place is not None and place.is_jupyter,
        )

    async def is_shared(self, job: Job, target: Target, user: str) -> bool:
        """Whether another user's service is open to a user."""
        shares = await self._shared.finder.shares_in_force(job.uid, self._now())
        return any(share.is_for(user) and opens(share.limits, target.label or "") for share in shares)

    def link_to(self, service: str, base_url: str, token: str) -> str:
        """The address of a link. Its token is the fragment, which no browser sends: it is in no log and no Referer."""
        return f"{self._origin(service, base_url)}{LINK}#{token}"

    def seen_by_sender(self, found: Incoming) -> Incoming:
        """A request as its sender sees it: a proxy in front may have ended the TLS of an address that we tell users."""
        if not self._public_url:
            return found
        address = found.address
        told = self._public_url if address.prefix else self._origin(address.service, self._public_url)
        return replace(found, scheme=urlsplit(told).scheme) if same_host(told, found.host) else found

    def _origin(self, service: str, base_url: str) -> str:
        """A service's own address, with scheme and port of the api's."""
        base = urlsplit(base_url)
        port = f":{base.port}" if base.port else ""
        return f"{base.scheme}://{service}.{self.domain}{port}"

    async def admit(self, incoming: Incoming) -> Reply | Passage:
        """Decide on a request. Raises Refused, and PaiError from the store."""
        address = incoming.address
        if not address.target:
            return redirect(f"{address.service}/")
        if not address.target.startswith("/") or "#" in address.target:  # RFC 9112 §3.2.1
            raise Refused(Refusal.BAD_REQUEST)
        if address.path == SIGN_IN:
            return await self._sign_in(incoming)
        if address.path == AUTHORIZE and not address.prefix:
            return await self._authorize(incoming)
        if address.path == REACHED and not address.prefix:
            return reached(self._office.proof(address.service))
        if address.path == LINK and not address.prefix:
            return await self._by_link(incoming)
        if address.prefix and asks_for_worker(incoming.headers):
            raise Refused(Refusal.FOREIGN, "A service at a path address may not register a service worker.")
        visitor, service, place = await self._allowed(incoming)
        way = Way(place.task.uid, place.placement.node, place.port, visitor.name or visitor.link, visitor.as_admin)
        dial = partial(self._dial, address.service, service, place)
        # A kept connection may be ending now, so it takes nothing that must not be sent twice.
        kept = self._connections.take(way) if incoming.may_be_repeated else None
        return Passage(
            wire=kept or await dial(),
            to=_presentation(incoming, visitor, service, place),
            keep=partial(self._connections.put, way),
            dial=dial if incoming.may_be_repeated else None,
            still=partial(self._still, visitor, address, service.job.uid),
            used=None if visitor.link else self._noting(incoming, service.job, place),
        )

    async def _allowed(self, incoming: Incoming) -> tuple[Visitor, Service, ServicePlace]:
        """Who asks for what, and where it runs. Raises Refused."""
        visitor = await identify(incoming, self._entrants, self._office)
        refuse_foreign(incoming, visitor)
        refuse_changes(incoming, visitor)
        service = await self._directory.find(incoming.address.service)
        await self._require_entry(visitor, service, incoming.address)
        return visitor, service, service.running_place()

    async def _require_entry(self, visitor: Visitor, service: Service, address: ServiceAddress) -> None:
        """Raise Refused unless the service is the visitor's own or open to them by a share.

        What is another user's never has an origin that it shares: neither the api's nor that of the visitor's Jupyter.
        """
        if visitor.may_enter(service.job):
            return
        is_reached = visitor.reaches(service.job)
        if not is_reached or await self._shared.of_visitor(visitor, service, address.service) is None:
            raise Refused(Refusal.LINK_OVER if visitor.link else Refusal.FORBIDDEN)
        if address.prefix:
            raise Refused(Refusal.OWN_ADDRESS)

    async def _authorize(self, asking: Incoming) -> Reply:
        """Tell a proxy of ours where the request goes that it has got. Raises Refused."""
        if not asking.is_from_proxy:
            raise Refused(Refusal.UNKNOWN)
        try:
            return await self._where(asking)
        except (Refused, PaiError):
            if hears_only_success(asking):
                return go_here(asking)
            raise

    async def _where(self, asking: Incoming) -> Reply:
        incoming = as_asked(asking)
        if not incoming.address.target.startswith("/") or "#" in incoming.address.target:
            raise Refused(Refusal.BAD_REQUEST)
        if incoming.address.path in (SIGN_IN, AUTHORIZE, REACHED, LINK):
            return go_here(asking)
        visitor, service, place = await self._allowed(incoming)
        to = _presentation(incoming, visitor, service, place)
        if to.is_guest or must_pass_here(incoming, to):
            return go_here(asking)
        wire = await self._dial(incoming.address.service, service, place)  # which may not listen yet: it is waited for
        peer = wire.transport.get_extra_info("peername")
        wire.close()
        if not isinstance(peer, tuple):
            return go_here(asking)  # a stream through the cluster's API
        if (used := self._noting(incoming, service.job, place)) is not None:
            used()
        return go_there((str(peer[0]), int(peer[1])), incoming, to, is_owner=not visitor.as_admin)

    async def _still(self, visitor: Visitor, address: ServiceAddress, job: JobUid) -> bool:
        """Whether a visitor who was let in would be let in now, to the same job."""
        if not await still(visitor, self._entrants):
            return False
        try:
            found = await self._directory.find(address.service)
            await self._require_entry(visitor, found, address)
        except Refused:
            return False  # no job has that address any longer, or it is no longer shared
        return found.job.uid == job

    def _noting(self, incoming: Incoming, job: Job, place: ServicePlace) -> Callable[[], None] | None:
        """What notes a use of the job. An open page of Jupyter asks for lists all day: that is told apart."""
        if self._uses is None or job.spec.idle_timeout_s is None:
            return None
        is_page = place.is_jupyter and incoming.method in _READING
        return partial(
            self._uses.note, job.uid, UseSource.PAGE if is_page else UseSource.SERVICE, job.spec.idle_timeout_s
        )

    async def is_our_token(self, incoming: Incoming, to: Upstream) -> bool:
        """Whether a ``token`` in the query must not be passed on: a Jupyter's, whom we sign in, or a user's of ours.

        A page that was opened with one sends it as the query of ``Referer`` with all that it loads.
        """
        if to.token is not None:
            return True
        if not to.address.query and "Referer" not in incoming.headers:
            return False
        page = incoming.headers.get("Referer", "").partition("#")[0].partition("?")[2]
        given = {*query_values(to.address.query, "token"), *query_values(page, "token")}
        if len(given) > MAX_TOKENS:  # each is looked up in the store
            raise Refused(Refusal.BAD_REQUEST)
        for token in given:
            if await self._entrants.of_token(token) is not None:
                return True
        return False

    @contextmanager
    def at_work(self, exchange: asyncio.Task[None]) -> Iterator[None]:
        """Within it, a task carries a request: it is cut by :meth:`aclose`."""
        self._exchanges.add(exchange)
        try:
            yield
        finally:
            self._exchanges.discard(exchange)

    async def aclose(self) -> None:
        """Cut what is open: requests under way, tunnels, and connections to tasks."""
        exchanges = list(self._exchanges)
        for exchange in exchanges:
            exchange.cancel()
        await asyncio.gather(*exchanges, return_exceptions=True)
        self._connections.close()
        self.watch.close()

    async def _sign_in(self, incoming: Incoming) -> Reply:
        """Spend the ticket, set the session cookie, go on to ``next``."""
        address = incoming.address
        ticket = query_values(address.query, "ticket")
        try:
            claims = await self._office.redeem(ticket[0] if ticket else "", address.service)
        except Unauthorized as error:
            raise Refused(Refusal.SIGN_IN, error.message) from error
        visitor = await visitor_of(claims, self._entrants)
        if visitor is None:
            raise Refused(Refusal.SIGN_IN)
        await self._require_entry(visitor, await self._directory.find(address.service), address)
        relayed = await is_relayed(incoming, self._entrants)
        outer = address.prefix and (given_prefix(incoming) if relayed else "") + address.prefix
        scheme = given_scheme(incoming) if relayed else incoming.scheme
        cookie = self._office.cookie(claims, path=f"{outer}/", secure=scheme == "https")
        going = query_values(address.query, "next")
        return redirect(address.relative(local_path(going[0] if going else "/")), cookie=cookie)

    async def _by_link(self, incoming: Incoming) -> Reply:
        """The page that a link leads to, and the session that its script asks for with the link's token.

        The token comes in a header, which no page of another site may send, and no form.
        """
        token, address = incoming.headers.get(LINK_HEADER, ""), incoming.address
        if incoming.method in ("GET", "HEAD"):
            return link_page(incoming.headers)
        if incoming.method != "POST" or not token:
            raise Refused(Refusal.BAD_REQUEST)
        origin = incoming.headers.get("Origin")
        if origin is not None and not same_host(origin, incoming.host):
            raise Refused(Refusal.FOREIGN)
        visitor = Visitor("", ambient=True, token="", link=digest_of(token))
        try:
            service = await self._directory.find(address.service)
        except Refused as error:
            raise Refused(Refusal.LINK_OVER) from error
        share = await self._shared.of_visitor(visitor, service, address.service)
        if share is None or share.expires_at is None:
            raise Refused(Refusal.LINK_OVER)
        act = Act(share.user, self._now(), incoming.remote_ip)
        await self._shared.finder.note("link.opened", share.created_by, address.service, act, share.job)
        headers, is_secure = plain_headers(), incoming.scheme == "https"
        cookie = self._office.link_cookie(visitor.link, address.service, share.job, share.expires_at, secure=is_secure)
        headers.add("Set-Cookie", cookie)
        return Reply(200, headers)

    async def _dial(self, alias: str, service: Service, place: ServicePlace) -> Wire:
        try:
            async with asyncio.timeout(DIAL_S):
                return Wire(await self._engine.dial(place.placement, place.task.uid, place.port))
        except (EngineError, TimeoutError) as error:
            self._directory.forget(alias)
            detail = f"Nothing answers on port {place.port} of task {place.task.name} yet."
            if not is_loopback(place.placement.address):
                detail += (
                    " If its program listens on 127.0.0.1 alone, let it listen on 0.0.0.0: the proxy is elsewhere."
                )
            raise Refused(Refusal.STARTING, detail, service.job) from error


def _presentation(incoming: Incoming, visitor: Visitor, service: Service, place: ServicePlace) -> Upstream:
    return Upstream(
        is_guest=not visitor.may_enter(service.job),
        address=incoming.address,
        host=incoming.host if visitor.ambient else given_host(incoming),
        scheme=incoming.scheme if visitor.ambient else given_scheme(incoming),
        remote_ip=incoming.remote_ip,
        port=place.port,
        token=place.token,
        outer_prefix="" if visitor.ambient else given_prefix(incoming),
        is_jupyter=place.is_jupyter,
    )
