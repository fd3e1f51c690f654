"""A store, an engine and a running proxy for tests of services: one job whose tasks are ports of this machine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from ipaddress import IPv4Network, IPv6Network
from urllib.parse import parse_qs, urlsplit

import httpx
from tornado.netutil import bind_sockets
from tornado.routing import RuleRouter
from tornado.web import Application, RequestHandler

from pai_backend.access.proxy import ServiceProxy, leftover_rule
from pai_backend.access.uses import Uses
from pai_backend.engine.base import Connection, EngineError
from pai_backend.model.alias import Target
from pai_backend.model.ids import JobUid, TaskUid
from pai_backend.model.job import Job, Phase, State
from pai_backend.model.node import Placement
from pai_backend.model.scope import Scope
from pai_backend.model.spec import PortSpec
from pai_backend.store.grants import Act, Share
from pai_backend.testing.builders import make_job, make_placement, make_role, make_spec
from tests.support.face import serving

KEY = "0123456789abcdef" * 4
TOKENS = {"alice-token": ("alice", False), "bob-token": ("bob", False), "root-token": ("root", True)}
SERVICE = "lab--web"
HOST = f"{SERVICE}.localhost"


@dataclass(frozen=True)
class FakeUser:
    """As the authenticator of the api has them."""

    name: str
    admin: bool
    token: str
    within: str = ""

    def may(self, scope: Scope) -> bool:
        return True


class FakeEntrants:
    """The users of the tests; a token stands for itself."""

    def __init__(self) -> None:
        self.users = {token: FakeUser(name, admin, token) for token, (name, admin) in TOKENS.items()}

    async def of_bearer(self, token: str) -> FakeUser | None:
        return await self.of_token(token)

    async def of_token(self, token: str) -> FakeUser | None:
        return self.users.get(token)

    async def of_digest(self, token: str) -> FakeUser | None:
        return self.users.get(token)


class FakeStore:
    """What the proxy needs of a store; counts look-ups."""

    def __init__(self, *jobs: Job) -> None:
        self.jobs = {job.alias: job for job in jobs}
        self.claimed: set[str] = set()
        self.shares: list[Share] = []
        self.noted: list[tuple[str, str, str, str]] = []
        self.lookups = 0

    async def by_alias(self, alias: str) -> Job | None:
        self.lookups += 1
        return self.jobs.get(alias)

    async def claim(self, name: str, until: datetime, now: datetime) -> bool:
        first = name not in self.claimed
        self.claimed.add(name)
        return first

    async def shares_in_force(self, job: JobUid, now: datetime) -> list[Share]:
        return [share for share in self.shares if share.job == job]

    async def note(self, type_: str, user: str, subject: str, act: Act, job: JobUid | None = None) -> None:
        self.noted.append((type_, user, subject, act.by))

    def put(self, job: Job) -> None:
        self.jobs[job.alias] = job


class FakeEngine:
    """Dials ports of this machine as the engine of local tasks does; remembers what it dialled."""

    def __init__(self) -> None:
        self.dialled: list[tuple[TaskUid, int]] = []

    async def dial(self, placement: Placement, uid: TaskUid, port: int) -> Connection:
        self.dialled.append((uid, port))
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError as error:
            raise EngineError(f"nothing answers on port {port}") from error
        return Connection(reader, writer)


def service_job(port: int | None, *, command: str = "true", label: str = "web", state: State = State.RUNNING) -> Job:
    """Alice's job ``lab`` with one task whose port ``label`` is ``port``; without a port it waits."""
    spec = make_spec("lab", roles=[make_role("worker", command=command, ports=[PortSpec(label=label)])])
    job = make_job("lab", spec=spec, user="alice")
    if port is None:
        return job
    task = job.tasks[0].model_copy(
        update={
            "state": state,
            "phase": Phase.RUNNING,
            "placement": make_placement(ports={label: (port,)}),
        }
    )
    return job.model_copy(update={"state": state, "phase": Phase.RUNNING, "tasks": (task,)})


class Clock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.time = datetime(2026, 11, 21, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time


class _Api(RequestHandler):
    def get(self) -> None:
        self.write("the api")


@dataclass
class ProxyUnderTest:
    """A proxy that listens on a port of its own."""

    proxy: ServiceProxy
    store: FakeStore
    engine: FakeEngine
    clock: Clock
    port: int
    entrants: FakeEntrants
    host: str = HOST
    clients: list[httpx.AsyncClient] = field(default_factory=list)

    def user(self, name: str) -> FakeUser:
        """One of the users."""
        return self.entrants.users[f"{name}-token"]

    @property
    def authority(self) -> str:
        """``Host`` of the service's own address."""
        return f"{self.host}:{self.port}"

    @property
    def origin(self) -> str:
        """Origin of pages of the service."""
        return f"http://{self.authority}"

    def client(self, *, host: str | None = None, **headers: str) -> httpx.AsyncClient:
        """A client for the host-name address (or another host); no redirect is followed."""
        client = httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{self.port}",
            headers={"Host": f"{host or self.host}:{self.port}", **headers},
            timeout=60,
            verify=False,
        )
        self.clients.append(client)
        return client

    async def ticket(self, user: str = "alice", *, admin: bool = False, service: str = SERVICE) -> str:
        """A fresh ticket."""
        job = next(iter(self.store.jobs.values()))
        label = service.rsplit("--", 1)[1]
        target = job.spec.task_roles[0]
        grant = await self.proxy.grant(
            job, Target(target.name, 0, label), self.user(user), f"http://127.0.0.1:{self.port}", as_admin=admin
        )
        return parse_qs(urlsplit(grant.url).query)["ticket"][0]

    async def cookie(self, *, path: bool = False) -> str:
        """The ``Cookie`` text of a signed-in browser."""
        prefix = f"/s/{SERVICE}" if path else ""
        client = self.client(host="127.0.0.1" if path else None)
        answer = await client.get(f"{prefix}/.pai/signin", params={"ticket": await self.ticket(), "next": "/"})
        assert answer.status_code == 303, answer.text
        return answer.headers["set-cookie"].split(";")[0]


@asynccontextmanager
async def running_proxy(
    job: Job,
    *,
    response_s: float = 20,
    change: Callable[[FakeStore], None] | None = None,
    uses: Uses | None = None,
    public_url: str = "",
    proxies: Sequence[IPv4Network | IPv6Network] = (),
) -> AsyncIterator[ProxyUnderTest]:
    """A proxy in front of an api that answers ``the api``, for this job."""
    store, engine, clock, entrants = FakeStore(job), FakeEngine(), Clock(), FakeEntrants()
    if change is not None:
        change(store)
    proxy = ServiceProxy(
        store,
        store,
        engine,
        domain="localhost",
        signing_key=KEY,
        entrants=entrants,
        shares=store,
        now=clock,
        response_s=response_s,
        uses=uses,
        public_url=public_url,
    )
    api = Application([("/.*", _Api)])
    (listener,) = bind_sockets(0, "127.0.0.1")
    under_test = ProxyUnderTest(proxy, store, engine, clock, listener.getsockname()[1], entrants)
    async with serving(listener, RuleRouter([leftover_rule(proxy.domain), ("/.*", api)]), proxy, proxies):
        try:
            yield under_test
        finally:
            for client in under_test.clients:
                await client.aclose()
