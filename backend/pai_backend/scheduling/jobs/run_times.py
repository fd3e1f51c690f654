"""How long a job is expected to run, where that is known: the interface that estimates and kept cells rest on."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from pai_backend.model.job import Job

RunTime = Callable[[Job], timedelta | None]
"""How long an attempt of the job runs: declared in its document, or from its user's history. None when unknown."""


def unknown(job: Job) -> None:
    """A :data:`RunTime` for when nothing is known."""
