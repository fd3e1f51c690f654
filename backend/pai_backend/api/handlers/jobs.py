"""Jobs: submit, validate, list, look, stop."""

from __future__ import annotations

from pai_backend.api.base import ApiHandler
from pai_backend.api.operation import Operation, operation
from pai_backend.api.queries import ExecutionType, ListQuery, SubmitQuery, ValidateQuery
from pai_backend.api.services.jobs import JobService
from pai_backend.api.wire import Detail, JobList, Said, Submitted, Validation
from pai_backend.model.errors import (
    DocumentError,
    Forbidden,
    NameTaken,
    NoSuchJob,
    NoVirtualCluster,
    TooLarge,
)


class _JobHandler(ApiHandler):
    """A handler with the job service."""

    @property
    def jobs(self) -> JobService:
        """The service."""
        return JobService(self.ctx)


class _DocumentHandler(_JobHandler):
    """A handler whose body is a job document."""

    def body_limit(self) -> int:
        """As configured for documents."""
        return self.ctx.site.max_document_bytes


class Jobs(_DocumentHandler):
    """``/api/v2/jobs``."""

    @operation(Operation("List jobs.", query=ListQuery, answer=JobList))
    async def get(self, query: ListQuery) -> JobList:
        """A page of jobs."""
        return await self.jobs.list(self.user, query)

    @operation(
        Operation(
            "Submit a job document; the body is the document as it is.",
            query=SubmitQuery,
            takes_document=True,
            answer=Submitted,
            status=202,
            raises=(DocumentError, NoVirtualCluster, NameTaken, TooLarge),
        )
    )
    async def post(self, query: SubmitQuery) -> Submitted:
        """Take a document."""
        media_type = self.request.headers.get("Content-Type", "")
        return await self.jobs.submit(self.user, self.body(), query.name, query.filename, media_type)


class Validate(_DocumentHandler):
    """``/api/v2/validate``."""

    @operation(
        Operation(
            "Read a job document and change nothing.",
            query=ValidateQuery,
            takes_document=True,
            answer=Validation,
            raises=(TooLarge,),
        )
    )
    async def post(self, query: ValidateQuery) -> Validation:
        """Read a document."""
        return await self.jobs.validate(self.body(), query.filename)


class OneJob(_JobHandler):
    """``/api/v2/jobs/{job}``."""

    @operation(Operation("Everything about one job.", answer=Detail, raises=(NoSuchJob,)))
    async def get(self, job: str) -> Detail:
        """The detail."""
        return await self.jobs.detail(self.user, job)


class JobExecutionType(_JobHandler):
    """``/api/v2/jobs/{job}/executionType``."""

    @operation(Operation("Stop a job.", body=ExecutionType, answer=Said, status=202, raises=(NoSuchJob, Forbidden)))
    async def put(self, job: str, _wanted: ExecutionType) -> Said:
        """Ask for the end; STOP is the only value there is."""
        return await self.jobs.stop(self.user, job)


class JobConfig(_JobHandler):
    """``/api/v2/jobs/{job}/config``."""

    @operation(Operation("The submitted document, byte for byte.", media_type="application/json", raises=(NoSuchJob,)))
    async def get(self, job: str) -> None:
        """The document."""
        text, media_type = await self.jobs.document(self.user, job)
        self.set_header("Content-Type", media_type)
        self.write(text)
