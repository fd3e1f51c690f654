"""Submitting: a document of a user becomes a waiting job, or is only said to be fit for it."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass

from pai_backend.api import present
from pai_backend.api.context import ApiContext
from pai_backend.api.large_texts import LARGE_BYTES, in_turn
from pai_backend.api.services.documents import check_secrets, document_type, new_job, read
from pai_backend.api.services.jobs import JobService
from pai_backend.api.wire import Submitted, Validation
from pai_backend.auth.policy import may_read_secrets
from pai_backend.auth.users import User
from pai_backend.launch.directories import output_path
from pai_backend.model import address
from pai_backend.model.budget import BudgetUse, Level, near_text
from pai_backend.model.errors import (
    DocumentError,
    Fault,
    Forbidden,
    InvalidParameters,
    NoSuchJob,
    NoSuchStorage,
    NoVirtualCluster,
    Unavailable,
)
from pai_backend.model.ids import is_job_uid
from pai_backend.model.job import Job
from pai_backend.model.spec import DocumentWarning, JobSpec
from pai_backend.model.text import NO_TEXT, Text
from pai_backend.model.user_secret import used_names
from pai_backend.protocol import Document, place_of
from pai_backend.protocol.user_secrets import with_kept, with_users
from pai_backend.store.base import NewEvent
from pai_backend.store.submission_keys import SubmissionKey

log = logging.getLogger(__name__)

_NAME = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._~-]{1,255}", re.ASCII)  # Source: OpenPAI protocol v1, jobName
UNHEARD = DocumentWarning(
    code="notification-unused",
    path="$.extras.jobStatusChangeNotification",
    message=Text("you have not said how you want to be told, so you are not"),
    hint=Text("Say it by `pai notify add`, also while the job runs."),
)
MAX_KEY = 255
"""Characters of an Idempotency-Key."""
_READS_AS_UID = Text("has the form of a job uid (j and 16 hexadecimal digits), which is reserved")
_ANOTHER_NAME = Text("Choose another name.")


@dataclass(frozen=True)
class SubmitTerms:
    """What a request says about the document that it brings."""

    name: str | None = None
    """The job's name instead of the document's."""
    replace: bool = False
    """Whether jobs that are in the way are stopped and replaced."""
    address: str | None = None
    """The workspace name instead of the document's; empty: none."""
    key: str = ""
    """``Idempotency-Key``: the same submission again, with the same key, is answered with the same job."""
    secrets_of: str | None = None
    """A job of the user's whose secrets take the place of masked values."""


class SubmissionService:
    """Takes documents of users."""

    def __init__(self, ctx: ApiContext) -> None:
        self._ctx = ctx

    async def submit(self, user: User, text: bytes, filename: str, terms: SubmitTerms) -> Submitted:
        """Take a document and store a waiting job; raises as :meth:`create`."""
        job = await self.create(user, text, filename, terms)
        output = output_path(job, self._ctx.task_reach.task_fs_uri)
        shown = present.detail(job, self._ctx.site, self._ctx.gateway(), address=job.spec.address, output=output)
        # Its values were validated a line above; doing it twice would cost a tenth of the whole request.
        return Submitted.model_construct(**dict(shown), status=202, message=f"job {job.name} is submitted")

    async def create(self, user: User, text: bytes, filename: str, terms: SubmitTerms) -> Job:
        """Take a document and store a waiting job; with ``replace`` in the place of the one that has its name.

        Raises DocumentError, InvalidParameters (bad ``terms``), NoSuchJob (``secrets_of``), NoVirtualCluster, Forbidden
        (a virtual cluster, or no account for their tasks), NoSuchStorage, NameTaken, AddressTaken.
        """
        document, warnings = await self.read_new(user, text, filename, terms.secrets_of)
        if terms.name is None:
            _check_name(document)
        spec = _addressed(_renamed(document.spec, terms.name), terms.address)
        key = _submission_key(terms, text, filename)
        await self._ctx.need_account(user)
        job = new_job(user.name, spec, warnings, self._ctx.clock())
        submitted = {"user": user.name, "name": spec.name, "notify": list(spec.notify)}
        stored = await self._ctx.store.jobs.submit(
            job,
            text,
            filename,
            document_type(filename, text),
            [NewEvent("job.submitted", submitted)],
            secrets=document.secrets,
            replace=terms.replace,
            key=key,
        )
        await self._note_use(user, document)
        return stored

    async def validate(self, user: User, text: bytes, filename: str, secrets_of: str | None = None) -> Validation:
        """Read a document and say what it is or what is wrong with it; nothing is stored."""
        try:
            document, warnings = await self.read_new(user, text, filename, secrets_of)
            _check_name(document)
        except (DocumentError, NoVirtualCluster, Forbidden, NoSuchStorage, NoSuchJob) as error:
            errors = error.errors or (Fault(message=error.message, hint=error.hint),)
            return Validation(valid=False, dialect=None, name=None, warnings=(), errors=errors, spec=None)
        return Validation(
            valid=True,
            dialect=document.dialect,
            name=document.spec.name,
            warnings=warnings,
            errors=(),
            spec=document.spec,
        )

    async def read_new(
        self, user: User, text: bytes, filename: str, secrets_of: str | None
    ) -> tuple[Document, tuple[DocumentWarning, ...]]:
        """As :func:`read`, for a document that is submitted, with the secrets that it takes of the user.

        Its masked values are those of an earlier job. Raises DocumentError where a value is masked and that job has
        none, and for a secret that the user does not have; NoSuchJob when the job is not the user's.
        """
        document, warnings = await read(self._ctx, user, text, filename)
        if document.spec.notify and not await self._ctx.store.notifications.of_user(user.name):
            warnings += (UNHEARD,)
        warnings += budget_warnings(await self._ctx.budgets.uses(), user.name, document.spec)
        own = await self._unmasked(user, document, secrets_of)
        return await self._with_secrets(user, own), warnings

    async def _unmasked(self, user: User, document: Document, secrets_of: str | None) -> Document:
        if secrets_of is None:
            return with_kept(document)
        job = await JobService(self._ctx).find(user, secrets_of)
        if not may_read_secrets(user, job):
            raise NoSuchJob(
                Text("You have no job {secrets_of}.", secrets_of=repr(secrets_of[:300])),
                hint=Text("`pai list` shows the names of your jobs."),
            )
        kept = await self._ctx.store.jobs.secrets(job.uid)
        return with_kept(document, kept, job.spec.env)

    async def _with_secrets(self, user: User, document: Document) -> Document:
        """The document with the values of the secrets that it takes of the user.

        Raises DocumentError with the place of each that the user does not have.
        """
        names = used_names(document.users_secrets)
        if not names:
            return document
        values = await self._ctx.store.user_secrets.values(user.name, names)
        lacks_some = len(values) < len(names)
        kept = await self._ctx.store.user_secrets.list(user.name) if lacks_some else ()

        def whole() -> Document:
            filled = with_users(document, values, [each.name for each in kept])
            check_secrets(filled)
            return filled

        # The place of a fault is looked for in the text.
        return await in_turn(whole) if len(document.source) > LARGE_BYTES else whole()

    async def _note_use(self, user: User, document: Document) -> None:
        """Note that a submission took its secrets. What fails here does not undo the submission."""
        names = used_names(document.users_secrets)
        if not names:
            return
        try:
            await self._ctx.store.user_secrets.used(user.name, names, self._ctx.clock())
        except Unavailable as error:
            log.warning("the use of secrets of %s is not noted: %s", user.name, error.message)


def budget_warnings(uses: Sequence[BudgetUse], user: str, spec: JobSpec) -> tuple[DocumentWarning, ...]:
    """Of the budgets that a job of this user concerns and that are nearly used, or used up."""
    return tuple(
        DocumentWarning(
            code="budget-used-up" if each.level is Level.USED_UP else "budget-near",
            message=near_text(each),
            hint=Text("`pai budget list` shows the budgets that concern you."),
        )
        for each in uses
        if each.level is not Level.OK and each.claim.concerns(user, spec)
    )


def _check_name(document: Document) -> None:
    """Refuse a name that reads as another job's uid. Raises DocumentError."""
    if not is_job_uid(document.spec.name):
        return
    field = "name" if document.dialect.is_v2 else "jobName"
    line, column = place_of(document, (field,)) or (None, None)
    fault = Fault(
        path=f"$.{field}",
        message=Text("{field} {wrong}", field=field, wrong=_READS_AS_UID),
        line=line,
        column=column,
        hint=_ANOTHER_NAME,
    )
    raise DocumentError(fault.message, errors=[fault], hint=_ANOTHER_NAME)


def _renamed(spec: JobSpec, name: str | None) -> JobSpec:
    if name is None:
        return spec
    rule = Text("may hold letters, digits, and . _ ~ -, at most 255 of them, and is not . or ..")
    wrong = rule if not _NAME.fullmatch(name) else NO_TEXT
    if wrong or is_job_uid(name):
        fault = Fault(path="?name", message=Text("name {wrong}", wrong=wrong or _READS_AS_UID), hint=_ANOTHER_NAME)
        raise InvalidParameters(fault.message, errors=[fault], hint=fault.hint)
    return spec.model_copy(update={"name": name})


def _addressed(spec: JobSpec, name: str | None) -> JobSpec:
    if name is None:
        return spec
    if name and not address.is_address(name):
        fault = Fault(
            path="?address", message=Text("address may hold {allowed}", allowed=address.ALLOWED), hint=_ANOTHER_NAME
        )
        raise InvalidParameters(fault.message, errors=[fault], hint=fault.hint)
    return spec.model_copy(update={"address": name})


def _submission_key(terms: SubmitTerms, text: bytes, filename: str) -> SubmissionKey | None:
    if not terms.key:
        return None
    if not terms.key.isascii() or not terms.key.isprintable() or len(terms.key) > MAX_KEY:
        raise InvalidParameters(
            Text("An Idempotency-Key is printable ASCII of at most {most} characters.", most=MAX_KEY)
        )
    said = repr((terms.name, terms.replace, terms.address, filename))
    said += repr(terms.secrets_of) if terms.secrets_of is not None else ""
    return SubmissionKey.of(terms.key, text, said.encode("utf-8", "surrogatepass"))
