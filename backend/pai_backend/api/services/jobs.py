"""Finding, stopping, restarting and deleting jobs."""

from __future__ import annotations

from functools import partial

from pai_backend.api import present
from pai_backend.api.context import ApiContext
from pai_backend.api.large_texts import in_turn
from pai_backend.api.services.documents import document_type, read
from pai_backend.api.services.rule_warnings import rule_warning
from pai_backend.api.staleness import staleness_of
from pai_backend.api.wire import JobDetail, Said
from pai_backend.auth.identity import user_of
from pai_backend.auth.policy import may_change, may_read_secrets, may_see
from pai_backend.auth.users import User
from pai_backend.launch.directories import output_path
from pai_backend.lifecycle.durations import end_of
from pai_backend.model.errors import (
    DocumentError,
    Forbidden,
    NoSuchJob,
    NoSuchStorage,
    NoVirtualCluster,
    ReadOnlyJob,
)
from pai_backend.model.job import Desired, Job
from pai_backend.model.text import Text
from pai_backend.protocol.mask import masked
from pai_backend.store import deeds


class JobService:
    """Jobs as users see and change them."""

    def __init__(self, ctx: ApiContext) -> None:
        self._ctx = ctx

    async def find(self, user: User, name: str) -> Job:
        """The job of that id, alias, uid or own name. Raises NoSuchJob, also when the user may not see it."""
        job = await self._ctx.store.jobs.find(name, user.name)
        if not may_see(user, job):
            # In the store's own words, so that a hidden job and one that does not exist look alike.
            raise NoSuchJob(
                Text("There is no job {name}.", name=repr(name[:300])),
                hint=Text("`pai list` shows the names of your jobs."),
            )
        deeds.found(job)
        return job

    async def detail(self, user: User, name: str) -> JobDetail:
        """Everything about one job. Raises NoSuchJob."""
        job = await self.find(user, name)
        idles = job.spec.idle_timeout_s is not None and not job.state.final
        clocks = await self._ctx.store.idling.clocks([job.uid]) if idles else {}
        doubt = await staleness_of(job, self._ctx)
        held = await self._ctx.store.addresses.held_by(job)
        end = end_of(job, self._ctx.rules.policy.longest_run(job.virtual_cluster), self._ctx.rules.bookings)
        output = output_path(job, self._ctx.task_reach.task_fs_uri)
        warning = "" if job.state.final else await rule_warning(self._ctx.store, job)
        clock, gateway = clocks.get(job.uid), self._ctx.gateway()
        return present.detail(job, self._ctx.site, gateway, clock, doubt, held, end, output, warning)

    async def own(self, user: User, name: str, to_do: str) -> Job:
        """The job, when the user may change it; ``to_do`` is what for. Raises NoSuchJob, Forbidden."""
        job = await self.find(user, name)
        if not may_change(user, job):
            raise Forbidden(
                Text("Only {user} may {to_do} the job {id}.", user=job.user, to_do=to_do, id=job.id),
                hint=Text("Ask its owner."),
            )
        return job

    async def execute(self, user: User, name: str, wanted: Desired) -> Said:
        """Ask a job to end, or to go on. Idempotent. Raises as :meth:`restart`."""
        if wanted is Desired.STOP:
            return await self.stop(user, name)
        return await self.restart(user, name)

    async def restart(self, user: User, name: str) -> Said:
        """Let a job that has ended run again; one that goes on is left alone.

        Raises NoSuchJob, Forbidden, ReadOnlyJob (it is being stopped or deleted, its owner is gone, or could not
        submit its document now).
        """
        job = await self.own(user, name, "start")
        if job.state.final:
            self._ctx.limits.submissions.take(user.name)
            account = await self._ctx.identity.accounts.get(job.user)
            if account is None:
                message = Text("The job {id} cannot run again: its user has been removed.", id=job.id)
                raise ReadOnlyJob(message, hint=Text("Submit its document as a job of your own."))
            owner = user_of(account)
            text, filename, _media_type = await self._ctx.store.jobs.document(job.uid)
            try:
                await read(self._ctx, owner, text, filename)
            except (DocumentError, NoVirtualCluster, NoSuchStorage) as error:
                message = Text("The job {id} cannot run again as it is: {error}", id=job.id, error=error.message)
                raise ReadOnlyJob(message, errors=error.errors, hint=error.hint) from None
            await self._ctx.need_account(owner)
        await self._ctx.store.jobs.request_restart(job.uid, user.name, self._ctx.clock())
        said = Text("job {job} is restarted", job=job.name)
        if not job.state.final:
            said = Text("job {job} is started already", job=job.name)
        return Said(status=202, message=said)

    async def stop(self, user: User, name: str) -> Said:
        """Ask a job to end. Idempotent. Raises NoSuchJob, Forbidden."""
        job = await self.own(user, name, "stop")
        await self._ctx.store.jobs.request_stop(job.uid, user.name, self._ctx.clock(), "")
        return Said(status=202, message=Text("job {job} is asked to stop", job=job.name))

    async def delete(self, user: User, name: str) -> Said:
        """Delete a job that has ended, for good. Raises NoSuchJob, Forbidden, NotFinished."""
        job = await self.own(user, name, "delete")
        gone = await self._ctx.store.deletion.request(job.uid, user.name, self._ctx.clock())
        said = Text("job {job} is deleted; its outputs in storages are kept", job=job.name)
        if not gone:
            said = Text(
                "job {job} is deleted as soon as the engine has removed its tasks; its outputs in storages are kept",
                job=job.name,
            )
        return Said(status=202, message=said)

    async def tag(self, user: User, name: str, tag: str) -> Said:
        """Give a job a tag. Idempotent. Raises NoSuchJob, Forbidden, InvalidParameters when it has too many."""
        job = await self.own(user, name, "tag")
        await self._ctx.store.jobs.tag(job.uid, tag)
        return Said(status=200, message=Text("tag {tag} added to job {job}", tag=tag, job=job.name))

    async def untag(self, user: User, name: str, tag: str) -> Said:
        """Take a tag away. Raises NoSuchJob, Forbidden, NoSuchTag."""
        job = await self.own(user, name, "untag")
        await self._ctx.store.jobs.untag(job.uid, tag)
        return Said(status=200, message=Text("tag {tag} removed from job {job}", tag=tag, job=job.name))

    async def document(self, user: User, name: str, *, mask: bool = False) -> tuple[bytes, str, bool]:
        """The submitted bytes, their media type, and whether they hold secrets that the user may not read.

        Those are masked, and with ``mask`` all are.

        Raises NoSuchJob.
        """
        job = await self.find(user, name)
        text, filename, _kept_type = await self._ctx.store.jobs.document(
            job.uid
        )  # older versions kept what clients said
        media_type = document_type(filename, text)
        is_readable = may_read_secrets(user, job)
        shown = text if is_readable and not mask else await in_turn(partial(masked, text))
        return shown, media_type, not is_readable and shown != text
