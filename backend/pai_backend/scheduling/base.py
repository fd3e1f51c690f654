"""The placement interface: what is asked, what is answered, and why not.

A gang is placed as a whole or not at all. Holding and releasing are separate from trying, so that a
controller can rebuild the state from stored placements after a restart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from pai_backend.model.ids import TaskUid
from pai_backend.model.node import Node


@dataclass(frozen=True)
class Ask:
    """What one task needs. ``gpu_type`` None takes any type."""

    uid: TaskUid
    cpus: int
    memory_mb: int
    gpus: int
    gpu_type: str | None = None


@dataclass(frozen=True)
class Assignment:
    """Where one task goes: a node and the indexes of its GPUs there, ascending."""

    node: str
    gpus: tuple[int, ...] = ()


class WaitCode(StrEnum):
    """The binding constraint, most permanent first."""

    NO_NODES = "no-nodes"
    NO_SUCH_TYPE = "no-such-gpu-type"
    TOO_BIG = "too-big"
    NOT_READY = "not-ready"
    BUSY = "busy"
    PORTS = "ports"


@dataclass(frozen=True)
class Wait:
    """Not now, and why: one sentence for the user and the fields behind it."""

    code: WaitCode
    message: str
    needed: int = 0
    available: int = 0


@dataclass(frozen=True)
class Bound:
    """A place for every task of the gang."""

    assignments: Mapping[TaskUid, Assignment]


class Placer(Protocol):
    """Decides where gangs run and remembers what is held."""

    def set_node(self, node: Node) -> None:
        """A node as it is now; new or changed."""
        ...

    def remove_node(self, name: str) -> None:
        """The node is gone. What was held there stays held until released."""
        ...

    def nodes(self) -> Mapping[str, Node]:
        """All nodes known, by name."""
        ...

    def try_place(self, asks: Sequence[Ask]) -> Bound | Wait:
        """A place for all of them, or the reason why not. Changes nothing."""
        ...

    def hold(self, ask: Ask, assignment: Assignment) -> None:
        """Take what the task needs at that place. Idempotent by uid."""
        ...

    def release(self, uid: TaskUid) -> None:
        """Give back what the task held. Idempotent."""
        ...
