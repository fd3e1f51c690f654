"""Orphans on the wire."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from pai_backend.api.wire import Camel


class OrphanShown(Camel):
    """A task that the engine has and the database does not know."""

    task: str = Field(description="Its uid, by which it is ended.")
    database: str = Field(description="Identity of the database that started it; empty when it does not say.")
    state: str = Field(description="pulling, starting, running or exited.")
    since: datetime | None = Field(description="When its command started, if that is known.")
    seen_at: datetime = Field(description="When the controller saw it first.")
    why: str = Field(description="Why its job was not taken back.")
    ended_by: str = Field(
        description="Who asked for its end, `age` for `engine.orphans_keep_s`; empty: no end was requested."
    )


class OrphanList(Camel):
    """All of them, the longest known first."""

    data: list[OrphanShown]
