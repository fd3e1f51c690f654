"""Submitting, finding, listing and stopping jobs."""

from __future__ import annotations

import asyncio
import re
import secrets
from datetime import datetime

from pai_backend.api import present
from pai_backend.api.context import ApiContext
from pai_backend.api.queries import ListQuery
from pai_backend.api.wire import Detail, JobList, JobPage, Said, Submitted, Validation
from pai_backend.auth.policy import may_change, may_see
from pai_backend.auth.users import User
from pai_backend.launch.jupyter import open_listener_warnings
from pai_backend.lifecycle.rerun import fresh_tasks
from pai_backend.model.alias import job_alias
from pai_backend.model.errors import (
    DocumentError,
    Fault,
    Forbidden,
    InvalidParameters,
    NoSuchJob,
    NoVirtualCluster,
)
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Job
from pai_backend.model.spec import DocumentWarning, JobSpec
from pai_backend.protocol import Document, read_document
from pai_backend.protocol.locate import locate
from pai_backend.store.base import JobFilter, NewEvent
from pai_backend.validation import nearest

LARGE_DOCUMENT_BYTES = 32_768  # above this, reading takes long enough (over 5 ms) to keep it off the event loop
_NAME = re.compile(r"[A-Za-z0-9._~-]{1,255}", re.ASCII)  # Source: OpenPAI protocol v1, jobName
MEDIA_TYPES = {"json": "application/json", "yaml": "application/yaml", "yml": "application/yaml"}


class JobService:
    """Jobs as users see and change them."""

    def __init__(self, ctx: ApiContext) -> None:
        self._ctx = ctx

    async def submit(self, user: User, text: bytes, name: str | None, filename: str, media_type: str) -> Submitted:
        """Take a document and store a waiting job.

        Raises DocumentError, InvalidParameters (a bad ``name``), NoVirtualCluster, NameTaken.
        """
        document = await self._read(text, filename)
        spec = _renamed(document.spec, name)
        self._check_virtual_cluster(document)
        job = new_job(user.name, spec, _warnings(document), self._ctx.clock())
        events = [NewEvent("job.submitted", {"user": user.name, "name": spec.name})]
        job = await self._ctx.store.submit(job, text, filename, _media_type(media_type, filename), events)
        shown = present.detail(job, self._ctx.site, self._ctx.gateway())
        # Its values were validated a line above; doing it twice would cost a tenth of the whole request.
        return Submitted.model_construct(**dict(shown), status=202, message=f"job {job.name} is submitted")

    async def validate(self, text: bytes, filename: str) -> Validation:
        """Read a document and say what it is or what is wrong with it; nothing is stored."""
        try:
            document = await self._read(text, filename)
            self._check_virtual_cluster(document)
        except (DocumentError, NoVirtualCluster) as error:
            errors = error.errors or (Fault(message=error.message, hint=error.hint),)
            return Validation(valid=False, dialect=None, name=None, warnings=(), errors=errors, spec=None)
        return Validation(
            valid=True,
            dialect=document.dialect,
            name=document.spec.name,
            warnings=_warnings(document),
            errors=(),
            spec=document.spec,
        )

    async def find(self, user: User, name: str) -> Job:
        """The job of that id, alias, uid or own name. Raises NoSuchJob, also when the user may not see it."""
        job = await self._ctx.store.find(name, user.name)
        if not may_see(user, job):
            # In the store's own words, so that nobody can tell a hidden job from one that is not there.
            raise NoSuchJob(f"There is no job {name[:300]!r}.", hint="`pai list` shows the names of your jobs.")
        return job

    async def detail(self, user: User, name: str) -> Detail:
        """Everything about one job. Raises NoSuchJob."""
        return present.detail(await self.find(user, name), self._ctx.site, self._ctx.gateway())

    async def stop(self, user: User, name: str) -> Said:
        """Ask a job to end. Idempotent. Raises NoSuchJob, Forbidden."""
        job = await self.find(user, name)
        if not may_change(user, job):
            raise Forbidden(f"Only {job.user} may stop the job {job.id}.", hint="Ask its owner.")
        await self._ctx.store.request_stop(job.uid, user.name, self._ctx.clock(), "")
        return Said(status=202, message=f"job {job.name} is asked to stop")

    async def document(self, user: User, name: str) -> tuple[bytes, str]:
        """The submitted bytes and their media type. Raises NoSuchJob."""
        job = await self.find(user, name)
        text, _filename, media_type = await self._ctx.store.document(job.uid)
        return text, media_type

    async def list(self, user: User, query: ListQuery) -> JobList:
        """A page of the jobs the user may see. Raises InvalidParameters for an unknown order."""
        owner = query.username if user.admin else user.name
        if not user.admin and query.username not in (None, user.name):
            return JobList(JobPage(total_count=0, data=()) if query.with_total_count else ())
        rows, total = await self._ctx.store.list_jobs(_filter(query, owner))
        data = tuple(present.summary(row) for row in rows)
        return JobList(JobPage(total_count=total, data=data) if query.with_total_count else data)

    async def _read(self, text: bytes, filename: str) -> Document:
        if len(text) > LARGE_DOCUMENT_BYTES:
            return await asyncio.to_thread(read_document, text, filename or None)
        return read_document(text, filename or None)

    def _check_virtual_cluster(self, document: Document) -> None:
        wanted, known = document.spec.virtual_cluster, self._ctx.site.virtual_clusters
        if wanted in known:
            return
        like = nearest(wanted, known)
        message = f"There is no virtual cluster {wanted}; there are: {', '.join(known)}."
        hint = f"Did you mean {like}?" if like else f"Set virtualCluster to one of: {', '.join(known)}."
        line, column = _place(document, "virtualCluster")
        fault = Fault(path="$.virtualCluster", message=message, line=line, column=column, hint=hint)
        raise NoVirtualCluster(message, errors=[fault], hint=hint)


def new_job(user: str, spec: JobSpec, warnings: tuple[DocumentWarning, ...], now: datetime) -> Job:
    """A waiting job with the waiting tasks of its first attempt, under a new uid."""
    uid = JobUid(f"j{secrets.token_hex(8)}")
    tasks = fresh_tasks(uid, spec, attempt=0)
    return Job(
        uid=uid,
        name=spec.name,
        user=user,
        alias=job_alias(spec.name),
        spec=spec,
        warnings=warnings,
        tasks=tasks,
        submitted_at=now,
    )


def _warnings(document: Document) -> tuple[DocumentWarning, ...]:
    return (*document.warnings, *open_listener_warnings(document.spec))


def _place(document: Document, key: str) -> tuple[int, int] | tuple[None, None]:
    """Line and column of a top-level value; none for a default, which stands nowhere."""
    located = locate(document.source.decode())
    value = located.root.value if located.root is not None else None
    return located.positions.line_column(value[key].at) if isinstance(value, dict) and key in value else (None, None)


def _renamed(spec: JobSpec, name: str | None) -> JobSpec:
    if name is None:
        return spec
    if not _NAME.fullmatch(name):
        fault = Fault(
            path="?name",
            message="name may hold letters, digits, and . _ ~ -, at most 255 of them.",
            hint="Choose another name.",
        )
        raise InvalidParameters(fault.message, errors=[fault], hint=fault.hint)
    return spec.model_copy(update={"name": name})


def _media_type(given: str, filename: str) -> str:
    """The document's own media type: as sent, unless the client only said what every client says."""
    if given and given not in ("application/octet-stream", "application/x-www-form-urlencoded"):
        return given
    return MEDIA_TYPES.get(filename.rpartition(".")[2].lower(), "application/json")


def _filter(query: ListQuery, owner: str | None) -> JobFilter:
    field, _, direction = query.order.partition(",")
    return JobFilter(
        user=owner,
        states=query.states,
        virtual_clusters=(query.vc,) if query.vc is not None else (),
        keyword=query.keyword,
        order=field,
        descending=direction != "ASC",
        offset=query.offset,
        limit=query.limit,
    )
