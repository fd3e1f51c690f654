"""What administrators announce to all users, on the wire."""

from __future__ import annotations

from datetime import datetime

from pydantic import AwareDatetime, Field, field_validator

from pai_backend.api.queries import Body
from pai_backend.api.wire import Camel

LONGEST_S = 366 * 86_400


class NewAnnouncement(Body):
    """A text for all users."""

    text: str = Field(max_length=2000, description="Lines of plain text.")
    lifetime_s: int | None = Field(
        default=None, ge=1, le=LONGEST_S, description="Seconds until it ends by itself; null: an administrator ends it."
    )

    no_starts_from: AwareDatetime | None = Field(
        default=None,
        description="A maintenance: from then on, until this ends, no job starts, and running jobs go on. `lifetimeS` "
        "counts from then. Null: jobs start as ever.",
    )

    @field_validator("text")
    @classmethod
    def _is_plain(cls, value: str) -> str:
        lines = value.strip().splitlines()
        if not lines:
            raise ValueError("must not be empty")
        if not all(line.replace("\t", " ").isprintable() for line in lines):
            raise ValueError("must be lines of printable text")
        return "\n".join(lines)


class AnnouncementWire(Camel):
    """What is announced."""

    text: str
    until: datetime | None = Field(description="When it ends by itself; null: an administrator ends it.")
    by: str = Field(description="Who announced it.")
    at: datetime
    no_starts_from: datetime | None = Field(description="From when on no job starts; null: it holds up no job.")


class Announced(Camel):
    """What all users are told now."""

    announcement: AnnouncementWire | None = Field(description="Null: nothing is announced.")
