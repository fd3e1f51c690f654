"""QIZHI's killAllOnCompletedTaskNumber in the words of the other protocols, where they can say it.

It ends the job when that many tasks of all roles have completed, however they ended. Where the first failure ends
the job anyway, the completed are the succeeded, and those a role can count; several roles together cannot.
"""

from __future__ import annotations

from dataclasses import dataclass

from pai_backend.model.spec import JobSpec


@dataclass(frozen=True)
class Counting:
    """``kill_all`` is what is still to be said; ``succeeded`` the counter of the only role, when that says it."""

    kill_all: int | None = None
    succeeded: int | None = None


def counting(spec: JobSpec) -> Counting:
    """How a job's killAllOnCompletedTaskNumber is said by counters of its roles.

    Nothing is left to be said when it is off, or is the number of all tasks, with which the job ends anyway.
    """
    limit = spec.kill_all_on_completed
    if not limit or limit >= spec.task_count:
        return Counting()
    if len(spec.task_roles) > 1 or spec.task_roles[0].completion.min_failed != 1:
        return Counting(kill_all=limit)
    return Counting(succeeded=min(limit, spec.task_roles[0].completion.min_succeeded or limit))
