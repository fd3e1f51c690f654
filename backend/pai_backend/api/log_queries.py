"""Parameters of requests about logs: which, and what part of them."""

from __future__ import annotations

from pydantic import Field

from pai_backend.api.queries import MAX_SEQ, Query, StreamQuery
from pai_backend.engine.base import LogStream

DEFAULT_LOG_BYTES = 1_048_576
MAX_LOG_BYTES = 16_777_216
TIMED_BYTES = 262_144
"""Each may have a time of its own, in a log that grows by a byte a second."""


class TailQuery(Query):
    """Which part of a log its locations name."""

    dashed: bool = Field(default=False, alias="tail-mode", description="Only the last 16 KiB.")
    tail_mode: bool = Field(default=False, description="The same, as the JavaScript SDK spells it.")

    @property
    def tail(self) -> bool:
        """Whether only the end is meant."""
        return self.dashed or self.tail_mode


class LogPosition(Query):
    """Which log from where."""

    role: str | None = Field(default=None, description="Task role; default: the first.")
    index: int = Field(default=0, ge=0, le=MAX_SEQ)
    attempt: int | None = Field(
        default=None, ge=0, le=MAX_SEQ, description="Run of the task, from 0; default: the latest."
    )
    stream: LogStream = LogStream.ALL
    offset: int = Field(default=0, ge=-MAX_SEQ, le=MAX_SEQ, description="First byte; negative counts from the end.")


class FollowQuery(StreamQuery, LogPosition):
    """Which log to follow from where."""

    timestamps: bool = Field(
        default=False, description="Before each binary message a text, `{times}` as `logs/times` has it."
    )


class LogQuery(LogPosition):
    """Which part of a log to read."""

    limit: int = Field(default=DEFAULT_LOG_BYTES, ge=0, le=MAX_LOG_BYTES, description="Bytes at most.")
    download: bool = Field(default=False, description="All bytes from `offset` on, as a file; `limit` has no effect.")


class LogTimesQuery(LogPosition):
    """When which part of a log came."""

    limit: int = Field(default=TIMED_BYTES, ge=1, le=TIMED_BYTES, description="Bytes at most.")


class LogSearchQuery(LogPosition):
    """Which lines of a log to find."""

    pattern: str = Field(default="", max_length=1000, description="A regular expression of Python; default: all.")
    ignore_case: bool = False
