"""What a simulation answers: figures of all, of each virtual cluster and of each user, every fate, and the course."""

from __future__ import annotations

from pydantic import Field

from pai_backend.model.base import Model
from pai_backend.model.waiting import Waiting
from pai_backend.simulation.fate import Fate


class Waits(Model):
    """Seconds from arrival to the first start. Percentiles are nearest ranks: waits that occurred."""

    mean_s: float = 0.0
    p50_s: float = 0.0
    p95_s: float = 0.0
    max_s: float = 0.0


class GroupFigures(Model):
    """The figures of some groups."""

    vc: str = Field(description="Their virtual cluster; empty for all.")
    user: str = Field(default="", description="Their user; empty for all.")
    groups: int
    unstarted: int = Field(description="Groups that never started: refused, given up, or still waiting at the end.")
    waits: Waits
    gpu_hours: float = Field(description="Of runs to the end.")
    guaranteed_gpu_hours: float = Field(description="Of all runs, on their quota.")
    opportunistic_gpu_hours: float = Field(description="Of all runs, without a claim.")
    owned_gpu_hours: float = Field(description="What the virtual cluster owned; of all, what all did; of a user 0.")
    preempted: int = Field(description="Runs that were ended for others.")
    lost_gpu_hours: float = Field(description="Of runs that were ended for others.")
    failed: int = Field(description="Runs that ended with their node or GPU.")
    failed_gpu_hours: float = Field(description="Of runs that ended with their node or GPU.")
    cancelled_gpu_hours: float = Field(description="Of runs that their users gave up.")
    overrun: int = Field(description="Groups that were stopped at the longest run of their virtual cluster.")
    overrun_gpu_hours: float = Field(description="Of their last runs.")
    displaced: int
    overtaken: int = Field(description="How often the groups were overtaken, all together.")
    capped: int = Field(description="Groups that waited for a cap.")
    capped_hours: float = Field(description="How long, all together.")
    grown: int = Field(description="How often the groups got more tasks.")


class Point(Model):
    """Averages over a part of the time."""

    at_s: float = Field(description="Where that part begins.")
    used: tuple[float, ...] = Field(description="GPUs by virtual cluster, in the order of `vcs`.")
    opportunistic: tuple[float, ...] = Field(description="Of these, without a claim.")
    broken: float
    gpus: float = Field(description="All GPUs.")
    waiting: float = Field(description="GPUs that waiting groups ask for.")


class Report(Model):
    """How a trace would have gone. GPUs are leaf cells; shares are of all GPU time unless they say otherwise."""

    gpus: int = Field(description="The most there were at a time.")
    span_s: float = Field(description="From the first arrival to the last end.")
    utilisation: float = Field(description="Share that was used, opportunistic and lost runs included.")
    guaranteed: float = Field(description="Share that was used on a quota.")
    opportunistic: float = Field(description="Share that was used without a claim.")
    broken: float = Field(description="Share that was broken.")
    idle_while_wanted: float = Field(description="Share that was idle while groups waited for as much.")
    fragmentation: float = Field(description="Share of the idle GPU time in free cells smaller than a machine.")
    total: GroupFigures
    vcs: tuple[GroupFigures, ...]
    users: tuple[GroupFigures, ...] = Field(description="By name; groups without a user are left out.")
    refused: tuple[Waiting, ...] = Field(description="Groups that could not start in an empty cluster, and why.")
    left: tuple[str, ...] = Field(description="Groups that waited still when nothing more could happen.")
    fates: tuple[Fate, ...] = Field(description="All groups, by arrival.")
    course: tuple[Point, ...]


class Comparison(Model):
    """The same trace on two configurations."""

    configs: tuple[str, str]
    reports: tuple[Report, Report]
