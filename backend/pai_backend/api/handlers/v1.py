"""OpenPAI's REST v1: the same jobs under its older paths.

Each handler stands at two paths: ``/api/v1/jobs/…`` and ``/api/v1/user/{user}/jobs/…``. States have v1's words, a
submission answers with the job (201), and reading needs a token here, which it did not there; with
``api.anonymous_v1_list`` the lists need none.
"""

from __future__ import annotations

from functools import partial
from urllib.parse import quote

from pai_backend.api.handlers.jobs import DocumentHandler, JobHandler
from pai_backend.api.openpai import jobs as openpai_jobs
from pai_backend.api.openpai.wire import JobSsh, OpenPaiDetail, OpenPaiJobList
from pai_backend.api.operation import Operation, operation
from pai_backend.api.queries import DEFAULT_OPENPAI_PAGE, ExecutionType, ListQuery
from pai_backend.api.services.attempts import AttemptService
from pai_backend.api.services.job_keys import JobKeyService
from pai_backend.api.services.listing import ListService
from pai_backend.api.services.submission import SubmissionService, SubmitTerms
from pai_backend.api.wire import Said
from pai_backend.auth.users import User
from pai_backend.model.errors import (
    AddressTaken,
    DocumentError,
    Forbidden,
    InvalidParameters,
    NameTaken,
    NoJobSsh,
    NoSuchJob,
    NoSuchStorage,
    NoVirtualCluster,
    ReadOnlyJob,
    TooLarge,
    Unavailable,
)
from pai_backend.model.job import Job
from pai_backend.model.scope import Scope
from pai_backend.model.spec import Dialect
from pai_backend.model.text import Text

VERSION = 1
OBSOLETE = "killAllOnCompletedTaskNumber is obsolete; use minFailedTaskCount and minSucceededTaskCount."
_ANYBODY = User("", admin=True)
"""Who sees the rows of all jobs: for lists alone."""
_SUBMITTED = (DocumentError, InvalidParameters, NoVirtualCluster, NoSuchStorage, NameTaken, AddressTaken, TooLarge)
_SUBMITTED_FOR = (*_SUBMITTED, Forbidden)


def job_id(path: tuple[str, ...]) -> str:
    """The job that the variable parts of a path name: ``{job}``, or ``{user}`` and ``{job}``."""
    return "~".join(path)


class _Submits(DocumentHandler):
    """A handler that takes documents."""

    async def submit(self, owner: str | None, name: str | None) -> OpenPaiDetail:
        """Store the body as a job of the caller. Raises Forbidden when the path names another user."""
        if owner is not None and owner != self.user.name:
            raise Forbidden(
                Text("Only {owner} may submit jobs of {owner}.", owner=owner),
                hint=Text("Use /api/v1/user/{user}/jobs.", user=self.user.name),
            )
        self.ctx.limits.submissions.take(self.user.name)
        job = await SubmissionService(self.ctx).create(self.user, self.body(), "", SubmitTerms(name))
        self._say_obsolete(job)
        self.set_header("Location", f"/api/v1/user/{quote(job.user, safe='')}/jobs/{quote(job.name, safe='~')}")
        return await AttemptService(self.ctx).detail(self.user, job.id, version=VERSION)

    def _say_obsolete(self, job: Job) -> None:
        # QIZHI's documents have no other way to say it, so only OpenPAI's own dialect is warned.
        if job.spec.dialect is Dialect.OPENPAI_V1 and job.spec.kill_all_on_completed is not None:
            self.set_header("X-Warning", OBSOLETE)


class _Lists(_Submits):
    """One that lists jobs, too."""

    async def _caller(self) -> User:
        """As the base; a caller without a token may see the list where the administrator says so."""
        is_stranger = "Authorization" not in self.request.headers
        if is_stranger and self.request.method == "GET" and self.ctx.site.anonymous_v1_list:
            return _ANYBODY
        return await super()._caller()

    async def list(self, owner: str, query: ListQuery) -> None:
        """Write a page of jobs, of one owner only when it is given."""
        self.ctx.limits.lists.take(self.user.name)
        found, matching = await ListService(self.ctx).page(
            self.user, query, default_limit=DEFAULT_OPENPAI_PAGE, owner=owner, version=VERSION
        )
        shape = partial(openpai_jobs.row, version=VERSION)
        await self.write_rows(found, shape, matching if query.with_total_count else None, "application/json")


class JobsV1Handler(_Lists):
    """``/api/v1/jobs``."""

    @operation(Operation("List jobs.", query=ListQuery, answer=OpenPaiJobList))
    async def get(self, query: ListQuery) -> None:
        """A page of jobs."""
        await self.list("", query)

    @operation(
        Operation(
            "Submit a job document.",
            audit="job.submitted",
            takes_document=True,
            answer=OpenPaiDetail,
            status=201,
            raises=_SUBMITTED,
        )
    )
    async def post(self) -> OpenPaiDetail:
        """Take a document under the name it gives itself."""
        return await self.submit(None, None)


class UserJobsV1Handler(_Lists):
    """``/api/v1/user/{user}/jobs``."""

    @operation(Operation("List a user's jobs.", query=ListQuery, answer=OpenPaiJobList))
    async def get(self, user: str, query: ListQuery) -> None:
        """A page of the user's jobs."""
        await self.list(user, query)

    @operation(
        Operation(
            "Submit a job document.",
            audit="job.submitted",
            takes_document=True,
            answer=OpenPaiDetail,
            status=201,
            raises=_SUBMITTED_FOR,
        )
    )
    async def post(self, user: str) -> OpenPaiDetail:
        """Take a document under the name it gives itself."""
        return await self.submit(user, None)


class OneJobV1Handler(_Submits):
    """``/api/v1/jobs/{job}`` and ``/api/v1/user/{user}/jobs/{job}``."""

    @operation(Operation("Everything about one job.", answer=OpenPaiDetail, raises=(NoSuchJob,)))
    async def get(self, *path: str) -> OpenPaiDetail:
        """The detail."""
        return await AttemptService(self.ctx).detail(self.user, job_id(path), version=VERSION)

    @operation(
        Operation(
            "Submit a job document under this name.",
            audit="job.submitted",
            takes_document=True,
            answer=OpenPaiDetail,
            status=201,
            raises=_SUBMITTED_FOR,
        )
    )
    async def put(self, *path: str) -> OpenPaiDetail:
        """Take a document; the path's name replaces its own."""
        *owners, name = path
        if not owners and "~" in name:  # its first part is a user; a name with a ~ of its own is put below a user
            owner, _, name = name.partition("~")
            owners = [owner]
        return await self.submit(owners[0] if owners else None, name)


class JobExecutionTypeV1Handler(JobHandler):
    """``/api/v1/jobs/{job}/executionType`` and the same below a user."""

    @operation(
        Operation(
            "Stop a job, or start one again.",
            audit="job.execution",
            body=ExecutionType,
            answer=Said,
            status=202,
            raises=(NoSuchJob, ReadOnlyJob),
        )
    )
    async def put(self, *arguments: str | ExecutionType) -> Said:
        """Stop a job, or let one that has ended run again."""
        *path, wanted = arguments
        assert isinstance(wanted, ExecutionType)
        self.say(wanted.value)
        return await self.jobs.execute(self.user, job_id(tuple(map(str, path))), wanted.value)


class JobConfigV1Handler(JobHandler):
    """``/api/v1/jobs/{job}/config`` and the same below a user."""

    @operation(Operation("The submitted document.", media_type="application/json", raises=(NoSuchJob,)))
    async def get(self, *path: str) -> None:
        """The document."""
        text, media_type, _ = await self.jobs.document(self.user, job_id(path))
        self.write_document(text, media_type)


class JobSshV1Handler(JobHandler):
    """``/api/v1/jobs/{job}/ssh`` and the same below a user."""

    scope = Scope.SSH

    @operation(Operation("How to log in to a job's tasks.", answer=JobSsh, raises=(NoSuchJob, NoJobSsh, Unavailable)))
    async def get(self, *path: str) -> JobSsh:
        """Where each task is entered, and the job's key."""
        return await JobKeyService(self.ctx).ssh(self.user, job_id(path))
