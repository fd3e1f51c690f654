"""Changing a waiting job's place in the queue."""

from __future__ import annotations

from pai_backend.api.context import ApiContext
from pai_backend.api.queries import MoveBody
from pai_backend.api.services.jobs import JobService
from pai_backend.api.use_wire import MovedJob, MovedJobs
from pai_backend.auth.policy import administers
from pai_backend.auth.users import User
from pai_backend.model.text import Text
from pai_backend.scheduling.jobs.reorder import Move


class MoveService:
    """Writes the wish; the controller serves by it from then on."""

    def __init__(self, ctx: ApiContext) -> None:
        self._ctx = ctx
        self._jobs = JobService(ctx)

    async def move(self, user: User, name: str, to: MoveBody) -> MovedJobs:
        """Let a job stand elsewhere in its queue: users among their own jobs, who administers it anywhere. Idempotent.

        Raises NoSuchJob, also for another job that the user may not see, Forbidden, NotWaiting, OtherQueue.
        """
        job = await self._jobs.own(user, name, "move")
        other = None if to.other is None else await self._jobs.find(user, to.other)
        among = None if administers(user, job.virtual_cluster) else user.name
        move = Move(job.uid, to.side, None if other is None else other.uid, among)
        shared = self._ctx.rules.sizing.shared
        moves = await self._ctx.store.jobs.request_move(move, user.name, self._ctx.clock(), shared=shared)
        named = {job.uid: job, **({} if other is None else {other.uid: other})}
        changed = []
        for each in moves:
            moved = named.get(each.uid) or await self._ctx.store.jobs.get(each.uid)
            changed.append(MovedJob(id=moved.id, place=each.place, was=each.was))
        place = next((each.place for each in moves if each.uid == job.uid), None)
        said = Text("job {job} is number {place} of its priority now", job=job.name, place=place)
        if place is None:
            said = Text("job {job} is there already", job=job.name)
        return MovedJobs(status=202, message=said, jobs=tuple(changed))
