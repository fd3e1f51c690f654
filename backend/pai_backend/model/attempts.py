"""Attempts that came to their ends by themselves: how long they ran, and of which kind of job they were. Pure.

Of a *kind* are jobs of one user whose names differ only in a number, time stamp or identifier at the end, and whose
tasks are the same: roles, how many, GPUs and their type, CPUs. What the command does with other parameters cannot be
known, which is one reason why what is learnt from them is an estimate.

Only attempts that succeeded count. One that was stopped, preempted or lost did not come to its end, and one that failed
tells how soon a fault was met, mostly an early one: it would promise those who wait a GPU that the next, sound attempt
still holds.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pai_backend.model.job import Job, State, Task
from pai_backend.model.spec import JobSpec

KEPT: Final = 16
"""Attempts of a kind that are remembered, the latest: code and data change, and so do run times."""

_SEPARATED = re.compile(
    r"[-_.~](?:[0-9]+(?:[tT][0-9]+)?[zZ]?"  # a number, or a date with its time
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"  # a UUID
    r"|(?=[0-9a-f]*[0-9])[0-9a-f]{6,32})\Z"  # an identifier as programs make them: hexadecimal, with a digit
)


@dataclass(frozen=True, slots=True)
class Ran:
    """An attempt that came to its end by itself."""

    user: str
    kind: str
    seconds: int


@dataclass(frozen=True, slots=True)
class Times:
    """What is remembered of one kind: how long its attempts ran, in seconds, the latest last."""

    user: str
    kind: str
    seconds: tuple[int, ...]


def stem(name: str) -> str:
    """The name without numbers, time stamps and identifiers at its end: ``bert-2024-01-02`` is ``bert``.

    They must be set off by one of ``- _ . ~``: ``resnet50`` and ``resnet101`` are different things.
    """
    while (found := _SEPARATED.search(name)) is not None and found.start():
        name = name[: found.start()]
    return name


def kind_of(spec: JobSpec) -> str:
    """The kind of a job, as 32 hexadecimal digits: equal for jobs that may be expected to run alike."""
    roles = [
        [role.name, role.instances, role.resources.gpus, role.resources.cpus, role.sku_type or spec.gpu_type or ""]
        for role in spec.task_roles
    ]
    return hashlib.sha256(json.dumps([stem(spec.name), roles]).encode()).hexdigest()[:32]


def ran(before: Job, after: Job) -> Ran | None:
    """The attempt that came to its end with this change of a job, if it did by itself and in success."""
    if before.restarting:  # counted when the job ended
        return None
    if after.attempt != before.attempt:
        succeeded = before.verdict is not None and before.verdict.outcome is State.SUCCEEDED
        tasks = before.tasks
    else:
        succeeded = after.state is State.SUCCEEDED and not before.state.final
        tasks = after.tasks
    seconds = _lasted(tasks, gang=after.spec.scheduling.gang_allocation) if succeeded else None
    return None if seconds is None else Ran(after.user, kind_of(after.spec), seconds)


def _lasted(tasks: Sequence[Task], *, gang: bool) -> int | None:
    """For how long a gang held its place, or the longest task of those that have places of their own."""
    times = [
        (task.started_at, task.ended_at) for task in tasks if task.started_at is not None and task.ended_at is not None
    ]
    if not times:
        return None
    if gang:
        times = [(min(start for start, _ in times), max(end for _, end in times))]
    return max(1, round(max((end - start).total_seconds() for start, end in times)))


def with_another(times: Sequence[int], seconds: int) -> tuple[int, ...]:
    """The times of a kind after one more attempt."""
    return (*times, seconds)[-KEPT:]
