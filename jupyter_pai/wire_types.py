"""Made by tools/contract.py from the models of pai_backend.api; make contract writes it again."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypedDict


class AddressService(TypedDict):
    """A service that answers at a workspace name."""

    label: str
    url: str
    pathUrl: str


class AnnouncementWire(TypedDict):
    """What is announced."""

    text: str
    until: str | None
    by: str
    at: str
    noStartsFrom: str | None


class AuditEventWire(TypedDict):
    """One change or entry. `hash` covers the hash of the event before and all other fields: see `docs/audit.md`."""

    position: int
    at: str
    type: str
    user: str
    by: str
    source: str
    subject: str
    job: str | None
    detail: str
    token: str
    request: str
    result: str
    hash: str


class AuditPlace(TypedDict):
    """A place in the chain."""

    position: int
    hash: str


class AuthorityWire(TypedDict):
    """Who certifies users: lines for `TrustedUserCAKeys`, the one that signs now first."""

    keys: list[str]
    fingerprint: str


Basis: TypeAlias = Literal["declared", "history"]


class BookedFor(TypedDict):
    """A reservation that a group has to leave room for."""

    name: str
    gpus: int
    gpuType: str
    begins: str
    ends: str
    whom: str


class BookingWire(TypedDict):
    """GPUs of a virtual cluster that are reserved for a time."""

    id: str
    virtualCluster: str
    name: str
    gpus: int
    gpuType: str
    oneNode: bool
    begins: str
    ends: str
    users: list[str]
    groups: list[str]
    stops: list[str]
    isYours: bool
    madeAt: str
    madeBy: str
    mayRemove: bool


class CapReached(TypedDict):
    """A cap that would be exceeded; of a user when ``user`` is given, inside one virtual cluster when ``vc`` is."""

    vc: str
    user: str
    sweep: str
    tasks: int | None
    gpus: int | None
    jobs: int | None
    runningTasks: int
    runningGpus: int
    runningJobs: int
    never: bool


Cause: TypeAlias = Literal[
    "type",
    "quota",
    "shape",
    "cap",
    "bad-nodes",
    "linear",
    "port",
    "preempting",
    "kept",
    "reserved",
    "fragmented",
    "booked",
    "priority",
    "ahead",
]


class CellsOwned(TypedDict):
    """How many cells of one kind a virtual cluster owns; of a pinned cell 0 or 1."""

    cell: str
    before: int
    after: int


class CellsUseWire(TypedDict):
    """Cells of one type in one virtual cluster, or of one pinned cell."""

    leafType: str
    pinnedCell: str
    shapes: dict[str, int]
    owned: int
    guaranteed: int
    opportunistic: int
    reserved: int
    bad: int
    free: int


class CertificateWire(TypedDict):
    """A certificate that was issued."""

    serial: int
    user: str
    fingerprint: str
    principals: list[str]
    only: list[str]
    pty: bool
    job: str | None
    issuedAt: str
    expiresAt: str
    lastUsedAt: str | None
    lastUsedFrom: str


ChangeKind: TypeAlias = Literal[
    "type",
    "virtual-cluster",
    "fewer-tasks",
    "smaller-tasks",
    "opportunistic",
    "max-duration",
    "anywhere",
    "drop-label",
    "tolerate",
    "uncordon",
]


class Completion(TypedDict):
    """When a role decides its job. ``None`` switches a rule off (v1: null)."""

    minFailed: int | None
    minSucceeded: int | None


class DailyUsage(TypedDict):
    """Of each day of `days` the hours and what they cost."""

    gpuHours: list[float]
    cpuHours: list[float]
    cost: list[str] | None


Dialect: TypeAlias = Literal["openpai-v1", "qizhi", "scm", "openpai-v2", "openpai-v2-draft"]


class Event(TypedDict):
    """One line of a job's history; ``seq`` counts from 1 without gaps within a job."""

    job: str
    seq: int
    at: str
    type: str
    payload: dict[str, Any]


class FileEntry(TypedDict):
    """A file or directory of the default file system."""

    name: str
    kind: Literal["file", "directory"]
    size: int
    modified: str | None


class FileListing(TypedDict):
    """Entries of a directory, by name."""

    path: str
    data: list[FileEntry]
    truncated: bool


class Holder(TypedDict):
    """A group that has what another needs."""

    group: str
    user: str
    vc: str
    priority: int
    gpus: int
    until: str | None


class ImageAuth(TypedDict):
    """Credentials of a registry as the document gives them: texts may hold ``<% $secrets.x %>`` tags, never values."""

    username: str
    password: str
    registryUri: str


class IssuedCertificate(TypedDict):
    """A new certificate, with the line of its file."""

    serial: int
    user: str
    fingerprint: str
    principals: list[str]
    only: list[str]
    pty: bool
    job: str | None
    issuedAt: str
    expiresAt: str
    lastUsedAt: str | None
    lastUsedFrom: str
    certificate: str


class JobEffect(TypedDict):
    """A job that a change concerns."""

    job: str
    vc: str
    gpus: int
    groups: list[str]
    message: str
    already: bool


KeptBecause: TypeAlias = Literal["in-use", "runtime", "waiting", "offered", "not-fetched"]


class KeyWire(TypedDict):
    """A registered SSH public key."""

    fingerprint: str
    publicKey: str
    comment: str
    addedAt: str
    name: str
    expiresAt: str | None
    job: str | None
    replaces: str
    lastUsedAt: str | None
    lastUsedFrom: str


LackOf: TypeAlias = Literal["cpu", "memory", "gpu", "port", "selector", "taint", "cordoned"]


class LogTimeWire(TypedDict):
    """When output came, within a second."""

    offset: int
    at: str


class LogTimes(TypedDict):
    """When the bytes of a part of a log came."""

    times: list[LogTimeWire]


class MadeLink(TypedDict):
    """A new link."""

    job: str
    uid: str
    alias: str
    user: str
    isLink: bool
    services: list[str]
    only: list[str]
    createdBy: str
    createdAt: str
    expiresAt: str | None
    url: str


class MovedJob(TypedDict):
    """A job whose turn has changed."""

    id: str
    place: int
    was: int


class NodeUseWire(TypedDict):
    """A node and what of it is in use."""

    name: str
    ready: bool
    schedulable: bool
    reason: str
    gpuTypes: list[str]
    gpus: int
    usedGpus: int
    badGpus: int
    cpus: int
    usedCpus: int
    memoryMb: int
    usedMemoryMb: int
    otherGpus: int
    otherCpus: int
    otherMemoryMb: int


Origin: TypeAlias = Literal["shipped", "site", "own"]


class OrphanShown(TypedDict):
    """A task that the engine has and the database does not know."""

    task: str
    database: str
    state: str
    since: str | None
    seenAt: str
    why: str
    endedBy: str


Outcome: TypeAlias = Literal["starts", "waits", "never"]


Per: TypeAlias = Literal["month", "total"]


Phase: TypeAlias = Literal[
    "queued", "pulling", "starting", "running", "backing off", "kept for debugging", "stopping", "ended"
]


class Place(TypedDict):
    """Where a task ran."""

    node: str
    devices: list[int]


class PlacedEvent(TypedDict):
    """An event of any job, and where to go on after it."""

    position: str
    event: Event


class PodChoice(TypedDict):
    """What a document says of its pods; empty where the administrator's settings count."""

    priorityClass: str
    runtimeClass: str
    serviceAccount: str
    imagePullSecrets: list[str]


class Point(TypedDict):
    """Averages over a part of the time."""

    atS: float
    used: list[float]
    opportunistic: list[float]
    broken: float
    gpus: float
    waiting: float


class PortSpec(TypedDict):
    """A labelled group of ports that each task of a role gets."""

    label: str
    count: int
    beginAt: int
    implicit: bool


class PriceWire(TypedDict):
    """A price, and when it holds."""

    type: str
    hourly: str | None
    since: str
    until: str | None
    holds: bool
    changedAt: str
    changedBy: str


PriorityClass: TypeAlias = Literal["crit", "prod", "test", "oppo"]


class ProxyAddress(TypedDict):
    """How service addresses are made."""

    domain: str
    baseUrl: str


Resource: TypeAlias = Literal["gpu", "cpu", "money"]


class Resources(TypedDict):
    """What one task needs."""

    storageGb: int | None
    cpus: int
    memoryMb: int
    gpus: int
    shmMb: int


class RetryDetails(TypedDict):
    """Retries by who caused them."""

    user: int
    platform: int
    resource: int


RunOutcome: TypeAlias = Literal["done", "preempted", "failed", "cancelled", "overrun"]


class RunningJob(TypedDict):
    """A job that has a place."""

    uid: str
    id: str
    name: str
    username: str
    tasks: int
    gpus: int
    opportunistic: bool


class Scheduling(TypedDict):
    """How a job wants to be scheduled (extras.hivedScheduler and extras.gangAllocation of OpenPAI v2)."""

    gangAllocation: bool
    priorityClass: PriorityClass | None
    lazyPreemption: bool
    ignoreSuggestedNodes: bool
    gangRelease: bool
    withinOneCell: str | None


class ShareWire(TypedDict):
    """A job that another user may enter, or a link to one of its services."""

    job: str
    uid: str
    alias: str
    user: str
    isLink: bool
    services: list[str]
    only: list[str]
    createdBy: str
    createdAt: str
    expiresAt: str | None


class Spell(TypedDict):
    """A part of a run in which nothing about it changed. Seconds from the beginning of the trace."""

    run: int
    sinceS: float
    untilS: float
    tasks: int
    gpus: int
    opportunistic: bool
    outcome: RunOutcome
    places: list[Place]


class SshAddress(TypedDict):
    """Where the SSH front door is."""

    host: str
    port: int


class SshOptions(TypedDict):
    """What the ssh plugin of OpenPAI v2 asks for."""

    jobSsh: bool
    authorizedKeys: list[str]
    barrier: bool
    barrierRoles: list[str]
    barrierTimeoutS: int


State: TypeAlias = Literal["WAITING", "RUNNING", "STOPPING", "STOPPED", "SUCCEEDED", "FAILED"]


StopCause: TypeAlias = Literal["user", "idle", "duration"]


class StorageMount(TypedDict):
    """A team storage that a v2 document names."""

    name: str
    mountPath: str


class TaskRole(TypedDict):
    """A group of equal tasks."""

    minInstances: int | None
    name: str
    instances: int
    resources: Resources
    ports: list[PortSpec]
    command: str
    strict: bool
    completion: Completion
    taskRetryCount: int
    image: str | None
    imageAuth: ImageAuth | None
    infiniband: bool
    ssh: SshOptions
    skuType: str | None
    pinnedCellId: str | None
    affinityGroup: str | None
    withinOneCell: str | None


class TemplateWords(TypedDict):
    """How a template is introduced in one language."""

    title: str
    about: str


class Ticket(TypedDict):
    """A one-time sign-in to a service for a browser."""

    url: str
    pathUrl: str
    expiresAt: str
    proof: str
    isJupyter: bool


class Told(TypedDict):
    """The reason in words."""

    sentence: str
    remedy: str
    estimate: str


class UploadState(TypedDict):
    """What became of an uploaded part."""

    path: str
    kept: int
    complete: bool


class UsageAmounts(TypedDict):
    """Hours, and what they cost at the prices of their time."""

    gpuHours: float
    cpuHours: float
    cost: str | None


class UsageRow(TypedDict):
    """Hours that belong together; what they are not told apart by is ``null``."""

    gpuHours: float
    cpuHours: float
    cost: str | None
    user: str | None
    group: str | None
    virtualCluster: str | None
    gpuType: str | None
    day: str | None
    job: str | None
    quota: str | None
    runs: int
    daily: DailyUsage | None


class UsePoint(TypedDict):
    """A sample, or the mean of those that it stands for."""

    at: str
    cpus: float | None
    memoryMb: int | None
    gpuPercent: float | None
    gpuMemoryMb: int | None
    idleGpus: int | None


class VcChange(TypedDict):
    """What a virtual cluster owns before and after."""

    vc: str
    existsBefore: bool
    existsAfter: bool
    gpusBefore: int
    gpusAfter: int
    cells: list[CellsOwned]


class WaitingJob(TypedDict):
    """A job that waits as a whole."""

    uid: str
    id: str
    name: str
    username: str
    gpus: int
    queue: str
    position: int
    waiting: int


class Waits(TypedDict):
    """Seconds from arrival to the first start. Percentiles are nearest ranks: waits that occurred."""

    meanS: float
    p50S: float
    p95S: float
    maxS: float


class Wording(TypedDict):
    """Template and arguments of a text: clients translate the template and put the arguments in."""

    template: str
    arguments: dict[str, str | Wording]


class AddressWire(TypedDict):
    """A workspace name of the caller's, and the job that holds it now."""

    name: str
    alias: str
    createdAt: str
    job: str | None
    uid: str | None
    state: State | None
    starts: bool
    services: list[AddressService]


class Announced(TypedDict):
    """What all users are told now."""

    announcement: AnnouncementWire | None


class AuditChain(TypedDict):
    """Where the chain begins and ends."""

    root: AuditPlace
    head: AuditPlace
    sealed: AuditPlace | None


class BookingList(TypedDict):
    """Reservations, the earliest first."""

    data: list[BookingWire]
    mayReserve: list[str]


class BudgetWire(TypedDict):
    """A budget, and what of it is used."""

    id: str
    user: str | None
    group: str | None
    virtualCluster: str | None
    resource: Resource
    per: Per
    hours: float | None
    usedHours: float | None
    amount: str | None
    usedAmount: str | None
    currency: str | None
    level: Literal["ok", "near", "used-up"]
    warnPercent: int
    begins: str
    ends: str | None
    changedAt: str
    changedBy: str
    mayChange: bool


class Change(TypedDict):
    """A change with which the group would have started at once when this was asked; tried, not guessed."""

    kind: ChangeKind
    leafType: str
    vc: str
    member: int
    role: str
    before: int
    after: int
    nodes: list[str]
    detail: str


class ClusterChange(TypedDict):
    """All effects of a change. Nothing that runs is ended by it."""

    lost: list[JobEffect]
    regained: list[JobEffect]
    dropped: list[JobEffect]
    missing: list[JobEffect]
    impossible: list[JobEffect]
    starts: list[JobEffect]
    virtualClusters: list[VcChange]
    addedNodes: list[str]
    removedNodes: list[str]


class ConfigShown(TypedDict):
    """A version with its text."""

    version: int
    state: Literal["recorded", "in force", "past", "skipped"]
    origin: Literal["derived", "setting", "rest"]
    by: str
    recordedAt: str | None
    since: str | None
    change: ClusterChange | None
    text: str
    derived: str
    newestVersion: int
    fixed: bool
    precedence: str


class ConfigVersionShown(TypedDict):
    """A version of the cluster configuration."""

    version: int
    state: Literal["recorded", "in force", "past", "skipped"]
    origin: Literal["derived", "setting", "rest"]
    by: str
    recordedAt: str | None
    since: str | None
    change: ClusterChange | None


class DocumentWarning(TypedDict):
    """Something the user should know that stopped nothing."""

    code: str
    message: str
    path: str
    hint: str
    wording: Wording | None
    hintWording: Wording | None


class Fate(TypedDict):
    """What became of a group. Seconds from the beginning of the trace."""

    name: str
    vc: str
    user: str
    gpus: int
    tasks: int
    arrivedS: float
    durationS: float
    startedS: float | None
    endedS: float | None
    cancelledS: float | None
    estimatedS: float | None
    stoppedS: float | None
    firstTasks: int
    fullS: float | None
    grown: int
    preempted: int
    failed: int
    displaced: int
    lostS: float
    overtaken: int
    cappedS: float
    spells: list[Spell]


class Fault(TypedDict):
    """One thing wrong at one place of a document or request."""

    path: str
    message: str
    line: int | None
    column: int | None
    hint: str
    wording: Wording | None
    hintWording: Wording | None


class GroupFigures(TypedDict):
    """The figures of some groups."""

    vc: str
    user: str
    groups: int
    unstarted: int
    waits: Waits
    gpuHours: float
    guaranteedGpuHours: float
    opportunisticGpuHours: float
    ownedGpuHours: float
    preempted: int
    lostGpuHours: float
    failed: int
    failedGpuHours: float
    cancelledGpuHours: float
    overrun: int
    overrunGpuHours: float
    displaced: int
    overtaken: int
    capped: int
    cappedHours: float
    grown: int


class IdleWire(TypedDict):
    """The idle clock of a job with an `idleTimeout`."""

    timeoutS: int
    since: str | None
    usedBy: str | None
    stopAt: str | None
    warned: bool
    unread: dict[str, str]
    sentence: str
    sentenceWording: Wording | None


class ImageShown(TypedDict):
    """An image of the machine that runs the tasks."""

    id: str
    names: list[str]
    sizeBytes: int
    createdAt: str
    usedAt: str | None
    tasks: int
    kept: list[KeptBecause]


class Info(TypedDict):
    """Which backend this is."""

    name: str
    version: str
    engine: str
    ssh: SshAddress | None
    proxy: ProxyAddress
    launcherType: str
    authnMethod: str


class JobExit(TypedDict):
    """Why the job as a whole ended: the task that decided it, or the stop request."""

    status: int
    message: str
    remedy: str
    cause: StopCause | None
    role: str | None
    index: int | None
    wording: Wording | None


class JobSpec(TypedDict):
    """A job as its author meant it; the meaning of a document, free of its dialect's spelling."""

    authFile: str
    dataDir: str
    outputDir: str
    codeDir: str
    gpuType: str | None
    retryCount: int
    killAllOnCompleted: int | None
    debug: bool
    debugger: bool
    expectedRunS: int | None
    idleTimeoutS: int | None
    maxDurationS: int | None
    address: str
    startOnLogin: bool
    sweep: str
    sweepParallel: int | None
    notebook: str
    nodeSelector: dict[str, str]
    secretEnv: dict[str, str]
    kubernetes: PodChoice
    name: str
    dialect: Dialect
    image: str
    virtualCluster: str
    env: dict[str, Any]
    extras: dict[str, Any]
    scheduling: Scheduling
    secretNames: list[str]
    storages: list[StorageMount]
    notify: list[str]
    submitFrom: str
    description: str
    taskRoles: list[TaskRole]


class Lack(TypedDict):
    """What one node lacks. Numbers are cores, MiB, or the port."""

    node: str
    what: LackOf
    needed: int
    available: int
    detail: str
    holder: str
    others: int


class MovedJobs(TypedDict):
    """The jobs that have changed places; none when they stood as asked already."""

    status: int
    message: str
    wording: Wording | None
    jobs: list[MovedJob]


class PriceListWire(TypedDict):
    """All prices."""

    currency: str
    data: list[PriceWire]


class Released(TypedDict):
    """What is released now."""

    status: int
    message: str
    wording: Wording | None
    tasks: list[str]


class Said(TypedDict):
    """OpenPAI's answer to a change."""

    status: int
    message: str
    wording: Wording | None


class ServiceWire(TypedDict):
    """A named port of a task, with its stable addresses."""

    label: str
    role: str
    index: int
    alias: str
    port: int | None
    url: str
    pathUrl: str
    state: State


class SshEntry(TypedDict):
    """A login: the user name routes."""

    alias: str
    user: str
    role: str
    index: int
    state: State
    reachable: bool
    ports: dict[str, int]


class Summary(TypedDict):
    """A row of the job list."""

    uid: str
    id: str
    name: str
    username: str
    alias: str
    state: State
    phase: Phase
    why: str
    whyWording: Wording | None
    virtualCluster: str
    submissionTime: str
    launchedTime: str | None
    completedTime: str | None
    retries: int
    totalTaskNumber: int
    totalGpuNumber: int
    exitStatus: int | None
    warnings: int
    gpuTypes: list[str]


class TaskExitWire(TypedDict):
    """How a task ended."""

    status: int
    code: int | None
    signal: int | None
    reason: str
    message: str
    wording: Wording | None
    phrase: str
    remedy: str


class TaskMetrics(TypedDict):
    """A task over time, all its runs one after the other, and what it may use."""

    role: str
    index: int
    gpus: int
    cpus: int
    memoryMb: int
    samples: list[UsePoint]


class TaskUseRow(TypedDict):
    """A running task and what it uses."""

    job: str
    name: str
    username: str
    virtualCluster: str
    role: str
    index: int
    node: str
    gpus: int
    cpus: int
    memoryMb: int
    now: UsePoint | None
    trend: list[UsePoint]


class TaskUseRows(TypedDict):
    """Running tasks of the caller's jobs, or of all for an administrator: the first 1,000."""

    data: list[TaskUseRow]
    sampleS: float


class TaskWire(TypedDict):
    """A task of the current attempt."""

    uid: str
    role: str
    index: int
    alias: str
    attempt: int
    state: State
    phase: Phase
    node: str | None
    address: str | None
    gpus: list[int]
    gpuType: str
    ports: dict[str, list[int]]
    startedTime: str | None
    completedTime: str | None
    exit: TaskExitWire | None
    keptUntil: str | None
    sshCommand: str


class TemplateWire(TypedDict):
    """A job document to begin with."""

    name: str
    origin: Origin
    filename: str
    words: dict[str, TemplateWords]


class Usage(TypedDict):
    """What was held between two moments."""

    since: str
    until: str
    currency: str | None
    total: UsageAmounts
    days: list[str]
    data: list[UsageRow]


class Validation(TypedDict):
    """What a document is, or what is wrong with it."""

    valid: bool
    dialect: str | None
    name: str | None
    warnings: list[DocumentWarning]
    errors: list[Fault]
    spec: JobSpec | None


class VirtualClusterUse(TypedDict):
    """What a virtual cluster owns and uses, who runs there, and who waits."""

    name: str
    granted: bool
    mostGpus: int | None
    cells: list[CellsUseWire]
    running: list[RunningJob]
    unlistedJobs: int
    unlistedGpus: int
    waiting: int
    queue: list[WaitingJob]


class Waiting(TypedDict):
    """Why a group waits, the numbers behind it, and what would help. GPUs are leaf cells."""

    group: str
    cause: Cause
    vc: str
    priority: int
    leafType: str
    needed: int
    largestTask: int
    owned: int
    free: int
    largestFree: int
    within: str
    holders: list[Holder]
    nodes: list[str]
    lacks: list[Lack]
    putOffS: int
    cap: CapReached | None
    booked: BookedFor | None
    position: int
    waiting: int
    overtaken: int
    startsAt: str | None
    restsOn: list[Basis]
    changes: list[Change]
    texts: dict[str, Told]


class Why(TypedDict):
    """Why a job waits. ``waiting`` has the names of :mod:`pai_backend.model.waiting`, which all faces share."""

    id: str
    state: State
    phase: Phase
    sentence: str
    sentenceWording: Wording | None
    waiting: Waiting | None
    asOf: str | None
    current: bool
    doubt: str
    doubtWording: Wording | None


class BudgetList(TypedDict):
    """Budgets."""

    data: list[BudgetWire]


class ClusterPlan(TypedDict):
    """What a configuration would do; once it is applied, what it was going to do a moment before."""

    valid: bool
    errors: list[Fault]
    warnings: list[Fault]
    inForceVersion: int
    newestVersion: int
    concerns: bool
    change: ClusterChange | None
    appliedVersion: int | None
    inForce: bool


class ClusterUseWire(TypedDict):
    """The whole cluster, as far as the caller may see it."""

    user: str
    admin: bool
    shared: bool
    images: list[str]
    virtualClusters: list[VirtualClusterUse]
    nodes: list[NodeUseWire]


class ImageList(TypedDict):
    """The images that the caller may see, the last used first."""

    data: list[ImageShown]
    totalBytes: int | None
    mostBytes: int | None


class JobMetrics(TypedDict):
    """What the tasks of a job used."""

    sampleS: float
    tasks: list[TaskMetrics]


class Report(TypedDict):
    """How a trace would have gone. GPUs are leaf cells; shares are of all GPU time unless they say otherwise."""

    gpus: int
    spanS: float
    utilisation: float
    guaranteed: float
    opportunistic: float
    broken: float
    idleWhileWanted: float
    fragmentation: float
    total: GroupFigures
    vcs: list[GroupFigures]
    users: list[GroupFigures]
    refused: list[Waiting]
    left: list[str]
    fates: list[Fate]
    course: list[Point]


class RoleWire(TypedDict):
    """A role and its tasks."""

    name: str
    taskStatuses: list[TaskWire]


class SshAnswer(TypedDict):
    """All that a strict SSH client needs for the tasks of one job."""

    address: str
    starts: bool
    host: str
    port: int
    hostKeyAlias: str
    knownHosts: list[str]
    gatewayHostKey: str
    certAuthority: str
    entries: list[SshEntry]


class Trial(TypedDict):
    """What would become of a document that is submitted now. ``waiting`` has the names that ``why`` has."""

    outcome: Outcome | None
    waiting: Waiting | None
    held: str


class Comparison(TypedDict):
    """The same trace on two configurations."""

    configs: tuple[str, str]
    reports: tuple[Report, Report]


class JobDetail(TypedDict):
    """Everything about one job."""

    uid: str
    id: str
    name: str
    username: str
    alias: str
    state: State
    phase: Phase
    why: str
    whyWording: Wording | None
    virtualCluster: str
    submissionTime: str
    launchedTime: str | None
    completedTime: str | None
    retries: int
    totalTaskNumber: int
    totalGpuNumber: int
    exitStatus: int | None
    address: str
    warnings: list[DocumentWarning]
    dialect: str
    description: str
    image: str
    sweep: str
    notebook: str
    attempt: int
    stopReason: str
    exit: JobExit | None
    retryDetails: RetryDetails
    version: int
    sshCommand: str
    taskRoles: list[RoleWire]
    services: list[ServiceWire]
    endAt: str | None
    ruleWarning: str
    ruleWarningWording: Wording | None
    idle: IdleWire | None
    doubt: str
    doubtWording: Wording | None
    outputPath: str
