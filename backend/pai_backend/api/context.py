"""What handlers and services are given: everything they need and nothing global."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pai_backend.access.broker.stock import RsaStock
from pai_backend.access.secrecy import JobSecrets
from pai_backend.api.budget_look import BudgetCache
from pai_backend.api.changes import Changes
from pai_backend.api.metrics import Metrics
from pai_backend.api.rules import LiveRules
from pai_backend.api.snapshot import Snapshots
from pai_backend.api.wire import Check
from pai_backend.auth.identity import Identity
from pai_backend.auth.limits import RateLimits
from pai_backend.auth.policy import within
from pai_backend.auth.users import User
from pai_backend.engine.base import Engine
from pai_backend.engine.images import ImageRule
from pai_backend.engine.local.accounts import NoAccount, SystemAccounts
from pai_backend.engine.log_place import LogPlace
from pai_backend.launch.directories import TaskReach
from pai_backend.model.account import is_granted
from pai_backend.model.alias import Target
from pai_backend.model.booking import Booking
from pai_backend.model.errors import Forbidden
from pai_backend.model.job import Job
from pai_backend.model.node import Node
from pai_backend.model.pod_settings import PodSettings
from pai_backend.model.text import Text
from pai_backend.model.vc_rules import KeptRules
from pai_backend.scheduling.config.model import ClusterConfig
from pai_backend.scheduling.jobs.demand import Sizing, sizing_of
from pai_backend.scheduling.queue import Policy
from pai_backend.scheduling.terms import NodeRules
from pai_backend.storage.room import FileRoom

if TYPE_CHECKING:
    from pai_backend.store.sql import Store


@dataclass(frozen=True)
class PublicAddress:
    """A host and port that users can reach."""

    host: str
    port: int


class Granted(Protocol):
    """A one-time sign-in as the service proxy issues it."""

    @property
    def url(self) -> str:
        """PublicAddress with a host name of its own."""
        ...

    @property
    def path_url(self) -> str:
        """Address below the API's."""
        ...

    @property
    def expires_at(self) -> datetime:
        """When it is no longer good."""
        ...

    @property
    def proof(self) -> str:
        """What the own address answers when it is asked who is there."""
        ...

    @property
    def is_jupyter(self) -> bool:
        """Whether a Jupyter server runs there."""
        ...


class ServiceGrants(Protocol):
    """The part of the service proxy that the API uses."""

    async def grant(self, job: Job, target: Target, user: User, base_url: str, *, as_admin: bool = False) -> Granted:
        """A one-time sign-in of that user to that service."""
        ...

    async def is_shared(self, job: Job, target: Target, user: str) -> bool:
        """Whether another user's service is open to a user."""
        ...

    def link_to(self, service: str, base_url: str, token: str) -> str:
        """The address of a link to a service."""
        ...


@dataclass(frozen=True)
class Site:
    """What this backend is called and how it is reached."""

    name: str
    version: str
    engine: str
    base_url: str
    service_domain: str
    virtual_clusters: tuple[str, ...] = ("default",)
    allowed_origins: tuple[str, ...] = ()
    max_document_bytes: int = 1_048_576
    anonymous_v1_list: bool = False
    templates: Path | None = None
    """The directory of the site's templates."""
    images: tuple[str, ...] = ()
    """Images that the site offers."""
    sends_mail: bool = False
    mail_domains: tuple[str, ...] = ()
    """Domains that mail may be sent to; empty: all."""


@dataclass(frozen=True)
class CellRules:
    """The configuration of cells, None when there is none; and which virtual clusters a user may use, if not all.

    ``fixed``: the configuration is only changed in the settings. ``node_rules``: which nodes suit which tasks.
    ``policy``: caps and patience of the queue, with the rules of virtual clusters in ``vc_rules``.
    """

    config: ClusterConfig | None = None
    grants: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    cells_for_all: bool = False
    fixed: bool = False
    node_rules: NodeRules = field(default_factory=NodeRules)
    policy: Policy = field(default_factory=Policy)
    vc_rules: Mapping[str, KeptRules] = field(default_factory=dict)
    bookings: tuple[Booking, ...] = ()
    """Reservations that are not over, with their members."""

    def granted(self, user: User, vc: str) -> bool:
        """Whether the user may submit to this virtual cluster."""
        return within(user, vc) and is_granted(vc, user, self.grants)

    @cached_property
    def sizing(self) -> Sizing:
        """What the configuration says about the size of tasks."""
        if self.config is None:
            return Sizing(shared=True)
        return sizing_of(self.config, cells_for_all=self.cells_for_all)


async def none_silent(nodes: Iterable[str]) -> Mapping[str, float]:
    """For engines whose nodes cannot be silent."""
    return {}


def utc_now() -> datetime:
    """The time, for services that stamp what they make."""
    return datetime.now(UTC)


@dataclass(frozen=True)
class ApiContext:
    """The surroundings of the API.

    ``gateway`` tells where the SSH front door is (None: not known now), ``nodes`` the engine's nodes as last
    seen, ``checks`` what readiness depends on, ``files`` the default file system where there is one, ``cells`` the
    rules of the settings, which count until the controller has a configuration in force, ``task_reach`` which storages
    tasks reach.
    """

    site: Site
    store: Store
    engine: Engine
    identity: Identity
    limits: RateLimits
    proxy: ServiceGrants
    changes: Changes
    metrics: Metrics
    gateway: Callable[[], PublicAddress | None]
    nodes: Callable[[], Sequence[Node]]
    checks: Callable[[], Awaitable[Sequence[Check]]]
    log_place: LogPlace | None = None
    sample_s: float = 60.0
    """Seconds between two looks at what tasks use."""
    file_place: LogPlace | None = None
    """The same, where the default file system is a directory beside the logs and not one that the settings name."""
    files: FileRoom | None = None
    troubles: Callable[[], Sequence[str]] = tuple
    """Why what the engine knows cannot be relied on now, in words."""
    silences: Callable[[Iterable[str]], Awaitable[Mapping[str, float]]] = none_silent
    """Seconds since those of these nodes were heard of that are late."""
    can_stage: bool = True
    """Whether tasks can be given what their documents name outside of them."""
    pods: PodSettings | None = None
    """Where tasks are pods: what documents may choose of them."""
    default_fs_uri: str = ""
    cells: CellRules = CellRules()
    task_reach: TaskReach = field(default_factory=TaskReach)
    accounts: SystemAccounts | None = None
    """Of this machine, where tasks run as one of their user."""
    image_rule: ImageRule = field(default_factory=ImageRule)
    """By which images of the machine are removed."""
    kept_images: tuple[str, ...] = ()
    """Names of images that the settings keep."""
    users_share_rights: bool = False
    """Whether a second user could read all that the first has, without a setting that allows it."""
    clock: Callable[[], datetime] = utc_now

    async def need_account(self, user: User) -> None:
        """Give the user an account for tasks, and directories that are its own, where tasks run as such.

        Raises Forbidden when there is none for them.
        """
        if self.accounts is not None:
            try:
                await asyncio.to_thread(self.accounts.of, user.name)
            except NoAccount as error:
                raise Forbidden(Text("{error}.", error=error), hint=Text("Ask the administrator.")) from None

    @cached_property
    def snapshots(self) -> Snapshots:
        """The cluster as it is, for those who only look."""
        return Snapshots(self.store, self.nodes, lambda: self.rules)

    @cached_property
    def budgets(self) -> BudgetCache:
        """What of each budget is used."""
        return BudgetCache(self.store, self.clock)

    @cached_property
    def live_rules(self) -> LiveRules:
        """Follows the configuration in force."""
        return LiveRules(self.store, self.cells)

    @property
    def rules(self) -> CellRules:
        """The rules by the configuration in force."""
        return self.live_rules.now

    @property
    def virtual_clusters(self) -> tuple[str, ...]:
        """Names of the virtual clusters there are now."""
        config = self.rules.config
        return self.site.virtual_clusters if config is None else tuple(config.virtual_clusters)

    @cached_property
    def rsa_stock(self) -> RsaStock:
        """RSA key pairs for jobs, made ahead."""
        return RsaStock()

    @cached_property
    def secrets(self) -> JobSecrets:
        """The secrets of jobs, for scrubbing what is shown of them."""
        return JobSecrets(self.store)
