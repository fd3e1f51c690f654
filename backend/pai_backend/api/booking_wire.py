"""Reservations of GPUs on the wire."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Self

from pydantic import AwareDatetime, Field, StringConstraints, model_validator

from pai_backend.api.queries import Body
from pai_backend.api.wire import Camel

_Line = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=80, pattern=r"^[^\x00-\x1f\x7f-\x9f  ]+$")
]
_Names = Annotated[tuple[Annotated[str, StringConstraints(min_length=1, max_length=255)], ...], Field(max_length=100)]


class NewBooking(Body):
    """GPUs of a virtual cluster to reserve for a time."""

    virtual_cluster: str = Field(max_length=255)
    name: _Line = Field(description="What it is for, which all who may use the virtual cluster see.")
    gpus: int = Field(ge=1, le=1_000_000, description="GPUs of one kind.")
    gpu_type: str = Field(default="", max_length=255, description="Their type; empty: any one.")
    one_node: bool = Field(default=False, description="They all lie in one node.")
    begins: AwareDatetime | None = Field(default=None, description="Null, or a time that is over: now.")
    ends: AwareDatetime
    users: _Names = Field(default=(), description="Users whose jobs may use it.")
    groups: _Names = Field(
        default=(), description="Groups whose members' jobs may; without users and groups, all of the virtual cluster."
    )
    end_others: bool = Field(
        default=False,
        description="Stop jobs that hold the GPUs when it begins, which has to be 10 minutes from now at least.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.begins is not None and self.begins >= self.ends:
            raise ValueError("a reservation ends after it begins")
        return self


class BookingWire(Camel):
    """GPUs of a virtual cluster that are reserved for a time."""

    id: str
    virtual_cluster: str
    name: str
    gpus: int
    gpu_type: str
    one_node: bool
    begins: datetime
    ends: datetime
    users: tuple[str, ...]
    groups: tuple[str, ...]
    stops: tuple[str, ...] = Field(description="Jobs that are stopped when it begins, as far as the caller sees them.")
    is_yours: bool = Field(description="Whether the caller's jobs may use it.")
    made_at: datetime
    made_by: str
    may_remove: bool = Field(description="Whether the caller may remove it.")


class BookingList(Camel):
    """Reservations, the earliest first."""

    data: tuple[BookingWire, ...] = Field(
        description="Those of virtual clusters that the caller may use or manages; with those of the last 30 days."
    )
    may_reserve: tuple[str, ...] = Field(description="Virtual clusters whose GPUs the caller may reserve.")
