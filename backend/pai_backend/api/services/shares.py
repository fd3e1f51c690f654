"""Shares: jobs that their owners let other users enter, and links to one service."""

from __future__ import annotations

import secrets
from datetime import timedelta

from pai_backend.access.broker.rights import is_living
from pai_backend.access.proxy.shared import digest_of, opens
from pai_backend.api.context import ApiContext
from pai_backend.api.key_wire import MadeLink, NewLink, NewShare, ShareList, ShareQuery, ShareWire
from pai_backend.api.queries import TaskQuery
from pai_backend.api.services.jobs import JobService
from pai_backend.api.services.keys import require_account
from pai_backend.auth.policy import may_enter, may_see, within
from pai_backend.auth.tokens import TOKEN_BYTES
from pai_backend.auth.users import User
from pai_backend.model.alias import Target, service_alias
from pai_backend.model.errors import Forbidden, InvalidParameters, NoSuchJob, NoSuchService, NoSuchTask
from pai_backend.model.job import Job
from pai_backend.model.rights import PORT, SSH_LABEL, limits_of, words_of
from pai_backend.model.text import Text
from pai_backend.store.grants import GROUP, Act, Share

LINK = "link:"
"""What the names of links begin with."""


async def find_entered(ctx: ApiContext, user: User, name: str) -> tuple[Job, Share | None]:
    """The job of that name when the user may see it, or enter it by a share, which comes with it then.

    Raises NoSuchJob.
    """
    job = await ctx.store.jobs.find(name, user.name)
    if may_see(user, job):
        return job, None
    for share in await ctx.store.grants.shares_in_force(job.uid, ctx.clock()):
        if share.is_for(user.name) and within(user, job.virtual_cluster):
            return job, share
    # In the store's own words, so that a hidden job and one that does not exist look alike.
    raise NoSuchJob(
        Text("There is no job {name}.", name=repr(name[:300])), hint=Text("`pai list` shows the names of your jobs.")
    )


def find_service(job: Job, label: str, query: TaskQuery) -> Target:
    """The service that is meant. Raises NoSuchService, NoSuchTask."""
    owners = [role for role in job.spec.task_roles if any(port.label == label for port in role.ports)]
    if query.role is not None:
        owners = [role for role in owners if role.name == query.role]
    if not owners or label == SSH_LABEL:
        labels = dict.fromkeys(port.label for role in job.spec.task_roles for port in role.ports)
        labels.pop(SSH_LABEL, None)
        where = Text("job {id}", id=job.id) if query.role is None else Text("task role {name}", name=query.role)
        raise NoSuchService(
            Text("The {where} has no service {label}.", where=where, label=label),
            hint=Text("The job has: {labels}.", labels=", ".join(labels)),
        )
    if query.index >= owners[0].instances:
        raise NoSuchTask(
            Text("The task role {name} has no task {index}.", name=owners[0].name, index=query.index),
            hint=Text("It has 0 to {instances}.", instances=owners[0].instances - 1),
        )
    return Target(owners[0].name, query.index, label)


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
        of_jobs = [(share, await self._ctx.store.jobs.get(share.job)) for share in shares]
        return ShareList(data=tuple(_shown(share, job) for share, job in of_jobs if within(user, job.virtual_cluster)))

    async def give(self, user: User, name: str, new: NewShare) -> ShareWire:
        """Let a user or a group into the caller's job, on these terms instead of earlier ones.

        Raises NoSuchJob, Forbidden, NoSuchUser, NoSuchGroup, NoSuchService (a port's label), InvalidParameters,
        ReadOnlyJob.
        """
        job = await self._of_owner(user, name)
        if not new.user.startswith(GROUP):
            await require_account(self._ctx, new.user)
        if new.user == job.user:
            raise InvalidParameters(Text("The job is {user}'s own.", user=job.user), hint=Text("Name another user."))
        limits = limits_of(new.only)
        _check_ports(job, limits.ports or ())
        act = Act(user.name, self._ctx.clock(), self._source)
        end = None if new.lifetime_s is None else act.at + timedelta(seconds=new.lifetime_s)
        share = Share(job.uid, new.user, limits, act.at, user.name, user.until(end), user.maker)
        await self._ctx.store.grants.share(share, act)
        return _shown(share, job)

    async def link(self, user: User, name: str, new: NewLink) -> MadeLink:
        """A new link to one service of the caller's job, for reading. Its token is not kept and shown this once.

        Raises NoSuchJob, Forbidden, NoSuchService, NoSuchTask, InvalidParameters (too many), ReadOnlyJob.
        """
        job = await self._of_owner(user, name)
        target = find_service(job, new.label, TaskQuery(role=new.role, index=new.index))
        service = service_alias(job.alias, job.spec, target.role, target.index, new.label)
        token = secrets.token_urlsafe(TOKEN_BYTES)
        link = digest_of(token)
        act = Act(user.name, self._ctx.clock(), self._source)
        share = Share(
            job=job.uid,
            user=f"{LINK}{link[:12]}",
            limits=limits_of([f"{PORT}{new.label}"]),
            created_at=act.at,
            created_by=user.name,
            expires_at=user.until(act.at + timedelta(seconds=new.lifetime_s)),
            made_by=user.maker,
            link=link,
            service=service,
        )
        await self._ctx.store.grants.share(share, act)
        url = self._ctx.proxy.link_to(service, self._ctx.site.base_url, token)
        return MadeLink(**dict(_shown(share, job)), url=url)

    async def _of_owner(self, user: User, name: str) -> Job:
        job = await JobService(self._ctx).find(user, name)
        if not may_enter(user, job):
            raise Forbidden(
                Text("Only {user} may share the job {id}.", user=job.user, id=job.id), hint=Text("Ask its owner.")
            )
        return job

    async def end(self, user: User, name: str, with_user: str) -> None:
        """End the share of a user or a group, or a link: live logins and requests are cut.

        Raises NoSuchJob, Forbidden, NoSuchShare.
        """
        job = await JobService(self._ctx).own(user, name, "share")
        act = Act(user.name, self._ctx.clock(), self._source)
        await self._ctx.store.grants.unshare(job.uid, with_user, act)


def _check_ports(job: Job, labels: tuple[str, ...]) -> None:
    known = {port.label for role in job.spec.task_roles for port in role.ports}
    for label in labels:
        if label not in known:
            raise NoSuchService(
                Text("The job {id} has no port {label}.", id=job.id, label=label[:100]),
                hint=Text("It has: {known}.", known=", ".join(known)),
            )


def _services(share: Share, job: Job) -> tuple[str, ...]:
    """Labels of the services that it opens: of all of them those that the document asks for."""
    named = share.limits.ports or ()
    offered = {
        port.label: None
        for role in job.spec.task_roles
        for port in role.ports
        if port.label != SSH_LABEL and (port.label in named or not port.implicit) and opens(share.limits, port.label)
    }
    return tuple(offered)


def _shown(share: Share, job: Job) -> ShareWire:
    return ShareWire(
        job=job.id,
        uid=job.uid,
        alias=job.alias,
        user=share.user,
        is_link=share.link != "",
        services=_services(share, job),
        only=words_of(share.limits),
        created_by=share.created_by,
        created_at=share.created_at,
        expires_at=share.expires_at,
    )
