"""What probes find, as plain values. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from jupyter_pai.doctor.facts import Facts
from jupyter_pai.doctor.findings import Finding


class Probe(Enum):
    """One step of a protocol."""

    LOGIN = "login"
    SHELL = "shell"
    EXACT = "exact"
    TERMINAL = "terminal"
    HALF_CLOSE = "half-close"
    MANY = "many"
    SFTP = "sftp"
    SCP = "scp"
    SCP_LEGACY = "scp-legacy"
    RSYNC = "rsync"
    HELPERS = "helpers"
    TWO_CONNECTIONS = "two-connections"
    INTO_TASK = "into-task"
    OUT_OF_TASK = "out-of-task"


@dataclass(frozen=True)
class StepOutcome:
    """Whether a step worked; None when it could not be tried, ``detail`` says why not."""

    worked: bool | None
    detail: str = ""


@dataclass(frozen=True)
class Observations:
    """All that was seen of a task. ``left_behind`` names what could not be removed from it; empty when nothing."""

    facts: Facts
    outcomes: Mapping[Probe, StepOutcome]
    left_behind: str = ""
    cause: Finding | None = None
    """Why login is not possible, when that was looked for."""

    def outcome(self, probe: Probe) -> StepOutcome:
        """What a step found; one that was not done could not be tried."""
        return self.outcomes.get(probe, StepOutcome(None, "It was not checked."))
