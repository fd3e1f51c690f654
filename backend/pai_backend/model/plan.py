"""What an engine is given to run one task: values only, so that pure rooms can build it."""

from __future__ import annotations

from pydantic import ConfigDict, Field, SecretStr

from pai_backend.model.base import Model
from pai_backend.model.ids import TaskUid
from pai_backend.model.labels import Toleration
from pai_backend.model.node import Placement
from pai_backend.model.pod_choice import PodChoice


class PeerAccess(Model):
    """By what a task logs in to the other tasks of its job."""

    key: SecretStr = Field(description="OpenSSH private key, PEM text; all tasks of the job have the same.")
    host_ca: str = Field(description="``type base64`` of the CA whose host certificates the tasks present.")


class SshPlan(Model):
    """The task's SSH server: it must present this host key and accept exactly these keys."""

    port: int = Field(description="Leased port of the task's machine that the server listens on.")
    host_key: SecretStr = Field(description="OpenSSH private key, PEM text.")
    host_certificate: str = Field(
        default="", description="Of that key, presented beside it: one line as in a ``-cert.pub`` file; empty: none."
    )
    authorized_keys: tuple[str, ...] = Field(
        description="Lines of an authorized_keys file: the gateway's key and that of the job's tasks, no user's."
    )
    peers: PeerAccess | None = Field(default=None, description="What `ssh worker-0` in the task needs; None: nothing.")


class RegistryLogin(Model):
    """Credentials to pull an image with, secrets put in."""

    username: str
    password: SecretStr
    registry_uri: str = ""


class StagedInput(Model):
    """A directory that is copied into the task's working directory before its command runs, read-only."""

    uri: str = Field(repr=False, description="fsspec URI or absolute path; it may hold a password.")
    name: str = Field(description="Base name it gets in the working directory.")
    max_bytes: int = Field(description="Larger is refused before anything is copied; OpenPAI: 200,000,000.")


class TeamStorage(Model):
    """A storage of an administrator's that the job's document names and its user may use."""

    name: str
    uri: str = Field(description="fsspec URI, or absolute path of the task's machine.")
    mount_path: str = Field(description="Where a container has it; a local task has a link ``mnt/<name>``.")


class TaskPlan(Model):
    """All that an engine needs to run one task.

    Command and environment hold secrets in clear: neither ``repr`` nor a validation error shows them.
    """

    model_config = ConfigDict(hide_input_in_errors=True)

    uid: TaskUid
    job_name: str
    user: str
    role: str
    index: int
    job_attempt: int = Field(default=0, description="Attempt of the job; the uid counts the runs of this slot.")
    job_tasks: int = Field(default=1, description="Number of tasks of its job.")
    job_placed: int = Field(
        default=1, description="How many of them have a place now: whose addresses are to be known."
    )
    gang: int = Field(
        default=1,
        description="So many tasks of its job, with it, start together or not at all; 1: it starts by itself.",
    )
    virtual_cluster: str = "default"
    image: str
    command: str = Field(repr=False, description="Shell text for exactly one bash parse (bash -c), secrets put in.")
    env: dict[str, str] = Field(repr=False, description="The whole PAI environment; the engine adds only what it must.")
    placement: Placement
    cpus: int = 1
    memory_mb: int = 0
    shm_mb: int = 64
    ssh: SshPlan | None = None
    image_login: RegistryLogin | None = None
    infiniband: bool = False
    inputs: tuple[StagedInput, ...] = Field(default=(), description="Copied before the command runs, in this order.")
    outputs: tuple[str, ...] = Field(
        default=(), repr=False, description="URIs of directories made before the command runs."
    )
    storages: tuple[TeamStorage, ...] = ()
    pods: PodChoice = Field(default=PodChoice(), description="What its document chooses of its pod; not checked yet.")
    tolerations: tuple[Toleration, ...] = Field(
        default=(), description="Taints that tasks on nodes of this kind tolerate; for a cluster that asks for them."
    )
    keep_on_failure: bool = Field(
        default=False,
        description="When the command fails, stay reachable by SSH with all files until forgotten (isDebug).",
    )
    debugger: bool = Field(default=False, description="Debuggers can attach to its Python programs (debug).")
    job_info: str = Field(
        default="", repr=False, description="JSON text of the file that PAI_JOB_INFO_FILE names; see Engine.refresh."
    )
    database: str = Field(default="", description="Identity of the database that the task belongs to.")
    job_record: str = Field(
        default="",
        repr=False,
        description="Sealed text from which a database that lost the job takes it back; the same for all its tasks.",
    )
    task_record: str = Field(default="", repr=False, description="The same, of the job's state and of this task.")
