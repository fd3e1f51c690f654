"""What the placer answers, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pai_backend.model.ids import TaskUid
from pai_backend.scheduling.core.reason import Reason


@dataclass(frozen=True)
class Place:
    """Where one task goes. ``gpus`` are the GPUs it is given, ``cells`` all leaves it holds in ``chain``.

    ``owned`` is the type of the quota cell that pays, empty for an opportunistic task and one without cells.
    """

    node: str
    gpus: tuple[int, ...] = ()
    cells: tuple[int, ...] = ()
    chain: str = ""
    owned: str = ""


@dataclass(frozen=True)
class Found:
    """A place for every task that was asked for; held from now on."""

    places: Mapping[TaskUid, Place]


@dataclass(frozen=True)
class Kept:
    """The places are kept, and free once the groups of ``victims`` have ended; tasks without cells have none yet."""

    places: Mapping[TaskUid, Place]
    victims: tuple[str, ...]
    message: str


class Lack(StrEnum):
    """Why there is no place, as far as it is not a matter of cells."""

    CELLS = "cells"
    LINEAR = "linear"
    NEVER = "never"
    PORTS = "ports"


@dataclass(frozen=True)
class Waits:
    """Not now, and why, in one sentence. ``reason`` has the numbers when it is a matter of cells."""

    lack: Lack
    message: str
    reason: Reason | None = field(default=None, compare=False)
