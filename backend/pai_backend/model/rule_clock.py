"""What a rule of its virtual cluster has led to for one attempt of a job, as it is kept."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from pai_backend.model.base import Model
from pai_backend.model.wording import StoredText


class EndWarned(Model):
    """The owner was warned that the attempt ends, and when."""

    attempt: int
    ends_at: datetime
    text: StoredText = Field(default="", description="The warning; empty: the end has moved away again.")


class UnderuseClock(Model):
    """How the idle rule of the virtual cluster stands with the attempt."""

    attempt: int
    counted_from: datetime = Field(description="What was measured before does not count.")
    warned_at: datetime | None = Field(default=None, description="When its owner was warned.")
    stop_at: datetime | None = Field(default=None, description="When it is stopped if nothing changes; null: never.")
    text: StoredText = Field(default="", description="The warning; empty: there is none.")
