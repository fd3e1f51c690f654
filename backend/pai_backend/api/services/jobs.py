"""Submitting, finding, listing and stopping jobs."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from pai_backend.api import present
from pai_backend.api.context import ApiContext, CellRules
from pai_backend.api.large_texts import LARGE_BYTES, in_turn
from pai_backend.api.services.rule_warnings import rule_warning
from pai_backend.api.services.secrets import SecretService, check_secrets
from pai_backend.api.staleness import staleness_of
from pai_backend.api.wire import JobDetail, Said, Submitted, Validation
from pai_backend.auth.identity import user_of
from pai_backend.auth.policy import may_change, may_read_secrets, may_see
from pai_backend.auth.users import User
from pai_backend.launch.directories import TaskReach, directories, output_path
from pai_backend.launch.jupyter import open_listener_warnings
from pai_backend.lifecycle.durations import end_of
from pai_backend.lifecycle.retry import fresh_tasks
from pai_backend.model import address
from pai_backend.model.alias import job_alias
from pai_backend.model.errors import (
    DocumentError,
    Fault,
    Forbidden,
    InvalidParameters,
    NoSuchJob,
    NoSuchStorage,
    NoVirtualCluster,
    ReadOnlyJob,
)
from pai_backend.model.ids import JobUid, is_job_uid
from pai_backend.model.job import Desired, Job
from pai_backend.model.spec import DocumentWarning, JobSpec
from pai_backend.model.text import NO_TEXT, Text
from pai_backend.model.validation import nearest
from pai_backend.model.vc_rules import Breach, breaches
from pai_backend.protocol import Document, place_of, read_document
from pai_backend.protocol.kept_secrets import with_kept
from pai_backend.protocol.mask import masked
from pai_backend.scheduling.jobs.quota import misfits
from pai_backend.storage.reach import TeamMount
from pai_backend.store import deeds
from pai_backend.store.base import NewEvent
from pai_backend.store.submission_keys import SubmissionKey

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
MEDIA_TYPES = {"json": "application/json", "yaml": "application/yaml", "yml": "application/yaml"}


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


class JobService:
    """Jobs as users see and change them."""

    def __init__(self, ctx: ApiContext) -> None:
        self._ctx = ctx
        self._secrets = SecretService(ctx)

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
        await self._secrets.note_use(document, user)
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
        shown = present.detail(job, self._ctx.site, self._ctx.gateway(), clocks.get(job.uid), doubt, held, end, output)
        warning = "" if job.state.final else await rule_warning(self._ctx.store, job)
        return shown.model_copy(update={"rule_warning": warning}) if warning else shown

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
                await self.read(owner, text, filename)
            except (DocumentError, NoVirtualCluster, NoSuchStorage) as error:
                message = Text("The job {id} cannot run again as it is: {error}", id=job.id, error=error.message)
                raise ReadOnlyJob(message, errors=error.errors, hint=error.hint) from None
            await self._ctx.need_account(owner)
        await self._ctx.store.jobs.request_restart(job.uid, user.name, self._ctx.clock())
        what = "is restarted" if job.state.final else "is started already"
        return Said(status=202, message=f"job {job.name} {what}")

    async def stop(self, user: User, name: str) -> Said:
        """Ask a job to end. Idempotent. Raises NoSuchJob, Forbidden."""
        job = await self.own(user, name, "stop")
        await self._ctx.store.jobs.request_stop(job.uid, user.name, self._ctx.clock(), "")
        return Said(status=202, message=f"job {job.name} is asked to stop")

    async def delete(self, user: User, name: str) -> Said:
        """Delete a job that has ended, for good. Raises NoSuchJob, Forbidden, NotFinished."""
        job = await self.own(user, name, "delete")
        gone = await self._ctx.store.deletion.request(job.uid, user.name, self._ctx.clock())
        when = "is deleted" if gone else "is deleted as soon as the engine has removed its tasks"
        return Said(status=202, message=f"job {job.name} {when}; its outputs in storages are kept")

    async def tag(self, user: User, name: str, tag: str) -> Said:
        """Give a job a tag. Idempotent. Raises NoSuchJob, Forbidden, InvalidParameters when it has too many."""
        job = await self.own(user, name, "tag")
        await self._ctx.store.jobs.tag(job.uid, tag)
        return Said(status=200, message=f"tag {tag} added to job {job.name}")

    async def untag(self, user: User, name: str, tag: str) -> Said:
        """Take a tag away. Raises NoSuchJob, Forbidden, NoSuchTag."""
        job = await self.own(user, name, "untag")
        await self._ctx.store.jobs.untag(job.uid, tag)
        return Said(status=200, message=f"tag {tag} removed from job {job.name}")

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

    async def read_new(
        self, user: User, text: bytes, filename: str, secrets_of: str | None
    ) -> tuple[Document, tuple[DocumentWarning, ...]]:
        """As :meth:`read`, for a document that is submitted, with the secrets that it takes of the user.

        Its masked values are those of an earlier job. Raises DocumentError where a value is masked and that job has
        none, and for a secret that the user does not have; NoSuchJob when the job is not the user's.
        """
        document, warnings = await self.read(user, text, filename)
        if document.spec.notify and not await self._ctx.store.notifications.of_user(user.name):
            warnings += (UNHEARD,)
        warnings += await self._ctx.budgets.warnings(user.name, document.spec)
        own = await self._unmasked(user, document, secrets_of)
        return await self._secrets.put_into(own, user), warnings

    async def _unmasked(self, user: User, document: Document, secrets_of: str | None) -> Document:
        if secrets_of is None:
            return with_kept(document)
        job = await self.find(user, secrets_of)
        if not may_read_secrets(user, job):
            raise NoSuchJob(
                Text("You have no job {secrets_of}.", secrets_of=repr(secrets_of[:300])),
                hint=Text("`pai list` shows the names of your jobs."),
            )
        kept = await self._ctx.store.jobs.secrets(job.uid)
        return with_kept(document, kept, job.spec.env)

    async def read(self, user: User, text: bytes, filename: str) -> tuple[Document, tuple[DocumentWarning, ...]]:
        """A document that this user may submit, and what is odd about it: read and looked at off the event loop."""

        def read() -> tuple[Document, tuple[DocumentWarning, ...]]:
            document = read_document(text, filename or None)
            if not document.users_secrets:  # else a submission has them first
                check_secrets(document)
            if not self._ctx.can_stage:
                check_staging(user, document, self._ctx.default_fs_uri)
            check_cells(user, document, self._ctx.virtual_clusters, self._ctx.rules)
            check_storages(user, document, self._ctx.files.mounts if self._ctx.files is not None else ())
            check_outputs(document, self._ctx.task_reach)
            return document, (*document.warnings, *open_listener_warnings(document.spec))

        # Anchors of YAML may make much of little text.
        if len(text) > LARGE_BYTES or (b"&" in text and not _begins_as_json(text)):
            return await in_turn(read)
        return read()


def check_storages(user: User, document: Document, mounts: Sequence[TeamMount]) -> None:
    """Refuse a team storage that is not there, or not the user's: both look alike. Raises NoSuchStorage."""
    granted = [mount.name for mount in mounts if mount.granted_to(user.name)]
    for wanted in document.spec.storages:
        if wanted.name in granted:
            continue
        like = nearest(wanted.name, granted)
        message = Text("There is no storage {wanted} for {user}.", wanted=wanted.name, user=user.name)
        known = (
            Text("You may use: {granted}.", granted=", ".join(granted))
            if granted
            else Text("Ask the administrator for storage.mounts.")
        )
        hint = Text("Did you mean {like}?", like=like) if like else known
        line, column = place_of(document, ("extras", "storages")) or (None, None)
        fault = Fault(path="$.extras.storages", message=message, line=line, column=column, hint=hint)
        raise NoSuchStorage(message, errors=[fault], hint=hint)


def check_staging(user: User, document: Document, default_fs_uri: str) -> None:
    """Refuse what would have to be fetched or made outside of a task, where nothing can. Raises DocumentError.

    An outputDir that the document does not name is below the default file system, and has to be made as well.
    """
    spec = document.spec
    named = directories(new_job(user.name, spec, (), datetime.now(UTC)), default_fs_uri)
    for field, uri in (("codeDir", named.code_dir), ("outputDir", named.output_dir)):
        if not uri or (field == "outputDir" and uri.startswith("/")):
            continue
        message = Text(
            "{field} has to be fetched or made outside of the tasks, and no image for that is configured", field=field
        )
        hint = Text("Leave it out, or ask the administrator to set kubernetes.pods.inputs_image.")
        line, column = place_of(document, (field,)) or (None, None)
        fault = Fault(path=f"$.{field}", message=message, line=line, column=column, hint=hint)
        raise DocumentError(message, errors=[fault], hint=hint)


def check_outputs(document: Document, reach: TaskReach) -> None:
    """Refuse what would lose its results, for tasks do not reach where it leaves them. Raises NoSuchStorage."""
    lost = reach.lost(document.spec)
    if lost is None:
        return
    field, words = lost
    why = (
        Text("is a path in its container, which is removed with it")
        if words.startswith("/") or words.startswith("file:")
        else Text("is the default file system, a directory of the backend's machine, which tasks do not reach")
    )
    message = Text("What the job leaves at {place} would be lost: that {why}.", place=words, why=why)
    hint = Text(
        "Name a storage that tasks reach, such as s3://… or hdfs://… or a team storage; or "
        "ask the administrator to set storage.default_uri to one, or to a directory that "
        "kubernetes.pods.volumes gives to all tasks."
    )
    line, column = (place_of(document, (field,)) if field else None) or (None, None)
    fault = Fault(path=f"$.{field}" if field else "$", message=message, line=line, column=column, hint=hint)
    raise NoSuchStorage(message, errors=[fault], hint=hint)


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


def document_type(filename: str, text: bytes) -> str:
    """The document's media type, by its name or its text. What a client says it is could make a page of it."""
    by_content = "application/json" if _begins_as_json(text) else "application/yaml"
    return MEDIA_TYPES.get(filename.rpartition(".")[2].lower(), by_content)


def _begins_as_json(text: bytes) -> bool:
    return text.removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b"{", b"/"))


def check_cells(user: User, document: Document, known: Sequence[str], rules: CellRules) -> None:
    """Refuse what can never start, or not for this user.

    Raises NoVirtualCluster, Forbidden for a virtual cluster that is not granted, DocumentError for kinds of cells that
    are not there, for a gang that is larger than the quota, and for what the virtual cluster's rules do not allow.
    """
    _check_virtual_cluster(user, document, known, rules)
    _check_rules(document, rules)
    if rules.config is None:
        return
    wrong = misfits(document.spec, rules.config, rules.sizing)
    if wrong:
        faults = [_fault(document, each.path, each.message, each.hint) for each in wrong]
        raise DocumentError(wrong[0].message, errors=faults, hint=wrong[0].hint)


def _check_virtual_cluster(user: User, document: Document, known: Sequence[str], rules: CellRules) -> None:
    wanted = document.spec.virtual_cluster
    path = ("defaults", "virtualCluster") if document.dialect.is_v2 else ("virtualCluster",)
    if wanted not in known:
        like = nearest(wanted, known)
        message = Text(
            "There is no virtual cluster {wanted}; there are: {known}.", wanted=wanted, known=", ".join(known)
        )
        hint = (
            Text("Did you mean {like}?", like=like)
            if like
            else Text("Set virtualCluster to one of: {known}.", known=", ".join(known))
        )
        raise NoVirtualCluster(message, errors=[_fault(document, path, message, hint)], hint=hint)
    if not rules.granted(user, wanted):
        message = Text("{user} may not use the virtual cluster {wanted}.", user=user.name, wanted=wanted)
        usable = ", ".join(name for name in known if rules.granted(user, name)) or "none"
        hint = Text("Use one of: {usable}; or ask an administrator or its manager for a grant.", usable=usable)
        raise Forbidden(message, errors=[_fault(document, path, message, hint)], hint=hint)


def _check_rules(document: Document, rules: CellRules) -> None:
    """Refuse what the rules of the virtual cluster do not allow. Raises DocumentError."""
    kept = rules.vc_rules.get(document.spec.virtual_cluster)
    wrong = breaches(document.spec, kept.rules) if kept is not None else []
    if wrong:
        faults = [_fault(document, _path_of(document, each), each.message, each.hint) for each in wrong]
        raise DocumentError(wrong[0].message, errors=faults, hint=wrong[0].hint)


def _path_of(document: Document, breach: Breach) -> tuple[str, ...]:
    """Where the document says what is not allowed; where it should be said that it does not say."""
    spec, is_v2, scheduler = document.spec, document.dialect.is_v2, ("extras", "hivedScheduler")
    if breach.rule == "priorities":
        return (*scheduler, "jobPriorityClass")
    if breach.rule == "images":
        return ("taskRoles", breach.role, "dockerImage") if is_v2 else ("image",)
    named = spec.role(breach.role).sku_type or is_v2
    return (*scheduler, "taskRoles", breach.role, "skuType") if named else ("gpuType",)


def _fault(document: Document, path: tuple[str, ...], message: str, hint: str) -> Fault:
    line, column = place_of(document, path) or (None, None)
    return Fault(path=f"$.{'.'.join(path)}", message=message, line=line, column=column, hint=hint)
