"""The audit: changes and entries, chained."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from pai_backend.api.queries import Query
from pai_backend.api.wire import Camel
from pai_backend.model.audit import AuditEvent, ChainLink

MOST = 10_000
"""Events in one answer at most."""
_LAST = 2**53


class AuditEventWire(Camel):
    """One change or entry. `hash` covers the hash of the event before and all other fields: see `docs/audit.md`."""

    position: int = Field(description="Counts from 1 without gaps.")
    at: datetime
    type: str
    user: str = Field(description="Whom it concerns.")
    by: str = Field(description="Who did it.")
    source: str = Field(description="The address that asked; empty: the backend's machine.")
    subject: str = Field(description="What it was done to: a job, a key, a user, a path.")
    job: str | None
    detail: str
    token: str = Field(description="Beginning of the digest of the token that was used, as `pai token list` has it.")
    request: str = Field(description="The request's id.")
    result: str = Field(description="`done`, `begun`, or the code of the error that it was refused with.")
    hash: str

    @classmethod
    def of(cls, event: AuditEvent) -> AuditEventWire:
        """An event as it is kept."""
        return cls.model_validate(vars(event))


class AuditPage(Camel):
    """Part of the audit."""

    data: tuple[AuditEventWire, ...]


class AuditPlace(Camel):
    """A place in the chain."""

    position: int
    hash: str

    @classmethod
    def of(cls, link: ChainLink) -> AuditPlace:
        """A place as it is kept."""
        return cls.model_validate(vars(link))


class AuditChain(Camel):
    """Where the chain begins and ends."""

    root: AuditPlace = Field(description="The event before the first that is kept; 0 with 64 zeros: all are.")
    head: AuditPlace = Field(description="The last event.")
    sealed: AuditPlace | None = Field(
        description="The end that the backend sealed last; the event there must have this hash. Null: there is none."
    )


class AuditQuery(Query):
    """Which part of the audit."""

    types: str = Field(default="", max_length=1000, description="With commas between; `key.*` for all of a kind.")
    user: str = Field(default="", max_length=200, description="Whom it concerns.")
    by: str = Field(default="", max_length=200, description="Who did it.")
    subject: str = Field(default="", max_length=1000)
    job: str = Field(default="", max_length=300, description="A job of the caller's, or any for administrators.")
    result: str = Field(default="", max_length=100, description="`done`, or a code of an error.")
    since: datetime | None = None
    until: datetime | None = None
    before: int | None = Field(default=None, ge=1, lt=_LAST, description="Only events with a smaller position.")
    after: int | None = Field(
        default=None, ge=0, lt=_LAST, description="Only events with a larger position, and the oldest first."
    )
    limit: int = Field(default=1000, ge=1, le=MOST)
