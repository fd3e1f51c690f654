"""Shares: jobs that their owners let other users enter by SSH, and nothing else."""

from __future__ import annotations

from datetime import timedelta

from pai_backend.access.broker.rights import is_living
from pai_backend.api.context import ApiContext
from pai_backend.api.key_wire import NewShare, ShareList, ShareQuery, ShareWire
from pai_backend.api.services.jobs import JobService
from pai_backend.api.services.keys import require_account
from pai_backend.auth.policy import may_enter, may_see
from pai_backend.auth.users import User
from pai_backend.model.errors import Forbidden, InvalidParameters, NoSuchJob, NoSuchService
from pai_backend.model.job import Job
from pai_backend.model.rights import limits_of, words_of
from pai_backend.store.grants import Act, Share


async def find_entered(ctx: ApiContext, user: User, name: str) -> tuple[Job, Share | None]:
    """The job of that name when the user may see it, or enter it by a share, which comes with it then.

    Raises NoSuchJob.
    """
    job = await ctx.store.jobs.find(name, user.name)
    if may_see(user, job):
        return job, None
    now = ctx.clock()
    for share in await ctx.store.grants.shares(job.uid):
        if share.user == user.name and is_living(share, now):
            return job, share
    # In the store's own words, so that a hidden job and one that does not exist look alike.
    raise NoSuchJob(f"There is no job {name[:300]!r}.", hint="`pai list` shows the names of your jobs.")


class ShareService:
    """Shares. ``source`` is the address that the caller's request came from, for the audit."""

    def __init__(self, ctx: ApiContext, source: str) -> None:
        self._ctx, self._source = ctx, source

    async def of_job(self, user: User, name: str) -> ShareList:
        """With whom a job is shared now. Raises NoSuchJob, Forbidden."""
        job = await JobService(self._ctx).own(user, name, "see the shares of")
        now = self._ctx.clock()
        shares = await self._ctx.store.grants.shares(job.uid)
        return ShareList(data=tuple(_shown(share, job) for share in shares if is_living(share, now)))

    async def list(self, user: User, query: ShareQuery) -> ShareList:
        """What is shared with the caller now, or of the caller's jobs with others."""
        grants = self._ctx.store.grants
        find = grants.shared_by if query.given else grants.shared_with
        shares = await find(user.name, self._ctx.clock())
        return ShareList(data=tuple([_shown(share, await self._ctx.store.jobs.get(share.job)) for share in shares]))

    async def give(self, user: User, name: str, new: NewShare) -> ShareWire:
        """Let a user into the caller's job, on these terms instead of earlier ones.

        Raises NoSuchJob, Forbidden, NoSuchUser, NoSuchService (a port's label), InvalidParameters, ReadOnlyJob.
        """
        job = await JobService(self._ctx).find(user, name)
        if not may_enter(user, job):
            raise Forbidden(f"Only {job.user} may share the job {job.id}.", hint="Ask its owner.")
        await require_account(self._ctx, new.user)
        if new.user == job.user:
            raise InvalidParameters(f"The job is {job.user}'s own.", hint="Name another user.")
        limits = limits_of(new.only)
        _check_ports(job, limits.ports or ())
        act = Act(user.name, self._ctx.clock(), self._source)
        end = None if new.lifetime_s is None else act.at + timedelta(seconds=new.lifetime_s)
        share = Share(job.uid, new.user, limits, act.at, user.name, end, user.maker)
        await self._ctx.store.grants.share(share, act)
        return _shown(share, job)

    async def end(self, user: User, name: str, with_user: str) -> None:
        """End a user's share; live logins are cut. Raises NoSuchJob, Forbidden, NoSuchShare."""
        job = await JobService(self._ctx).own(user, name, "share")
        act = Act(user.name, self._ctx.clock(), self._source)
        await self._ctx.store.grants.unshare(job.uid, with_user, act)


def _check_ports(job: Job, labels: tuple[str, ...]) -> None:
    known = {port.label for role in job.spec.task_roles for port in role.ports}
    for label in labels:
        if label not in known:
            raise NoSuchService(f"The job {job.id} has no port {label[:100]}.", hint=f"It has: {', '.join(known)}.")


def _shown(share: Share, job: Job) -> ShareWire:
    return ShareWire(
        job=job.id,
        uid=job.uid,
        alias=job.alias,
        user=share.user,
        only=words_of(share.limits),
        created_by=share.created_by,
        created_at=share.created_at,
        expires_at=share.expires_at,
    )
