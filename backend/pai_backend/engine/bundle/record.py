"""What a launcher says of the end of its command, in the container's termination message.

The exit code of a container is one number; this says whether it was a signal, whether the launcher had been asked to
end, and what else it saw. It is written by a process of the task, so it may say only what a task may say of itself:
that a node was lost, or that a place was given to others, is not for it to claim.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

from pydantic import Field, ValidationError, model_validator

from pai_backend.model.base import Model
from pai_backend.model.job import Causer, TaskExit


class ExitRecord(Model):
    """The record, one JSON object: ``docs/engine-kubernetes.md`` has the launcher's rules."""

    version: Literal[1] = 1
    code: int | None = Field(default=None, ge=0, le=255)
    signal: int | None = Field(default=None, ge=1, le=64)
    reason: Literal[
        "exited",
        "signalled",
        "stopped",
        "start-failed",
        "input-failed",
        "out-of-memory",
        "disk-full",
        "port-conflict",
        "ssh-barrier",
    ]
    message: str = Field(default="", max_length=1000)
    causer: Causer = Causer.USER
    started: float | None = Field(default=None, ge=0, description="Seconds since 1970; none: it never did.")
    at: float = Field(ge=0, description="Seconds since 1970.")

    @model_validator(mode="after")
    def _one_end(self) -> ExitRecord:
        if self.code is not None and self.signal is not None:
            raise ValueError("has a code and a signal")
        return self

    @property
    def by_itself(self) -> bool:
        """Whether the command came to its end without having been asked to."""
        return self.reason != "stopped"

    @property
    def began(self) -> datetime | None:
        """When the command started."""
        return None if self.started is None else datetime.fromtimestamp(self.started, UTC)

    @property
    def ended(self) -> datetime:
        """When it had ended."""
        return datetime.fromtimestamp(self.at, UTC)

    def exit(self) -> TaskExit:
        """The exit that it tells of."""
        return TaskExit(
            code=self.code,
            signal=self.signal,
            reason=self.reason,
            message=self.message,
            causer=self.causer,
            at=self.ended,
        )


def record_of(text: str, code: int | None = None) -> ExitRecord | None:
    """The record in a text; None when there is none, or when it does not go with the container's exit code."""
    try:
        found = ExitRecord.model_validate_json(text)
        found.exit()
        _ = found.began
    except (ValidationError, ValueError, OverflowError, OSError):  # the last three: no such time
        return None
    return found if code is None or found.exit().status == code else None
