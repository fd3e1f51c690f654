"""What handlers and services are given: everything they need and nothing global."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Protocol

from pai_backend.access.secrecy import JobSecrets
from pai_backend.api.changes import Changes
from pai_backend.api.metrics import Metrics
from pai_backend.api.wire import Check
from pai_backend.auth.identity import Identity
from pai_backend.auth.limits import Limits
from pai_backend.engine.base import Engine
from pai_backend.model.alias import Target
from pai_backend.model.job import Job
from pai_backend.model.node import Node
from pai_backend.storage.room import FileRoom
from pai_backend.store.base import Store


@dataclass(frozen=True)
class Address:
    """A host and port that users can reach."""

    host: str
    port: int


class Granted(Protocol):
    """A one-time sign-in as the service proxy issues it."""

    @property
    def url(self) -> str:
        """Address with a host name of its own."""
        ...

    @property
    def path_url(self) -> str:
        """Address below the API's."""
        ...

    @property
    def expires_at(self) -> datetime:
        """When it is no longer good."""
        ...


class Grants(Protocol):
    """The part of the service proxy that the API uses."""

    async def grant(self, job: Job, target: Target, user: str, base_url: str, *, admin: bool = False) -> Granted:
        """A one-time sign-in of that user to that service."""
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


def utc_now() -> datetime:
    """The time, for services that stamp what they make."""
    return datetime.now(UTC)


@dataclass(frozen=True)
class ApiContext:
    """The surroundings of the API.

    ``gateway`` tells where the SSH front door is (None: not known now), ``nodes`` the engine's nodes as last
    seen, ``checks`` what readiness depends on, ``files`` the default file system where there is one.
    """

    site: Site
    store: Store
    engine: Engine
    identity: Identity
    limits: Limits
    proxy: Grants
    changes: Changes
    metrics: Metrics
    gateway: Callable[[], Address | None]
    nodes: Callable[[], Sequence[Node]]
    checks: Callable[[], Awaitable[Sequence[Check]]]
    files: FileRoom | None = None
    clock: Callable[[], datetime] = utc_now

    @cached_property
    def secrets(self) -> JobSecrets:
        """The secrets of jobs, for scrubbing what is shown of them."""
        return JobSecrets(self.store)
