"""The API on a real socket over a real store, with an engine that only has logs.

What runs tasks is another room's business; the API reads logs from it and nothing else, so that is all the
engine here can do. Everything else is as in the program.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import cast

import httpx
import tornado.netutil

from pai_backend.access.proxy import ServiceProxy, leftover_rule
from pai_backend.api.application import make_application
from pai_backend.api.changes import Changes
from pai_backend.api.context import ApiContext, CellRules, PublicAddress, Site
from pai_backend.api.metrics import Metrics
from pai_backend.api.wire import MEDIA_TYPE, Check
from pai_backend.auth.accounts import Accounts
from pai_backend.auth.identity import Identity
from pai_backend.auth.jupyterhub import HubApi
from pai_backend.auth.limits import RateLimits, limits
from pai_backend.auth.oidc import OidcProvider
from pai_backend.auth.provider_sign_ins import ProviderSignIns, ProviderTerms
from pai_backend.auth.tokens import TokenTable
from pai_backend.auth.users import User
from pai_backend.engine.base import Engine, LogStream, LogTime
from pai_backend.engine.images import ImageStore
from pai_backend.engine.local.accounts import SystemAccounts as TaskAccounts
from pai_backend.engine.log_place import LogPlace
from pai_backend.launch.directories import TaskReach
from pai_backend.model.account import Account
from pai_backend.model.ids import TaskUid
from pai_backend.model.node import Gpu, Node
from pai_backend.storage.local_files import LocalFiles
from pai_backend.storage.room import FileRoom
from pai_backend.store.sql import Store
from tests.support.face import serving
from tests.support.sealing import KEYS

ALICE, BOB, ROOT = "alice-token-0123456789", "bob-token-0123456789", "root-token-0123456789"
CAROL = Node(
    name="carol",
    address="127.0.0.1",
    machine="laptop",
    cpus=8,
    memory_mb=16384,
    gpus=(Gpu(index=0, type="TITANX", simulated=True),),
    simulated=True,
)


@dataclass
class Printed:
    """What a task has printed so far, and how much of its beginning rotation has thrown away."""

    text: bytes = b""
    oldest: int = 0
    ended: bool = False
    times: list[LogTime] = field(default_factory=list)


@dataclass
class LogEngine:
    """An engine whose tasks are logs that a test writes."""

    tasks: dict[TaskUid, Printed] = field(default_factory=dict)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    images: ImageStore | None = None

    async def write(self, uid: TaskUid, text: bytes = b"", *, end: bool = False, at: datetime | None = None) -> None:
        """Let a task print, or end."""
        async with self.changed:
            task = self.tasks.setdefault(uid, Printed())
            if at is not None:
                task.times.append(LogTime(len(task.text), at))
            task.text += text
            task.ended = task.ended or end
            self.changed.notify_all()

    def as_engine(self) -> Engine:
        """Itself, for what asks an engine for nothing but logs."""
        return cast(Engine, self)

    async def log_extent(self, uid: TaskUid, stream: LogStream) -> tuple[int, int]:
        """As the interface says."""
        return self.tasks[uid].oldest, len(self.tasks[uid].text)

    async def log_times(self, uid: TaskUid, stream: LogStream, start: int, end: int) -> list[LogTime]:
        """As the interface says, for tests that begin at a time."""
        return [each for each in self.tasks[uid].times if start <= each.offset < end]

    async def logs(self, uid: TaskUid, stream: LogStream, offset: int, follow: bool) -> AsyncIterator[bytes]:
        """As the interface says, in chunks of at most 1000 bytes."""
        task = self.tasks[uid]
        position = max(offset if offset >= 0 else len(task.text) + offset, task.oldest)
        while True:
            while position < len(task.text):
                chunk = task.text[position : position + 1000]
                position += len(chunk)
                yield chunk
            if task.ended or not follow:
                return
            async with self.changed:
                await self.changed.wait_for(lambda: position < len(task.text) or task.ended)  # noqa: B023


@dataclass
class ApiSite:
    """A running API and the ways to it."""

    url: str
    store: Store
    engine: LogEngine
    changes: Changes
    ctx: ApiContext
    gateway: list[PublicAddress] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)

    def client(self, token: str | None = ALICE) -> httpx.AsyncClient:
        """An HTTP client with this token, which asks for our own shapes as the fronts do."""
        headers = {"Accept": MEDIA_TYPE}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        # No TLS here, so no time to be spent on reading certificates.
        return httpx.AsyncClient(base_url=self.url, headers=headers, timeout=60, verify=False)

    @property
    def websocket_url(self) -> str:
        """The same for WebSockets."""
        return self.url.replace("http", "ws", 1)


@asynccontextmanager
async def running_api(
    directory: Path,
    *,
    max_document_bytes: int = 1_048_576,
    accounts: Sequence[Account] = (),
    rates: RateLimits | None = None,
    files: FileRoom | None = None,
    cells: CellRules | None = None,
    nodes: Sequence[Node] = (),
    troubles: Sequence[str] = (),
    can_stage: bool = True,
    task_reach: TaskReach | None = None,
    anonymous_v1_list: bool = False,
    task_accounts: TaskAccounts | None = None,
    hub: HubApi | None = None,
    provider: tuple[OidcProvider, ProviderTerms] | None = None,
) -> AsyncIterator[ApiSite]:
    """Run an API on a free port, with users alice and bob and the admin root."""
    store = Store(f"sqlite:///{directory / 'pai.sqlite'}", KEYS)
    await store.open()
    engine, changes = LogEngine(), Changes(store)
    tokens = TokenTable([(ALICE, User("alice")), (BOB, User("bob")), (ROOT, User("root", admin=True))])
    signs_in = provider and ProviderSignIns(*provider, store)
    known = Accounts(accounts, tokens.users(), store.groups.directory)
    identity = Identity(store, tokens, known, hub=hub, provider=signs_in)
    proxy = ServiceProxy(
        store.jobs,
        store.secrets,
        engine.as_engine(),
        domain="localhost",
        signing_key="k" * 64,
        entrants=identity,
        shares=store.grants,
    )
    (listener,) = tornado.netutil.bind_sockets(0, "127.0.0.1")
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    gateway = [PublicAddress("127.0.0.1", 2222)]
    checks = [Check(name="database", ok=True, message="answers")]

    async def outcomes() -> Sequence[Check]:
        return checks

    ctx = ApiContext(
        site=Site(
            name="test",
            version="1.2.3",
            engine="local",
            base_url=url,
            service_domain="localhost",
            virtual_clusters=tuple(cells.config.virtual_clusters)
            if cells and cells.config
            else ("default", "research"),
            allowed_origins=("https://lab.example.org",),
            max_document_bytes=max_document_bytes,
            anonymous_v1_list=anonymous_v1_list,
        ),
        store=store,
        engine=engine.as_engine(),
        identity=identity,
        limits=rates or limits(),
        proxy=proxy,
        changes=changes,
        metrics=Metrics(),
        gateway=lambda: gateway[0] if gateway else None,
        nodes=lambda: list(nodes) or [CAROL],
        cells=cells or CellRules(),
        checks=outcomes,
        troubles=lambda: troubles,
        can_stage=can_stage,
        files=files or FileRoom(LocalFiles(directory / "fs"), shared=("team",)),
        task_reach=task_reach or TaskReach(),
        log_place=LogPlace(directory / "logs"),
        accounts=task_accounts,
    )
    try:
        async with serving(listener, make_application(ctx, [leftover_rule(proxy.domain)]), proxy):
            yield ApiSite(url, store, engine, changes, ctx, gateway, checks)
    finally:
        if ctx.files is not None:
            ctx.files.close()
        await changes.aclose()
        await store.aclose()
