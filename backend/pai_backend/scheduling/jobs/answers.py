"""What the placer answers, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from pai_backend.model.ids import JobUid, TaskUid
from pai_backend.scheduling.jobs.unit import Unit
from pai_backend.scheduling.request import Reason


@dataclass(frozen=True)
class Round:
    """What one pass decided, held from now on: ``started`` have their places, ``kept`` wait for others to end there.

    ``more``: there is more to ask. ``look_again``: when, if nothing happens, cells have to be kept for somebody.
    """

    started: tuple[Unit, ...] = ()
    kept: tuple[Unit, ...] = ()
    more: bool = False
    look_again: datetime | None = None


class Lack(StrEnum):
    """Why there is no place. ``kept``: there is one, which is not free yet. ``turn``: it has not been asked yet."""

    CAP = "cap"
    CELLS = "cells"
    KEPT = "kept"
    LINEAR = "linear"
    NEVER = "never"
    PORTS = "ports"
    TURN = "turn"


@dataclass(frozen=True)
class Waits:
    """Not now, and why, in one sentence. ``reason`` has the numbers when it is a matter of cells."""

    lack: Lack
    message: str
    reason: Reason | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Preemption:
    """Running tasks that must make way, and for whom."""

    job: JobUid
    uids: tuple[TaskUid, ...]
    by: str
    priority: int


@dataclass(frozen=True)
class Claim:
    """A group whose claim on its quota changed: without it, it runs on opportunistically."""

    job: JobUid
    uids: tuple[TaskUid, ...]
    displaced: bool
