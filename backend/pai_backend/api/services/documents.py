"""Documents that users submit: read, and refused where this backend or this user cannot run them."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime

from pai_backend.access.document_keys import document_keys
from pai_backend.api.context import ApiContext, CellRules
from pai_backend.api.large_texts import LARGE_BYTES, in_turn
from pai_backend.auth.users import User
from pai_backend.launch.directories import TaskReach, directories
from pai_backend.launch.jupyter import open_listener_warnings
from pai_backend.lifecycle.retry import fresh_tasks
from pai_backend.model.alias import job_alias
from pai_backend.model.errors import DocumentError, Fault, Forbidden, InvalidParameters, NoSuchStorage, NoVirtualCluster
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Job
from pai_backend.model.pod_choice import PodChoice
from pai_backend.model.pod_settings import PodSettings
from pai_backend.model.scrub import texts
from pai_backend.model.spec import DocumentWarning, JobSpec
from pai_backend.model.text import Text
from pai_backend.model.user_secret import LONGEST
from pai_backend.model.validation import nearest
from pai_backend.model.vc_rules import Breach, breaches
from pai_backend.protocol import Document, place_of, read_document
from pai_backend.protocol.plugins import KEY as PLUGINS
from pai_backend.protocol.tree import path_text
from pai_backend.scheduling.jobs.quota import misfits
from pai_backend.storage.reach import TeamMount

MEDIA_TYPES = {"json": "application/json", "yaml": "application/yaml", "yml": "application/yaml"}
PODS_UNUSED = DocumentWarning(
    code="kubernetes-unused",
    path="$.extras.jupyterPai.kubernetes",
    message=Text("kubernetes has no effect: the tasks of this backend are not pods"),
    hint=Text("Leave it in for backends on Kubernetes, or remove it."),
)
_NONE_ALLOWED = Text("Remove it, or ask the administrator to list the name in kubernetes.pods.allowed.")


async def read(ctx: ApiContext, user: User, text: bytes, filename: str) -> tuple[Document, tuple[DocumentWarning, ...]]:
    """A document that this user may submit, and what is odd about it: read and looked at off the event loop."""

    def checked() -> tuple[Document, tuple[DocumentWarning, ...]]:
        document = read_document(text, filename or None)
        if not document.users_secrets:  # else a submission has them first
            check_secrets(document)
        if not ctx.can_stage:
            check_staging(user, document, ctx.default_fs_uri)
        check_cells(user, document, ctx.virtual_clusters, ctx.rules)
        check_storages(user, document, ctx.files.mounts if ctx.files is not None else ())
        check_outputs(document, ctx.task_reach)
        return document, (*document.warnings, *open_listener_warnings(document.spec), *check_pods(document, ctx.pods))

    # Anchors of YAML may make much of little text.
    if len(text) > LARGE_BYTES or (b"&" in text and not _begins_as_json(text)):
        return await in_turn(checked)
    return checked()


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
        raise NoSuchStorage(message, errors=[_fault(document, ("extras", "storages"), message, hint)], hint=hint)


def check_pods(document: Document, pods: PodSettings | None) -> tuple[DocumentWarning, ...]:
    """Refuse what the administrator does not let documents choose of pods. Raises DocumentError.

    Where tasks are no pods (``pods`` is None), a warning says that the choice has no effect.
    """
    choice, place = document.spec.kubernetes, ("extras", "jupyterPai", "kubernetes")
    if choice == PodChoice():
        return ()
    if pods is None:
        return (PODS_UNUSED,)
    faults = []
    for wrong in pods.of_vc(document.spec.virtual_cluster).allowed.refused(choice):
        message = Text("{field} {name} is not allowed here", field=wrong.field, name=wrong.name)
        allowed = ", ".join(wrong.allowed)
        hint = Text("Allowed are: {allowed}.", allowed=allowed) if allowed else _NONE_ALLOWED
        path = (*place, wrong.field, *(() if wrong.index is None else (wrong.index,)))
        line, column = place_of(document, path) or (None, None)
        faults.append(Fault(path=path_text(path), message=message, line=line, column=column, hint=hint))
    if faults:
        raise DocumentError(faults[0].message, errors=faults, hint=faults[0].hint)
    return ()


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
        raise DocumentError(message, errors=[_fault(document, (field,), message, hint)], hint=hint)


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
    fault = _fault(document, (field,), message, hint) if field else Fault(path="$", message=message, hint=hint)
    raise NoSuchStorage(message, errors=[fault], hint=hint)


def check_secrets(document: Document) -> None:
    """Refuse more secrets than logs can be searched for, and invalid keys of an ssh plugin. Raises DocumentError."""
    _check_size(document)
    _check_keys(document)


def _check_size(document: Document) -> None:
    """Refuse more secrets than logs can be searched for at a bounded cost. Raises DocumentError."""
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts(document.secrets))
    if size <= LONGEST:
        return
    message = Text(
        "the secrets have {size} bytes together; at most {longest} are kept out of logs", size=size, longest=LONGEST
    )
    hint = Text("Put large files on a storage that only you can read, and their key into secrets.")
    fault = _fault(document, ("secrets",), message, hint)
    raise DocumentError(Text("secrets: {message}", message=message), errors=[fault], hint=hint)


def _check_keys(document: Document) -> None:
    """Refuse an invalid public key of an ssh plugin, secrets put in. Raises DocumentError."""
    try:
        for options in {role.ssh.authorized_keys: role.ssh for role in document.spec.task_roles}.values():
            document_keys(options, document.secrets)
    except InvalidParameters as error:
        path = ("extras", PLUGINS)
        line, column = place_of(document, path) or (None, None)
        fault = Fault(path=path_text(path), message=error.message, line=line, column=column, hint=error.hint)
        raise DocumentError(error.message, errors=[fault], hint=error.hint) from None


def _fault(document: Document, path: tuple[str, ...], message: str, hint: str) -> Fault:
    line, column = place_of(document, path) or (None, None)
    return Fault(path=f"$.{'.'.join(path)}", message=message, line=line, column=column, hint=hint)
