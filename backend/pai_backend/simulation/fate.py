"""What became of a group: the raw course, from which all figures are sums."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from pai_backend.model.base import Model


class RunOutcome(StrEnum):
    """How a run ended."""

    DONE = "done"
    PREEMPTED = "preempted"
    """It was preempted and starts again."""
    FAILED = "failed"
    """Its node or GPU failed; it starts again."""
    CANCELLED = "cancelled"
    """Its user gave it up."""
    OVERRUN = "overrun"
    """It had run for as long as its virtual cluster allows, and was stopped for good."""


class Place(Model):
    """Where a task ran."""

    node: str
    devices: tuple[int, ...]


class Spell(Model):
    """A part of a run in which nothing about it changed. Seconds from the beginning of the trace."""

    run: int = Field(description="The first start is 1.")
    since_s: float
    until_s: float
    tasks: int
    gpus: int
    opportunistic: bool = Field(description="Without a claim on the quota, by its priority or since it was displaced.")
    outcome: RunOutcome = Field(description="Of the run that this is a part of.")
    places: tuple[Place, ...] = Field(description="Of each task.")

    @property
    def gpu_s(self) -> float:
        """GPU-seconds that it took."""
        return (self.until_s - self.since_s) * self.gpus


class Fate(Model):
    """What became of a group. Seconds from the beginning of the trace."""

    name: str
    vc: str
    user: str
    gpus: int = Field(description="With all its tasks.")
    tasks: int
    arrived_s: float
    duration_s: float
    started_s: float | None = Field(description="The first time; null for one that never started.")
    ended_s: float | None = Field(description="When it had run to its end; null for one that did not.")
    cancelled_s: float | None = Field(description="When it was given up; null for one that was not.")
    estimated_s: float | None = Field(description="The start that was estimated on its arrival; null: none.")
    stopped_s: float | None = Field(
        description="When it was stopped for having run as long as its virtual cluster allows; null: it was not."
    )
    first_tasks: int = Field(description="Tasks with which it first started.")
    full_s: float | None = Field(description="When it had all its tasks for the first time; null for never.")
    grown: int = Field(description="How often it got more tasks.")
    preempted: int = Field(description="How often it was preempted, to begin again.")
    failed: int = Field(description="How often a node or GPU of it broke, so that it began again.")
    displaced: int = Field(description="How often it lost its quota and ran on opportunistically.")
    lost_s: float = Field(description="Seconds of its runs that ended by preemption.")
    overtaken: int = Field(
        description="Groups behind it in the queue of its virtual cluster that first started while it first waited."
    )
    capped_s: float = Field(description="Seconds that it waited for a cap, its own or that of one before it.")
    spells: tuple[Spell, ...] = Field(description="Where it ran, in order of time.")
