"""Restarts jobs that a login asks for, by the rules of every restart. Any number of replicas may do so at once."""

from __future__ import annotations

import logging

from pai_backend.api.context import ApiContext
from pai_backend.api.services.jobs import JobService
from pai_backend.auth.users import User
from pai_backend.model.errors import NoSuchJob, PaiError, Unavailable
from pai_backend.model.ids import JobUid

LOOK_S = 30.0
"""Between two looks while nothing changes in the store."""

log = logging.getLogger(__name__)


async def follow_login_starts(ctx: ApiContext) -> None:
    """Carry out wishes as they come, until cancelled."""
    seen = -1
    while True:
        try:
            for uid in await ctx.store.login_starts.open():
                await _answer(ctx, uid)
        except Unavailable as error:
            log.warning("jobs that logins ask for are not started (%s); they are looked at again", error.message)
        seen = await ctx.store.changes.wait(seen, LOOK_S)


async def _answer(ctx: ApiContext, uid: JobUid) -> None:
    wishes = ctx.store.login_starts
    try:
        job = await ctx.store.jobs.get(uid)
        if job.state.final:
            await JobService(ctx).restart(User(job.user), uid)
    except NoSuchJob:
        log.debug("a login asks for %s, which was deleted", uid)
    except Unavailable:
        raise
    except PaiError as error:
        await wishes.refuse(uid, error.message)
        return
    await wishes.grant(uid)
