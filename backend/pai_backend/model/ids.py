"""Identifiers and the rules that make them deterministic.

Names of everything started by an engine are functions of the task uid (architecture §4), and the
task uid is a function of (job uid, attempt, role number, index), so a repeated start is recognisable.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NewType

JobUid = NewType("JobUid", str)
"""Opaque, chosen once at submit: ``j`` and 16 lower-case hexadecimal digits. No name and no alias has this form."""

TaskUid = NewType("TaskUid", str)
"""``<job uid>-<role number>-<index>-<attempt>``, all decimal and from 0; DNS-safe."""

_JOB_UID = re.compile(r"j[0-9a-f]{16}")


def is_job_uid(text: str) -> bool:
    """Whether a reference to a job is a uid, and so neither a name nor an alias."""
    return _JOB_UID.fullmatch(text) is not None


def task_uid(job: JobUid, role_number: int, index: int, attempt: int) -> TaskUid:
    """The uid of one task in one attempt of its job."""
    return TaskUid(f"{job}-{role_number}-{index}-{attempt}")


def job_of(task: TaskUid) -> JobUid:
    """The job a task uid belongs to."""
    return JobUid(task.split("-", 1)[0])


def slot_of(uid: TaskUid) -> str:
    """The slot of a task uid."""
    return uid.rsplit("-", 1)[0]


@dataclass(frozen=True)
class PortLease:
    """One leased port. ``owner`` is ``<job uid>-<role number>-<index>``: kept over attempts."""

    machine: str
    port: int
    owner: str
