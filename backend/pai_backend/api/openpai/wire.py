"""The shapes of OpenPAI's answers. Names are OpenPAI's; times are whole milliseconds since 1970 UTC.

Fields that OpenPAI does not have are at the end of each model and marked *ours*: OpenPAI's clients overlook them.
"""

from __future__ import annotations

from pydantic import Field, RootModel

from pai_backend.api.wire import Camel, RetryDetails, ServiceWire, SshAnswer
from pai_backend.model.spec import DocumentWarning


class JobFacts(Camel):
    """What OpenPAI's list rows and a detail's ``jobStatus`` have in common."""

    username: str
    state: str
    sub_state: str
    execution_type: str = Field(description="START, or STOP once it was asked to stop.")
    retries: int
    retry_details: RetryDetails
    retry_delay_time: int | None = Field(description="Seconds until the next attempt, while it is backing off.")
    submission_time: int
    created_time: int
    launched_time: int | None
    completed_time: int | None
    app_exit_code: int | None
    virtual_cluster: str
    total_gpu_number: int
    total_task_number: int
    total_task_role_number: int


class JobRow(JobFacts):
    """A row of the job list."""

    debug_id: str = Field(description="OpenPAI's name of the job inside Kubernetes: the MD5 of `user~name`.")
    name: str
    tags: tuple[str, ...]
    job_priority: str | None
    uid: str = Field(description="Ours.")
    alias: str = Field(description="Ours: the stable name in addresses.")
    phase: str = Field(description="Ours: the state in plain words.")
    why: str = Field(description="Ours: why it waits.")
    gpu_types: tuple[str, ...] = Field(
        description="Ours: GPU types that it asks for, or holds or held in this attempt."
    )


class OpenPaiJobPage(Camel):
    """A page of the list with the number of jobs that match in all."""

    total_count: int
    data: tuple[JobRow, ...]


class OpenPaiJobList(RootModel[tuple[JobRow, ...] | OpenPaiJobPage]):
    """The rows alone, or a page when ``withTotalCount`` was asked for."""


class ExitSpec(Camel):
    """OpenPAI's explanation of an exit code, from ``docs/exits.md``."""

    code: int | None = Field(description="The nearest number of OpenPAI's own exit specification.")
    phrase: str
    causer: str
    type: str
    behavior: str
    reaction: str
    reason: str
    solution: tuple[str, ...]


class ExitMessages(Camel):
    """What each part of the platform says about an exit."""

    container: str | None
    runtime: str | None
    launcher: str | None


class JobStatus(JobFacts):
    """How a job is, as OpenPAI's detail tells it."""

    attempt_id: int
    attempt_state: str
    app_id: str
    app_progress: int = Field(description="1 once it has ended.")
    app_tracking_url: str
    app_created_time: int
    app_launched_time: int | None
    app_completed_time: int | None
    app_exit_spec: ExitSpec | None
    app_exit_diagnostics: str | None
    app_exit_messages: ExitMessages | None
    app_exit_trigger_message: str | None
    app_exit_trigger_task_role_name: str | None
    app_exit_trigger_task_index: int | None
    app_exit_type: str | None


class Hived(Camel):
    """What OpenPAI's scheduler says of a task."""

    affinity_group_name: str | None
    lazy_preempted: bool | None
    lazy_preemption_status: str | None


class TaskRun(Camel):
    """One run of a task."""

    task_role_name: str
    task_index: int
    task_uid: int | str = Field(
        description="A number in the detail of a job and text elsewhere, as OpenPAI's description has them."
    )
    uid: str = Field(description="Ours: the text of `taskUid` in either case, which events have as `podUid`.")
    task_state: str
    container_id: str | None
    container_ip: str | None
    container_node_name: str | None
    container_ports: dict[str, str] | None = Field(description="Label to numbers separated by commas.")
    container_gpus: str | None = Field(
        description="A whole number, as text: bit n is set when it holds GPU n of its node."
    )
    container_log: str = Field(description="Path of the list of its logs.")
    container_exit_code: int | None
    container_exit_spec: ExitSpec | None
    container_exit_diagnostics: str | None
    created_time: int
    launched_time: int | None
    completed_time: int | None
    attempt_id: int
    attempt_state: str


class TaskStatus(TaskRun):
    """A task in its latest run."""

    retries: int
    accountable_retries: int
    current_attempt_created_time: int
    current_attempt_launched_time: int | None
    current_attempt_completed_time: int | None
    hived: Hived
    alias: str = Field(description="Ours: the stable name in addresses.")
    phase: str = Field(description="Ours: the state in plain words.")
    ssh_command: str = Field(description="Ours; empty while the gateway's address is not known.")


class TaskWithRuns(TaskStatus):
    """A task with all its runs in one attempt of its job, the latest first."""

    attempts: tuple[TaskRun, ...]


class RoleName(Camel):
    """What OpenPAI tells about a role as a whole."""

    name: str


class Role(Camel):
    """A role and its tasks."""

    task_role_status: RoleName
    task_statuses: tuple[TaskStatus, ...]


class OpenPaiDetail(Camel):
    """Everything about one attempt of a job."""

    debug_id: str
    name: str
    tags: tuple[str, ...]
    job_priority: str | None
    job_status: JobStatus
    task_roles: dict[str, Role]
    id: str = Field(description="Ours: `user~name`.")
    uid: str = Field(description="Ours.")
    alias: str = Field(description="Ours: the stable name in addresses.")
    phase: str = Field(description="Ours: the state in plain words.")
    why: str = Field(description="Ours: why it waits.")
    description: str = Field(description="Ours: what a v2 document says of itself; empty when it says nothing.")
    ssh_command: str = Field(description="Ours.")
    services: tuple[ServiceWire, ...] = Field(description="Ours: the ports that the document names.")
    warnings: tuple[DocumentWarning, ...] = Field(description="Ours.")


class Diagnostics(Camel):
    """Why an attempt ended, in OpenPAI's parts: those of its runtime and its controller are one here."""

    diagnostics_summary: str
    runtime: None = None
    launcher: str


class JobAttempt(Camel):
    """One attempt in a job's retry history."""

    job_name: str
    framework_name: str
    user_name: str
    state: str
    origin_state: str = Field(description="The sub-state.")
    max_attempt_count: int | None = Field(description="Attempts the document allows; null for any number.")
    attempt_index: int
    job_attempt_index: int
    job_started_time: int
    attempt_started_time: int | None
    attempt_completed_time: int | None
    exit_code: int | None
    exit_phrase: str | None
    exit_type: str | None
    exit_diagnostics: Diagnostics | None
    app_exit_spec: ExitSpec | None
    total_gpu_number: int
    total_task_number: int
    total_task_role_number: int
    task_roles: dict[str, Role]
    is_latest: bool


class JobAttempts(RootModel[tuple[JobAttempt, ...]]):
    """A job's attempts, the latest first."""


class AttemptsHealth(Camel):
    """Whether retry histories are available; they always are."""

    status: str = "OK"


class JobEvent(Camel):
    """A line of a job's history. One that is of no task has null in the fields about tasks."""

    uid: str
    framework_name: str
    pod_uid: str | None
    taskrole_name: str | None
    task_name: str | None
    task_index: int | None
    type: str = Field(description="Normal or Warning.")
    reason: str
    message: str
    first_timestamp: str
    last_timestamp: str
    count: int
    source_component: str
    source_host: str | None


class JobEvents(Camel):
    """A job's history, the latest first."""

    total_count: int
    data: tuple[JobEvent, ...]


class Container(Camel):
    """Where a task is entered by SSH: at the gateway."""

    id: str
    ssh_ip: str
    ssh_port: int
    known_hosts: str = Field(description="Ours: the line of a known_hosts file by which a strict client recognises it.")
    ssh_user: str = Field(
        description="Ours: the user name that means this task; with the job's key `root` does in a job of one task."
    )


class KeyPair(Camel):
    """The job's key pair, and how to have the private one."""

    folder_path: str
    public_key_file_name: str
    private_key_file_name: str
    private_key_direct_download_link: str = Field(
        description="An address that gives the private key once, without a token, for ten minutes."
    )


class JobSsh(Camel):
    """How to log in to the tasks of a job, through the gateway."""

    containers: tuple[Container, ...]
    key_pair: KeyPair
    gateway: SshAnswer = Field(description="Ours: the same way in, by the names of all tasks.")


class SignedIn(Camel):
    """A session token and whose it is."""

    user: str
    token: str
    admin: bool
    has_git_hub_pat: bool = Field(default=False, alias="hasGitHubPAT")
    must_change_password: bool = Field(
        default=False, description="Nothing is answered to this session until its user has set another password."
    )


class ProviderInfo(Camel):
    """A provider of OpenID Connect, and the public client that signs users in there."""

    issuer: str
    client_id: str
    scopes: tuple[str, ...]
    login_uri: str = Field(alias="loginURI", description="Takes the ID token that comes of it.")


class SignInInfo(Camel):
    """How users sign in."""

    authn_type: str = Field(alias="authn_type")
    login_uri: str = Field(alias="loginURI")
    login_uri_method: str = Field(alias="loginURIMethod")
    provider: ProviderInfo | None = Field(default=None, description="A provider that signs users in, too.")


class TokenWire(Camel):
    """A token, by what names it."""

    id: str
    application: bool
    created_time: int
    expires_time: int | None
    name: str
    scopes: tuple[str, ...] = Field(description="What it is limited to; empty: everything that its user may.")
    virtual_cluster: str | None = Field(description="The one whose jobs it is limited to.")
    last_used_time: int | None = Field(description="To the minute; of application tokens.")


class TokenList(Camel):
    """The caller's tokens, all in ``tokens``. They are kept as digests, so their ids stand where OpenPAI has them."""

    tokens: tuple[str, ...]
    application_tokens: tuple[str, ...]
    data: tuple[TokenWire, ...]


class NewToken(Camel):
    """A new application token; it is shown this once."""

    token: str
    application: bool
    id: str


class SshKey(Camel):
    """A registered SSH public key, as OpenPAI's user profile has it."""

    title: str
    value: str
    time: int


class UserExtension(Camel):
    """The part of a user's profile that users themselves change."""

    ssh_keys: tuple[SshKey, ...]


class VcGrantsWire(Camel):
    """Virtual clusters that were granted to a user or a group itself."""

    use: tuple[str, ...] = Field(description="They may submit to these.")
    manages: tuple[str, ...] = Field(
        description="They may submit to these, see and change all jobs of these, and grant these to others."
    )


class UserWire(Camel):
    """A user."""

    username: str
    email: str
    grouplist: tuple[str, ...]
    admin: bool
    virtual_cluster: tuple[str, ...] = Field(description="All that the user may submit to, by whatever grant.")
    manages: tuple[str, ...] = Field(description="All that the user manages, by whatever grant.")
    own: VcGrantsWire = Field(description="What is granted to the user and not to one of their groups.")
    disabled: bool = Field(description="All requests and logins are refused.")
    must_change_password: bool = Field(description="An administrator has set their password, and they must change it.")
    configured: bool = Field(
        description="Rights, password and mail address are set in the configuration of the backend."
    )
    storage_config: tuple[str, ...]
    extension: UserExtension


class HoldingsWire(Camel):
    """What belongs to a user, or lets them in: what disabling or removing the user is about."""

    active_jobs: tuple[str, ...] = Field(description="Names of jobs that have not ended. They bar a removal.")
    ended_jobs: int = Field(description="They stay, for administrators to see.")
    addresses: tuple[str, ...] = Field(description="Workspace names. The heir gets them.")
    templates: int = Field(description="The heir gets them.")
    drafts: int = Field(description="The heir gets them.")
    files: str = Field(description="Directory of the user in the default file system. It stays.")
    keys: int = Field(description="Registered SSH keys. They end.")
    certificates: int = Field(description="SSH certificates. They end.")
    tokens: int = Field(description="Sessions and application tokens. They end.")
    shares_given: int = Field(description="Shares and links of the user's jobs. They end with the jobs.")
    shares_taken: int = Field(description="Jobs of others that the user may enter. These shares end.")


class UserList(RootModel[tuple[UserWire, ...]]):
    """Users, by name."""


class ChangedUser(UserWire):
    """A user after a change."""

    message: str = "The profile is changed."


class SkuType(Camel):
    """What one unit of a kind of hardware has."""

    gpu: int
    cpu: int
    memory: int = Field(description="MiB")


class SkuTypes(RootModel[dict[str, SkuType]]):
    """Name of the kind to what a unit of it has."""


class Message(Camel):
    """A sentence that says what was done."""

    message: str
