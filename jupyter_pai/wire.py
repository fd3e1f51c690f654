"""The shapes of ``docs/rest.md`` as the front reads them: types only, nothing at run time.

Kept as ``TypedDict`` because the command line may not pay for importing pydantic on each call.
"""

from __future__ import annotations

from typing import NotRequired, TypedDict

FINAL_STATES = frozenset({"STOPPED", "SUCCEEDED", "FAILED"})
"""States after which nothing changes. Source: pai_backend.model.job.State.final (a test compares them)."""

ACTIVE_STATES = ("WAITING", "RUNNING", "STOPPING")
"""All other states, in the order a job passes through them."""


class JobWarning(TypedDict):
    """Something the user should know that stopped nothing."""

    code: str
    message: str
    path: str
    hint: str


class TaskExit(TypedDict):
    """How a task ended."""

    status: int
    code: int | None
    signal: int | None
    reason: str
    message: str
    phrase: str
    remedy: str


class Task(TypedDict):
    """One task of the current attempt."""

    uid: str
    role: str
    index: int
    alias: str
    attempt: int
    state: str
    phase: str
    node: str | None
    address: str | None
    gpus: list[int]
    gpuType: str
    ports: dict[str, list[int]]
    startedTime: str | None
    completedTime: str | None
    exit: TaskExit | None
    keptUntil: str | None
    sshCommand: str


class TaskRole(TypedDict):
    """The tasks of one role."""

    name: str
    taskStatuses: list[Task]


class Service(TypedDict):
    """A labelled port of a task, with its address."""

    label: str
    role: str
    index: int
    alias: str
    port: int | None
    url: str
    pathUrl: str
    state: str


class JobExit(TypedDict):
    """What decided the end of a job."""

    status: int
    message: str
    remedy: str
    role: str | None
    index: int | None


class _JobCommon(TypedDict):
    uid: str
    id: str
    name: str
    username: str
    alias: str
    state: str
    phase: str
    why: str
    virtualCluster: str
    submissionTime: str
    launchedTime: str | None
    completedTime: str | None
    retries: int
    totalTaskNumber: int
    totalGpuNumber: int
    exitStatus: int | None


class JobSummary(_JobCommon):
    """A row of the list."""

    warnings: int


class Idle(TypedDict):
    """The idle clock of a job with an ``idleTimeout``."""

    timeoutS: int
    since: str | None
    usedBy: str | None
    stopAt: str | None
    warned: bool
    unread: dict[str, str]
    sentence: str


class JobDetail(_JobCommon):
    """Everything about one job."""

    warnings: list[JobWarning]
    dialect: str
    description: NotRequired[str]
    image: str
    attempt: int
    stopReason: str
    exit: JobExit | None
    version: int
    sshCommand: str
    taskRoles: list[TaskRole]
    services: list[Service]
    idle: NotRequired[Idle | None]
    doubt: NotRequired[str]


class Deleted(TypedDict):
    """A job that is deleted."""

    message: str


class Released(TypedDict):
    """Which kept tasks are let go."""

    message: str
    tasks: list[str]


class MovedJob(TypedDict):
    """A job that has changed its place among the waiting jobs of its virtual cluster and priority, from 1."""

    id: str
    place: int
    was: int


class Moved(TypedDict):
    """Which jobs have changed places; none when they stood as asked already."""

    message: str
    jobs: list[MovedJob]


class JobEvent(TypedDict):
    """One line of a job's history."""

    job: str
    seq: int
    at: str
    type: str
    payload: dict[str, object]


class PositionedEvent(TypedDict):
    """An event of any job, and where to go on after it (opaque)."""

    position: str
    event: JobEvent


class SshEntry(TypedDict):
    """One login name of a job."""

    alias: str
    user: str
    role: str
    index: int
    state: str
    reachable: bool


class SshAnswer(TypedDict):
    """What a client needs to reach a job by SSH."""

    host: str
    port: int
    hostKeyAlias: str
    knownHosts: list[str]
    gatewayHostKey: str
    certAuthority: str
    entries: list[SshEntry]


class Ticket(TypedDict):
    """A one-time sign-in to a service."""

    url: str
    path_url: str
    expires_at: str


class FileEntry(TypedDict):
    """A file or directory of the default file system."""

    name: str
    kind: str
    size: int
    modified: str | None


class FileListing(TypedDict):
    """Entries of a directory."""

    path: str
    data: list[FileEntry]
    truncated: bool


class UploadState(TypedDict):
    """What became of an uploaded part."""

    path: str
    kept: int
    complete: bool


class Key(TypedDict):
    """A registered SSH public key."""

    fingerprint: str
    public_key: str
    comment: str
    expires_at: str | None


class FaultBody(TypedDict):
    """One fault of a document."""

    path: str
    message: str
    line: int | None
    column: int | None
    hint: str


class ValidationAnswer(TypedDict):
    """What reading a document without submitting it says."""

    valid: bool
    dialect: str | None
    name: str | None
    warnings: list[JobWarning]
    errors: list[FaultBody]


class Told(TypedDict):
    """A reason in words. ``estimate`` says what the time of the start rests on; empty when none is told."""

    sentence: str
    remedy: str
    estimate: str


class Holder(TypedDict):
    """A group that has what another needs."""

    group: str
    user: str
    vc: str
    priority: int
    gpus: int
    until: str | None


class Change(TypedDict):
    """Something with which a job would start now."""

    kind: str
    leaf_type: str
    vc: str
    member: int
    before: int
    after: int
    nodes: list[str]
    detail: str


class Waiting(TypedDict):
    """Why a job waits for GPUs: what the fronts show of it. docs/scheduling.md describes all."""

    cause: str
    vc: str
    position: int
    waiting: int
    starts_at: str | None
    rests_on: list[str]
    holders: list[Holder]
    changes: list[Change]
    texts: dict[str, Told]


class Why(TypedDict):
    """Why a job waits, and since when that is known."""

    id: str
    state: str
    phase: str
    sentence: str
    waiting: Waiting | None
    asOf: str | None
    current: bool
    doubt: NotRequired[str]


class Info(TypedDict):
    """Which backend this is."""

    name: str
    version: str
    engine: str


def tasks_of(job: JobDetail) -> list[Task]:
    """All tasks of the current attempt, role by role."""
    return [task for role in job["taskRoles"] for task in role["taskStatuses"]]
