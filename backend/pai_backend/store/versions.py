"""Versions of the cluster configuration as the other rooms see them.

Every text that was ever to be in force is a version, numbered from 1. A version is *recorded* first, and *takes force*
when the deciding controller has gone over to it; in force is the last one that did. 0 stands for the time before any.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

MOST_KEPT = 100
"""Versions that are kept; a text may have 4 MiB."""


class VersionOrigin(StrEnum):
    """Who asked for a version."""

    SETTING = "setting"
    """The setting ``cluster.config``, as a controller found it when it started."""
    REST = "rest"
    """An administrator, while the backend ran."""


@dataclass(frozen=True)
class ConfigVersion:
    """A version without its text. ``by`` is empty for the setting; ``effects`` is JSON, empty until it has force."""

    version: int
    origin: VersionOrigin
    by: str
    recorded_at: datetime
    in_force_at: datetime | None
    effects: str


@dataclass(frozen=True)
class ConfigState:
    """The version recorded last, and the one in force; equal, except while a new one is on its way."""

    newest: ConfigVersion | None = None
    in_force: ConfigVersion | None = None

    @property
    def number(self) -> int:
        """The newest version's number, which a change must have seen."""
        return 0 if self.newest is None else self.newest.version

    @property
    def in_force_number(self) -> int:
        """The number of the version in force."""
        return 0 if self.in_force is None else self.in_force.version
