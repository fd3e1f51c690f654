"""The rules of a virtual cluster on the wire."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field, StringConstraints

from pai_backend.api.queries import Body
from pai_backend.api.wire import Camel
from pai_backend.model.spec import PriorityClass
from pai_backend.model.vc_rules import LONGEST_IDLE_S, LONGEST_S, MOST_LISTED, SHORTEST_IDLE_S, VcRules

_Word = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=300, pattern=r"^[!-~]+$")]
_Words = Annotated[tuple[_Word, ...], Field(max_length=MOST_LISTED)]


class VcRulesChange(Body):
    """Rules to set. A field that is left out stays as it is; null removes the rule."""

    most_gpus_per_user: int | None = Field(default=None, ge=0, le=1_000_000)
    most_jobs_per_user: int | None = Field(default=None, ge=0, le=1_000_000)
    longest_run_s: int | None = Field(default=None, ge=60, le=LONGEST_S)
    gpu_types: _Words | None = None
    images: _Words | None = None
    priorities: tuple[PriorityClass, ...] | None = None
    idle_below_percent: float | None = Field(default=None, gt=0, le=100)
    idle_for_s: int | None = Field(default=None, ge=SHORTEST_IDLE_S, le=LONGEST_IDLE_S)
    idle_stops: bool = True


class VcLimits(Camel):
    """Of what the settings of the backend may limit, too: the numbers that hold now. Null: no limit."""

    most_gpus_per_user: int | None
    most_jobs_per_user: int | None
    longest_run_s: int | None


class VcRulesWire(Camel):
    """The rules of a virtual cluster, and what holds."""

    virtual_cluster: str
    rules: VcRules = Field(description="As they were set; null: no rule.")
    in_force: VcLimits
    from_configuration: tuple[str, ...] = Field(
        description="Names of `inForce` that the configuration of the backend sets: those rules have no effect."
    )
    may_change: bool = Field(description="Whether the caller may change them.")
    changed_at: datetime | None = Field(description="Null: they were never set.")
    changed_by: str
