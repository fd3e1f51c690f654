"""The keys of the queue: how much may run at once and for how long, and how long a job may be overtaken."""

from __future__ import annotations

from pydantic import Field

from pai_backend.model.base import Model
from pai_backend.model.order import Order


class CapSettings(Model):
    """The most that may run at once; what is left out is not limited."""

    tasks: int | None = Field(default=None, ge=0, description="Tasks at once; none given: no limit.")
    gpus: int | None = Field(default=None, ge=0, description="GPU cells at once; none given: no limit.")
    jobs: int | None = Field(default=None, ge=0, description="Jobs with a place at once; none given: no limit.")


class VcCapSettings(Model):
    """Caps inside one virtual cluster."""

    total: CapSettings = Field(default=CapSettings(), description="Of all its users together.")
    user: CapSettings = Field(default=CapSettings(), description="Of each user there.")
    users: dict[str, CapSettings] = Field(
        default={}, description="Of users with another cap there, `{alice: {gpus: 8}}`."
    )
    longest_run_s: int | None = Field(
        default=None,
        ge=1,
        le=365 * 86_400,  # as documents
        description="Seconds for which an attempt of a job may run there, before the job is stopped; none given: until "
        "it is done.",
    )


class PatienceSettings(Model):
    """When cells are kept for the job that is first of those that want the same: after either."""

    overtaken: int = Field(default=8, ge=1, description="Later jobs that have started while it was first.")
    first_for_s: float = Field(default=600, gt=0, description="Seconds for which it has been first.")


class QueueSettings(Model):
    """Caps and patience. Opportunistic jobs are exempt from caps."""

    user: CapSettings = Field(default=CapSettings(), description="Of each user, in all virtual clusters together.")
    users: dict[str, CapSettings] = Field(
        default={}, description="Of users with another cap, `{alice: {tasks: 20, gpus: 16}}`."
    )
    vc: VcCapSettings = Field(default=VcCapSettings(), description="Inside each virtual cluster.")
    vcs: dict[str, VcCapSettings] = Field(
        default={},
        description="Inside virtual clusters for which other caps hold than those of `vc`, "
        "`{vision: {total: {gpus: 64}, user: {gpus: 16}, users: {alice: {gpus: 32}}}}`.",
    )
    patience: PatienceSettings = Field(default=PatienceSettings(), description="How long a job may be overtaken.")
    order: Order = Field(
        default=Order.SUBMITTED,
        description="Who goes first within a priority: by `submitted`, or also by how long jobs of the kind ran: "
        "`predicted` for the shortest mean wait, `fair` for a shorter longest one (`docs/scheduling.md`).",
    )
    orders: dict[str, Order] = Field(
        default={}, description="Of virtual clusters with another order than `order`, `{vision: fair}`."
    )
