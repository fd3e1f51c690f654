"""Secrets that users keep, on the wire. No answer has a value."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field, SecretStr, field_validator

from pai_backend.api.queries import Body
from pai_backend.api.wire import Camel
from pai_backend.model.user_secret import LONGEST


class NewSecret(Body):
    """The value of a secret."""

    value: SecretStr = Field(
        min_length=1, max_length=LONGEST, description=f"1 to {LONGEST} bytes of UTF-8, without a NUL."
    )

    @field_validator("value")
    @classmethod
    def _fits(cls, value: SecretStr) -> SecretStr:
        """What a task can be given as a variable or in a command."""
        size = len(value.get_secret_value().encode())
        if size > LONGEST:
            raise ValueError(f"has {size} bytes; at most {LONGEST} are kept")
        if "\0" in value.get_secret_value():
            raise ValueError("must not hold a NUL, which no variable of a process can hold")
        return value


class SecretWire(Camel):
    """A secret of the caller's, without its value."""

    name: str
    set_at: datetime
    used_at: datetime | None = Field(description="When a submission took it last.")


class SecretList(Camel):
    """The caller's secrets, by name."""

    data: tuple[SecretWire, ...]
