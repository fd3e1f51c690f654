"""What a trace says: groups that arrive, and what happens to the cluster, and to them, at which time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from pydantic import Field

from pai_backend.model.attempts import stem
from pai_backend.model.base import Model
from pai_backend.scheduling.request import HIGHEST, OPPORTUNISTIC, Group, Member
from pai_backend.simulation.source import SourceLine

MOST_SECONDS = 10 * 365 * 86_400
"""The latest arrival and the longest run."""
MOST_TASKS = 1_000_000


class TracePart(Model):
    """Equal tasks of a group."""

    tasks: int = Field(default=1, ge=1, le=MOST_TASKS)
    gpus: int = Field(default=1, ge=1, le=MOST_TASKS, description="Leaf cells of each task.")
    min: int | None = Field(default=None, ge=0, le=MOST_TASKS, description="The fewest that it starts with.")
    within: str = Field(default="", description="The cell type of which one cell must contain these tasks.")


class Arrival(Model):
    """A group that arrives, and runs for a time once it has started.

    Its tasks are ``tasks`` equal ones, or those of ``members``. With ``min`` it is elastic: it starts with what fits,
    and runs longer for as long as some are missing.
    """

    at: float = Field(ge=0, le=MOST_SECONDS, description="Seconds from the beginning of the trace.")
    event: Literal["arrive"] = "arrive"
    name: str = Field(min_length=1, max_length=255, description="Unique in the trace.")
    vc: str = Field(min_length=1, description="Its virtual cluster.")
    duration: float = Field(gt=0, le=MOST_SECONDS, description="Seconds it runs, with all its tasks.")
    expected: float | None = Field(
        default=None, gt=0, le=MOST_SECONDS, description="Seconds it is said to run: what the queue believes."
    )
    longest: float | None = Field(
        default=None, gt=0, le=MOST_SECONDS, description="Seconds after which a run is stopped for good, done or not."
    )
    user: str = ""
    tasks: int = Field(default=1, ge=1, le=MOST_TASKS)
    gpus: int = Field(default=1, ge=1, le=MOST_TASKS, description="Leaf cells of each task.")
    min: int | None = Field(default=None, ge=1, le=MOST_TASKS, description="The fewest tasks it starts with.")
    members: tuple[TracePart, ...] = Field(default=(), description="Unequal tasks, instead of tasks, gpus and min.")
    priority: int = Field(default=10, ge=OPPORTUNISTIC, le=HIGHEST, description="-1 is opportunistic.")
    type: str = Field(default="", description="The leaf type it asks for; empty for any.")
    pinned: str = Field(default="", description="The pinned cell it uses instead of the quota.")
    within: str = Field(default="", description="The cell type of which one cell must contain the whole group.")
    lazy: bool = Field(default=False, description="It may be turned opportunistic instead of being ended.")

    @property
    def kind(self) -> str:
        """Equal for groups of a user that may be expected to run alike: name without its number, and size."""
        return f"{stem(self.name)} {self.group.members}"

    @property
    def group(self) -> Group:
        """What is asked of the scheduler."""
        parts = self.members or (TracePart(tasks=self.tasks, gpus=self.gpus, min=self.min),)
        return Group(
            self.name,
            self.vc,
            tuple(Member(part.tasks, part.gpus, part.min, part.within) for part in parts),
            self.priority,
            self.type,
            self.pinned,
            self.lazy,
            self.within,
        )


class Failure(Model):
    """A node, or some of its GPUs, break: what runs there ends."""

    at: float = Field(ge=0, le=MOST_SECONDS)
    event: Literal["fail"] = "fail"
    node: str = Field(min_length=1)
    devices: tuple[int, ...] = Field(default=(), description="Numbers of GPUs in the node; none: all of them.")


class Repair(Model):
    """A node, or some of its GPUs, are well again."""

    at: float = Field(ge=0, le=MOST_SECONDS)
    event: Literal["repair"] = "repair"
    node: str = Field(min_length=1)
    devices: tuple[int, ...] = Field(default=(), description="Numbers of GPUs in the node; none: all of them.")


class Cancellation(Model):
    """A group is given up by its user, whether it waits or runs; one that has ended is past that."""

    at: float = Field(ge=0, le=MOST_SECONDS)
    event: Literal["cancel"] = "cancel"
    name: str = Field(min_length=1)


class NewConfig(Model):
    """Another cluster configuration takes effect. Nothing that runs is ended by it."""

    at: float = Field(ge=0, le=MOST_SECONDS)
    event: Literal["config"] = "config"
    file: str = Field(min_length=1, description="The configuration, named from where the trace is.")


class Reservation(Model):
    """GPUs of a virtual cluster are reserved for a time. Nothing that runs is ended by it."""

    at: float = Field(ge=0, le=MOST_SECONDS, description="When it is made: what starts from then on leaves room.")
    event: Literal["reserve"] = "reserve"
    name: str = Field(min_length=1, max_length=255)
    vc: str = Field(min_length=1)
    gpus: int = Field(ge=1, le=MOST_TASKS, description="Leaf cells of one kind.")
    begins: float = Field(ge=0, le=MOST_SECONDS)
    ends: float = Field(ge=0, le=MOST_SECONDS)
    type: str = Field(default="", description="The leaf type; empty: any one.")
    one_node: bool = False
    users: tuple[str, ...] = Field(default=(), description="Whom it is for; none: all of the virtual cluster.")


Change = Failure | Repair | Cancellation | NewConfig | Reservation
Event = Arrival | Change
EVENTS: dict[str, type[Event]] = {
    "arrive": Arrival,
    "fail": Failure,
    "repair": Repair,
    "cancel": Cancellation,
    "config": NewConfig,
    "reserve": Reservation,
}


class TraceLine(NamedTuple):
    """Something that happens, and where the text says so."""

    event: Event
    source: SourceLine


@dataclass(frozen=True, slots=True)
class Trace:
    """All that happens, by time; of one instant in the order of the text."""

    lines: tuple[TraceLine, ...]

    @classmethod
    def of(cls, events: Iterable[Event]) -> Trace:
        """A trace that was not read from a text."""
        lines = (TraceLine(event, SourceLine(number, "")) for number, event in enumerate(events, 1))
        return cls(tuple(sorted(lines, key=lambda line: line.event.at)))

    @property
    def arrivals(self) -> tuple[Arrival, ...]:
        """The groups, by arrival."""
        return tuple(line.event for line in self.lines if isinstance(line.event, Arrival))

    @property
    def files(self) -> tuple[str, ...]:
        """The configurations that it goes over to, as it names them; each once."""
        return tuple(dict.fromkeys(line.event.file for line in self.lines if isinstance(line.event, NewConfig)))
