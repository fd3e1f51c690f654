"""Versions of the cluster configuration, and plans to change it, on the wire."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from pai_backend.api.queries import Query
from pai_backend.api.wire import Camel
from pai_backend.model.change import ClusterChange
from pai_backend.model.errors import Fault
from pai_backend.store.versions import MOST_KEPT


class ConfigQuery(Query):
    """Which version."""

    version: int | None = Field(default=None, ge=1, le=2**31 - 1, description="Default: the one in force.")


class ChangeQuery(Query):
    """How to take a configuration."""

    dry_run: bool = Field(default=False, description="Dry run: report the effect, change nothing.")
    expected_version: int | None = Field(
        default=None, ge=0, le=2**31 - 1, description="The newest version that the caller has seen; or in `If-Match`."
    )


class HistoryQuery(Query):
    """How many versions."""

    limit: int = Field(default=20, ge=1, le=MOST_KEPT, description="Versions at most.")


class ConfigVersionShown(Camel):
    """A version of the cluster configuration."""

    version: int = Field(description="0: derived from the nodes, before there was any.")
    state: Literal["recorded", "in force", "past", "skipped"] = Field(
        description="recorded: the controller has not applied it yet; skipped: a newer one replaced it."
    )
    origin: Literal["derived", "setting", "rest"] = Field(description="Where it came from.")
    by: str = Field(description="Who applied it; empty unless it came over REST.")
    recorded_at: datetime | None
    since: datetime | None = Field(description="When it took effect.")
    change: ClusterChange | None = Field(description="What it did to jobs that had cells; null for a first one.")


class ConfigShown(ConfigVersionShown):
    """A version with its text."""

    text: str = Field(description="The YAML text; of a derived one, what it amounts to.")
    derived: str = Field(description="What would be derived from the nodes as they are, as YAML.")
    newest_version: int = Field(description="What a change must name as the version that it expects.")
    fixed: bool = Field(description="Only the setting counts; changes over REST are refused.")
    precedence: str = Field(description="What is in force after a restart, in a sentence.")


class ConfigHistory(Camel):
    """The last versions, the newest first."""

    data: tuple[ConfigVersionShown, ...]


class ClusterPlan(Camel):
    """What a configuration would do; once it is applied, what it was going to do a moment before."""

    valid: bool
    errors: tuple[Fault, ...] = Field(default=(), description="Every fault, with line and column.")
    warnings: tuple[Fault, ...] = ()
    in_force_version: int = Field(description="The version that it was compared with.")
    newest_version: int = Field(description="What a change must name as the version that it expects.")
    concerns: bool = Field(default=False, description="Whether it affects any job.")
    change: ClusterChange | None = None
    applied_version: int | None = Field(default=None, description="The version that it is now; null when only planned.")
    in_force: bool = Field(default=False, description="False: not applied, or not yet applied by the controller.")
