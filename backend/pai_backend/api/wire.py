"""The shapes of answers, as models: what is sent is made from them, and so is the OpenAPI description.

Field names are camelCase on the wire where OpenPAI's are; ``docs/rest.md`` has them in words.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import ConfigDict, Field, RootModel
from pydantic.alias_generators import to_camel

from pai_backend.model.base import Model
from pai_backend.model.errors import Fault
from pai_backend.model.job import Event, JobExit, Phase, State
from pai_backend.model.labels import Labels, Taint
from pai_backend.model.node import Gpu
from pai_backend.model.spec import DocumentWarning, JobSpec
from pai_backend.model.waiting import Waiting
from pai_backend.model.wording import MessageWording, TextWording, UserText, Worded
from pai_backend.scheduling.jobs.trial import Outcome

MEDIA_TYPE = "application/vnd.jupyter-pai+json"
"""What a client names in ``Accept`` to have the shapes of this module where OpenPAI has its own."""


class Camel(Model):
    """A model whose wire names are the camelCase of its field names."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class _JobRow(Camel):
    """What a list row and a detail have in common."""

    uid: str
    id: str = Field(description="`user~name`, OpenPAI's framework id.")
    name: str
    username: str
    alias: str = Field(description="The stable DNS-safe name, used in addresses.")
    state: State
    phase: Phase
    why: UserText = Field(description="Why it waits, in one sentence; empty when it does not.")
    why_wording: TextWording = None
    virtual_cluster: str
    submission_time: datetime
    launched_time: datetime | None
    completed_time: datetime | None
    retries: int
    total_task_number: int
    total_gpu_number: int
    exit_status: int | None


class Summary(_JobRow):
    """A row of the job list."""

    warnings: int = Field(description="How many warnings the document has.")
    gpu_types: tuple[str, ...] = Field(description="GPU types that it asks for, or holds or held in this attempt.")


class JobPage(Camel):
    """A page of the list with the number of jobs that match in all."""

    total_count: int
    data: tuple[Summary, ...]


class JobList(RootModel[tuple[Summary, ...] | JobPage]):
    """The rows alone, or a page when ``withTotalCount`` was asked for."""


class TaskExitWire(Worded):
    """How a task ended."""

    status: int = Field(description="As a shell has it: the code, or 128 and the signal's number, or 255.")
    code: int | None
    signal: int | None
    reason: str
    message: UserText
    wording: MessageWording = None
    phrase: str = Field(description="Its class, one word of docs/exits.md.")
    remedy: str = Field(description="What the user can do, in a sentence; or empty.")


class TaskWire(Camel):
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
    gpus: tuple[int, ...]
    gpu_type: str
    ports: dict[str, tuple[int, ...]]
    started_time: datetime | None
    completed_time: datetime | None
    exit: TaskExitWire | None
    kept_until: datetime | None = Field(description="When a task kept for debugging is released by itself.")
    ssh_command: str = Field(description="Empty while the gateway's address is not known.")


class RoleWire(Camel):
    """A role and its tasks."""

    name: str
    task_statuses: tuple[TaskWire, ...]


class ServiceWire(Camel):
    """A named port of a task, with its stable addresses."""

    label: str
    role: str
    index: int
    alias: str
    port: int | None = Field(description="The leased port; null until the task is placed.")
    url: str
    path_url: str = Field(description="The same below the API's own address, for sites with one host name.")
    state: State


class AttemptWire(Camel, Worded):
    """An attempt of a job with all runs of its tasks."""

    number: int = Field(description="From 0.")
    created_time: datetime
    completed_time: datetime | None
    retry_reason: UserText = Field(description="Why a later attempt followed; empty for the latest.")
    retry_reason_wording: TextWording = None
    runs: tuple[TaskWire, ...] = Field(description="By role, index and `attempt`; a retried task has several.")


class AttemptList(Camel):
    """The attempts of a job, the latest first."""

    data: tuple[AttemptWire, ...]


class RetryDetails(Model):
    """Retries by who caused them."""

    user: int
    platform: int
    resource: int


class IdleWire(Camel, Worded):
    """The idle clock of a job with an `idleTimeout`."""

    timeout_s: int
    since: datetime | None = Field(description="Nothing has used it since; null before it was first looked at.")
    used_by: str | None = Field(description="What used it last: start, ssh, service, page, kernels or gpu.")
    stop_at: datetime | None = Field(
        description="When it is stopped if nothing uses it before; null before the first look, and while its GPUs "
        "cannot be looked at."
    )
    warned: bool = Field(description="Whether its owner has been warned of that.")
    unread: dict[str, str] = Field(
        description="What could not be read, and why. Unreadable GPUs stop the clock; the rest counts as unused."
    )
    sentence: UserText = Field(description="The warning, or what stops the clock, in words; else empty.")
    sentence_wording: TextWording = None


class JobDetail(_JobRow, Worded):
    """Everything about one job."""

    address: str = Field(default="", description="The workspace name that it holds now; empty for none.")
    warnings: tuple[DocumentWarning, ...]
    dialect: str
    description: str = Field(description="What its document says of it, the first 1,000 characters; mostly empty.")
    image: str
    sweep: str = Field(default="", description="The sweep that it belongs to; empty for none.")
    notebook: str = Field(default="", description="The notebook that it runs; empty for none.")
    attempt: int
    stop_reason: str
    exit: JobExit | None
    retry_details: RetryDetails
    version: int
    ssh_command: str
    task_roles: tuple[RoleWire, ...]
    services: tuple[ServiceWire, ...]
    end_at: datetime | None = Field(
        default=None,
        description="When it is stopped for having run as long as it may, by its `maxDuration` or in its virtual "
        "cluster; null when it may run until it is done, before it runs and after.",
    )
    rule_warning: UserText = Field(
        default="",
        description="What its owner was warned of, in words: that it has almost run as long as it may, or that its "
        "GPUs work less than its virtual cluster asks for; else empty.",
    )
    rule_warning_wording: TextWording = None
    idle: IdleWire | None = Field(
        default=None, description="Null for a job without an `idleTimeout`, and for one that has ended."
    )
    doubt: UserText = Field(
        default="", description="Why this may be out of date, in a sentence: the cluster or a node is away. Else empty."
    )
    doubt_wording: TextWording = None
    output_path: str = Field(
        default="", description="Where its output is below `/api/v2/fs`; empty where it is elsewhere, or has none."
    )


class Submitted(JobDetail):
    """The new job, with OpenPAI's words about it."""

    status: int
    message: str


class Said(Worded):
    """OpenPAI's answer to a change."""

    status: int
    message: UserText
    wording: MessageWording = None


class Why(Camel, Worded):
    """Why a job waits. ``waiting`` has the names of :mod:`pai_backend.model.waiting`, which all faces share."""

    id: str
    state: State
    phase: Phase
    sentence: UserText = Field(description="As in the list; empty when it does not wait.")
    sentence_wording: TextWording = None
    waiting: Waiting | None = Field(description="The reason; null when the job does not wait for GPUs.")
    as_of: datetime | None = Field(description="When the controller said so; null when it has not.")
    current: bool = Field(description="False when the controller did not answer in time: this is what it said before.")
    doubt: UserText = Field(default="", description="Why what is said of the job may be out of date, as in its detail.")
    doubt_wording: TextWording = None


class Released(Said):
    """What is released now."""

    tasks: tuple[str, ...] = Field(description="Names of the tasks, `role-index`.")


class Validation(Model):
    """What a document is, or what is wrong with it."""

    valid: bool
    dialect: str | None
    name: str | None
    warnings: tuple[DocumentWarning, ...]
    errors: tuple[Fault, ...]
    spec: JobSpec | None


class Trial(Camel):
    """What would become of a document that is submitted now. ``waiting`` has the names that ``why`` has."""

    outcome: Outcome | None = Field(description="Null when the document is not valid, or no node is known yet.")
    waiting: Waiting | None = Field(
        description="Why it does not start, and what would help; null when that is not known."
    )
    held: str = Field(
        default="", description="Why it would wait whatever is free: a used-up budget; empty: it would not."
    )


class EventList(Model):
    """Part of a job's history, in order."""

    data: tuple[Event, ...]


class PlacedEvent(Model):
    """An event of any job, and where to go on after it."""

    position: str
    event: Event


class SshEntry(Model):
    """A login: the user name routes."""

    alias: str
    user: str
    role: str
    index: int
    state: State
    reachable: bool = Field(description="Whether a login gets in now: the task runs, or is kept for debugging.")
    ports: dict[str, int] = Field(
        description="The first port of each label that this login may forward; empty while the task has no place."
    )


class SshAnswer(Camel):
    """All that a strict SSH client needs for the tasks of one job."""

    address: str = Field(default="", description="The caller's workspace name that leads to its first task.")
    starts: bool = Field(
        default=False, description="Whether the job has ended, and a login of the caller's runs it again."
    )
    host: str
    port: int
    host_key_alias: str
    known_hosts: tuple[str, ...]
    gateway_host_key: str
    cert_authority: str = Field(
        description="known_hosts line for `ssh -J gateway <alias>`: a host certificate of this CA identifies the task."
    )
    entries: tuple[SshEntry, ...]


class Ticket(Model):
    """A one-time sign-in to a service for a browser."""

    url: str = Field(description="At the service's own address.")
    path_url: str = Field(
        description="Below the API's address, or below that of a relay in front; empty for a service of another user."
    )
    expires_at: datetime
    proof: str = Field(description="What `/.pai/reached` of the own address answers to a browser that reaches it.")
    is_jupyter: bool = Field(
        description="Whether a Jupyter server runs there now, which works at both addresses with any command."
    )


class GatewayWire(Model):
    """The SSH front door and the key it proves itself with."""

    host: str
    port: int
    host_key: str
    fingerprint: str


class SshAddress(Model):
    """Where the SSH front door is."""

    host: str
    port: int


class ProxyAddress(Camel):
    """How service addresses are made."""

    domain: str
    base_url: str


class Info(Model):
    """Which backend this is."""

    name: str
    version: str
    engine: str
    ssh: SshAddress | None
    proxy: ProxyAddress
    launcher_type: str = Field(
        default="k8s", alias="launcherType", description="Which generation of OpenPAI's answers these are."
    )
    authn_method: str = Field(default="basic", alias="authnMethod", description="How users sign in.")


class NodeUse(Model):
    """What of a node is given to tasks now."""

    tasks: int
    cpus: int
    memory_mb: int
    gpus: tuple[int, ...] = Field(description="Numbers of the GPUs in use.")


class NodeWire(Model):
    """A node and what is in use of it."""

    name: str
    address: str
    machine: str
    cpus: int
    memory_mb: int
    gpus: tuple[Gpu, ...]
    ready: bool
    reason: str
    schedulable: bool
    labels: Labels
    taints: tuple[Taint, ...]
    simulated: bool
    used: NodeUse


class NodeList(Model):
    """All nodes."""

    data: tuple[NodeWire, ...]


class ClusterResources(Model):
    """Amounts of hardware, under OpenPAI's newer and older names."""

    cpu: int
    memory: int = Field(description="MiB")
    gpu: int
    v_cores: int = Field(alias="vCores")
    gpus: int = Field(alias="GPUs")


class VirtualCluster(Camel):
    """A virtual cluster and the load on it, with OpenPAI's field names."""

    capacity: int = Field(description="Percent of the cluster; a virtual cluster without quota may use all of it.")
    max_capacity: int = Field(description="Percent of the cluster that it can come to use.")
    used_capacity: int = Field(description="Percent of the cluster's GPUs that its running tasks hold.")
    num_jobs: int = Field(description="Jobs that have not ended.")
    dedicated: bool = Field(description="Whether it has nodes of its own.")
    resources_used: ClusterResources
    resources_guaranteed: ClusterResources
    resources_total: ClusterResources
    state: str
    status: str


class NodeGpus(Camel):
    """The GPUs of a node, as OpenPAI counts them."""

    gpu_used: int
    gpu_available: int
    gpu_total: int


class VirtualClusters(RootModel[dict[str, VirtualCluster] | dict[str, NodeGpus]]):
    """Name of the virtual cluster to what it is; or of each node to its GPUs, when the query asks for nodes."""


class FileEntry(Model):
    """A file or directory of the default file system."""

    name: str
    kind: Literal["file", "directory"]
    size: int = Field(description="Bytes; 0 for a directory.")
    modified: datetime | None


class FileListing(Model):
    """Entries of a directory, by name."""

    path: str
    data: tuple[FileEntry, ...]
    truncated: bool = Field(description="There are more; ask again with `after` the last name.")


class UploadState(Model):
    """What became of an uploaded part."""

    path: str
    kept: int = Field(description="Bytes that are kept of an unfinished upload: the next offset.")
    complete: bool


class Check(Model):
    """One thing the backend needs, and whether it is there."""

    name: str
    ok: bool
    message: str
    degraded: bool = Field(default=False, description="It works, with less than it should have: the message says what.")


class Readiness(Model):
    """Whether jobs can be taken and run."""

    ready: bool
    checks: tuple[Check, ...]


class Alive(Model):
    """The process runs and answers."""

    status: str = "ok"
