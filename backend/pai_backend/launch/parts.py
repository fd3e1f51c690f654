"""What the plans of a job's tasks have in common, made once and remembered while it holds."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from pai_backend.launch.job_info import job_info
from pai_backend.launch.shared import shared_environment
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Job
from pai_backend.model.node import Placement

REMEMBERED_JOBS = 8  # those being started at once; some MB for one of thousands of tasks


@dataclass(frozen=True)
class JobParts:
    """The shared variables of a job as it is placed, patterns of those left out, and its job info."""

    shared: dict[str, str]
    left_out: tuple[str, ...]
    info: str
    placed: int
    """How many of its tasks have a place."""


def job_parts(job: Job, default_fs_uri: str = "") -> JobParts:
    """The parts of ``job`` as it is placed now; takes time in proportion to its tasks."""
    shared = shared_environment(job, default_fs_uri)
    placed = sum(task.placement is not None for task in job.tasks)
    return JobParts(shared.variables, shared.left_out, job_info(job), placed)


class PartsMemory:
    """The parts of the jobs that were asked for last, for as long as their tasks stay where they are.

    Nothing else of a job changes them: its document is fixed, and what a single task has is not among them.
    """

    def __init__(self, default_fs_uri: str = "") -> None:
        self._default_fs_uri = default_fs_uri
        self._known: OrderedDict[tuple[JobUid, int], tuple[tuple[Placement | None, ...], JobParts]] = OrderedDict()

    def of(self, job: Job) -> JobParts:
        """The parts of ``job``."""
        key = (job.uid, job.attempt)
        placements = tuple(task.placement for task in job.tasks)
        known = self._known.get(key)
        parts = known[1] if known is not None and known[0] == placements else job_parts(job, self._default_fs_uri)
        # The placements as they are now: comparing is quick while they are the very same objects.
        self._known[key] = (placements, parts)
        self._known.move_to_end(key)
        while len(self._known) > REMEMBERED_JOBS:
            self._known.popitem(last=False)
        return parts
