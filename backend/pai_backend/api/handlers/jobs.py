"""Jobs: submit, validate, list, look, stop, delete, tag."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from pydantic_core import to_json

from pai_backend.api.base import ApiHandler
from pai_backend.api.openpai import jobs as openpai_jobs
from pai_backend.api.openpai import wire as openpai
from pai_backend.api.operation import Operation, operation
from pai_backend.api.present import summary
from pai_backend.api.queries import (
    DEFAULT_OPENPAI_PAGE,
    DEFAULT_PAGE,
    DocumentQuery,
    ExecutionType,
    ListQuery,
    SubmitQuery,
    TagBody,
    ValidateQuery,
)
from pai_backend.api.services.attempts import AttemptService
from pai_backend.api.services.jobs import JobService
from pai_backend.api.services.listing import ListService
from pai_backend.api.services.submission import SubmissionService, SubmitTerms
from pai_backend.api.services.trial import TrialService
from pai_backend.api.wire import MEDIA_TYPE, JobDetail, JobList, Said, Submitted, Trial, Validation
from pai_backend.model.errors import (
    AddressTaken,
    DocumentError,
    NameTaken,
    NoSuchJob,
    NoSuchStorage,
    NoSuchTag,
    NotFinished,
    NoVirtualCluster,
    ReadOnlyJob,
    TooLarge,
)
from pai_backend.store.base import JobSummary

ROWS_AT_ONCE = 250  # some 5 ms of work; then others have their turn, and the client its first rows


class JobHandler(ApiHandler):
    """A handler with the job service."""

    @property
    def jobs(self) -> JobService:
        """The service."""
        return JobService(self.ctx)

    async def write_rows(
        self,
        found: Sequence[JobSummary],
        shape: Callable[[JobSummary], dict[str, object]],
        total: int | None,
        media_type: str,
    ) -> None:
        """Write a page, with the total when it is given, piece by piece: OpenPAI's pages have up to 50,000 rows."""
        self.set_header("Content-Type", media_type)
        self.write("[" if total is None else f'{{"totalCount":{total},"data":[')
        for start in range(0, len(found), ROWS_AT_ONCE):
            rows = to_json([shape(row) for row in found[start : start + ROWS_AT_ONCE]])
            self.write((b"," if start else b"") + rows[1:-1])  # without its own brackets
            if start + ROWS_AT_ONCE < len(found):
                await self.flush()
                await asyncio.sleep(0)
        self.write("]" if total is None else "]}")


class DocumentHandler(JobHandler):
    """A handler whose body is a job document."""

    def body_limit(self) -> int:
        """As configured for documents."""
        return self.ctx.site.max_document_bytes


class JobsHandler(DocumentHandler):
    """``/api/v2/jobs``."""

    @operation(Operation("List jobs.", query=ListQuery, answer=openpai.OpenPaiJobList, ours=JobList))
    async def get(self, query: ListQuery) -> None:
        """A page of jobs."""
        self.ctx.limits.lists.take(self.user.name)
        ours = self.wants_ours()
        limit = DEFAULT_PAGE if ours else DEFAULT_OPENPAI_PAGE
        found, matching = await ListService(self.ctx).page(self.user, query, default_limit=limit)
        total = matching if query.with_total_count else None
        shape = summary if ours else partial(openpai_jobs.row, version=2)
        await self.write_rows(found, shape, total, MEDIA_TYPE if ours else "application/json")

    @operation(
        Operation(
            "Submit a job document; the body is the document as it is.",
            audit="job.submitted",
            query=SubmitQuery,
            takes_document=True,
            answer=Submitted,
            status=202,
            raises=(DocumentError, NoSuchJob, NoVirtualCluster, NoSuchStorage, NameTaken, AddressTaken, TooLarge),
        )
    )
    async def post(self, query: SubmitQuery) -> Submitted:
        """Take a document."""
        self.ctx.limits.submissions.take(self.user.name)
        key = self.request.headers.get("Idempotency-Key", "")
        terms = SubmitTerms(query.name, query.replace, query.address, key, query.secrets_of)
        return await SubmissionService(self.ctx).submit(self.user, self.body(), query.filename, terms)


class ValidateHandler(DocumentHandler):
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
        return await SubmissionService(self.ctx).validate(self.user, self.body(), query.filename, query.secrets_of)


class TrialHandler(DocumentHandler):
    """``/api/v2/trial``."""

    @operation(
        Operation(
            "Say whether a document's job would start now, and change nothing.",
            query=ValidateQuery,
            takes_document=True,
            answer=Trial,
            raises=(TooLarge,),
        )
    )
    async def post(self, query: ValidateQuery) -> Trial:
        """Try it in a copy of the cluster."""
        self.ctx.limits.lists.take(self.user.name)
        return await TrialService(self.ctx).trial(self.user, self.body(), query.filename, query.secrets_of)


class OneJobHandler(JobHandler):
    """``/api/v2/jobs/{job}``."""

    @operation(
        Operation("Everything about one job.", answer=openpai.OpenPaiDetail, ours=JobDetail, raises=(NoSuchJob,))
    )
    async def get(self, job: str) -> JobDetail | openpai.OpenPaiDetail:
        """The detail."""
        if self.wants_ours():
            return await self.jobs.detail(self.user, job)
        return await AttemptService(self.ctx).detail(self.user, job)

    @operation(
        Operation(
            "Delete a job that has ended.",
            audit="job.deleted",
            answer=Said,
            status=202,
            raises=(NoSuchJob, NotFinished),
        )
    )
    async def delete(self, job: str) -> Said:
        """Its document, history, logs and files go; its outputs in storages are kept."""
        return await self.jobs.delete(self.user, job)


class JobExecutionTypeHandler(JobHandler):
    """``/api/v2/jobs/{job}/executionType``."""

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
    async def put(self, job: str, wanted: ExecutionType) -> Said:
        """Stop a job, or let one that has ended run again."""
        self.say(wanted.value)
        return await self.jobs.execute(self.user, job, wanted.value)


class JobTagHandler(JobHandler):
    """``/api/v2/jobs/{job}/tag``."""

    @operation(Operation("Give a job a tag.", audit="job.tagged", body=TagBody, answer=Said, raises=(NoSuchJob,)))
    async def put(self, job: str, tag: TagBody) -> Said:
        """Tag it."""
        self.say(tag.value)
        return await self.jobs.tag(self.user, job, tag.value)

    @operation(
        Operation(
            "Remove a tag from a job.", audit="job.untagged", body=TagBody, answer=Said, raises=(NoSuchJob, NoSuchTag)
        )
    )
    async def delete(self, job: str, tag: TagBody) -> Said:
        """Untag it."""
        self.say(tag.value)
        return await self.jobs.untag(self.user, job, tag.value)


class JobConfigHandler(JobHandler):
    """``/api/v2/jobs/{job}/config``."""

    @operation(
        Operation(
            "The submitted document, byte for byte.",
            query=DocumentQuery,
            media_type="application/json",
            raises=(NoSuchJob,),
        )
    )
    async def get(self, job: str, query: DocumentQuery) -> None:
        """The document."""
        text, media_type, is_masked = await self.jobs.document(self.user, job, mask=query.masked)
        if is_masked:
            self.set_header("X-Pai-Masked", "true")
        self.write_document(text, media_type)
