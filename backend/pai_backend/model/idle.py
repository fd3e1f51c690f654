"""The idle clock of a job, as it is kept: since when nothing has used it, and what its owner was told."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from pydantic import Field

from pai_backend.model.base import Model
from pai_backend.model.wording import StoredText


class UseSource(StrEnum):
    """What can use a job."""

    START = "start"
    """A task of it began to run."""
    SSH = "ssh"
    """Bytes of any channel of a login through the gateway."""
    SERVICE = "service"
    """Requests to one of its services, and what passes over their WebSockets."""
    PAGE = "page"
    """Requests to a Jupyter server, which an open page makes all the time; use only where its kernels tell nothing."""
    KERNELS = "kernels"
    """Kernels and terminals of its Jupyter servers."""
    GPU = "gpu"
    """Work of its GPUs."""


class IdleClock(Model):
    """What is known of the use of one job with an ``idleTimeout``."""

    since: datetime = Field(
        description="Nothing has used it since; later than the last use where uses were not watched for a time."
    )
    looked_at: datetime
    used_at: datetime | None = Field(default=None, description="The last use that was seen.")
    used_by: UseSource | None = Field(default=None, description="What that was.")
    warned_at: datetime | None = Field(
        default=None, description="When its owner was warned of the stop; moved with what was not watched."
    )
    started: datetime | None = Field(
        default=None, description="When the last of its tasks began, by the engine's clock."
    )
    written: Mapping[UseSource, datetime] = Field(
        default={}, description="The last uses as they were written down, each by the clock of who wrote it."
    )
    kernels: Mapping[str, str] = Field(
        default={}, description="By Jupyter server: its own time of the last activity of a kernel or terminal."
    )
    unread: Mapping[UseSource, StoredText] = Field(
        default={}, description="What could not be looked at the last time, and why."
    )
    held_since: datetime | None = Field(
        default=None,
        description="Since when its GPUs cannot be read, so that the clock stands; the last use where that is later.",
    )
