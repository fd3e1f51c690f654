"""Releasing tasks that are kept for debugging."""

from __future__ import annotations

from collections.abc import Collection

from pai_backend.api.context import ApiContext
from pai_backend.api.services.jobs import JobService
from pai_backend.api.wire import Released
from pai_backend.auth.users import User
from pai_backend.model.errors import NoSuchTask
from pai_backend.model.job import Job
from pai_backend.model.text import Text

NAMES_SHOWN = 8


class ReleaseService:
    """Writes the wish; the controller carries it out."""

    def __init__(self, ctx: ApiContext) -> None:
        self._ctx = ctx
        self._jobs = JobService(ctx)

    async def release(self, user: User, name: str, tasks: Collection[str] | None) -> Released:
        """Release the named tasks (``role-index``) that are kept, or of all. Idempotent.

        Raises NoSuchJob, Forbidden, and NoSuchTask for a name that no task of the job has; then none is released.
        """
        job = await self._jobs.own(user, name, "release tasks of")
        if tasks is not None:
            _require(job, tasks)
        going = await self._ctx.store.jobs.request_release(job.uid, tasks, user.name, self._ctx.clock())
        names = tuple(task.name for task in going)
        said = Text("job {job}: released: {tasks}", job=job.name, tasks=", ".join(names))
        if not names:
            said = Text("job {job}: nothing to release: no such task is kept", job=job.name)
        return Released(status=202, message=said, tasks=names)


def _require(job: Job, names: Collection[str]) -> None:
    """Raises NoSuchTask for the first name that is none of the job's."""
    known = [task.name for task in job.tasks]
    unknown = sorted(set(names) - set(known))
    if unknown:
        named = ", ".join(known[:NAMES_SHOWN]) + (", …" if len(known) > NAMES_SHOWN else "")
        hint = Text("It has: {known}.", known=named)
        raise NoSuchTask(
            Text("The job {id} has no task {unknown}.", id=job.id, unknown=repr(unknown[0][:100])), hint=hint
        )
