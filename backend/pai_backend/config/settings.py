"""Every key of the configuration, with its default, its limits and its meaning.

The descriptions are the documentation: ``--help`` and ``docs/configuration.md`` are made from them.
"""

from __future__ import annotations

import base64
import getpass
import json
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, Self

import platformdirs
from pydantic import Field, SecretStr, field_validator, model_validator

from pai_backend.config.api import ApiSettings
from pai_backend.config.audit import AuditSettings
from pai_backend.config.engine import EngineSettings
from pai_backend.config.gateway import GatewaySettings
from pai_backend.config.jobs import JobSettings
from pai_backend.config.kubernetes import KubernetesSettings
from pai_backend.config.notifications import NotificationSettings
from pai_backend.config.queue import QueueSettings
from pai_backend.config.secret_text import SecretText
from pai_backend.config.storage import StorageSettings
from pai_backend.engine.providers import provider
from pai_backend.model.base import Model
from pai_backend.model.container_settings import ContainerSettings
from pai_backend.model.labels import NodeRule


class ProcessRole(StrEnum):
    """A part of the backend that can run alone or beside others in one process."""

    API = "api"
    CONTROLLER = "controller"
    GATEWAY = "gateway"
    AGENT = "agent"


def default_data_dir() -> Path:
    """Where a backend keeps its things when nothing else is said: the user's data directory."""
    return Path(platformdirs.user_data_dir("jupyter-pai")) / "backend"


def _split(keys: SecretStr) -> tuple[str, ...]:
    """The keys of a text that has commas between them."""
    return tuple(key.strip() for key in keys.get_secret_value().split(","))


def _is_fernet_key(text: str) -> bool:
    """Whether it can be one. Asked here without ``cryptography``, which not every process needs."""
    try:
        return len(base64.b64decode(text, altchars=b"-_", validate=True)) == 32
    except ValueError:
        return False


class PortSettings(Model):
    """Ports that tasks may get, on every machine."""

    first: int = Field(default=15000, ge=1024, le=65535, description="Lowest port leased to tasks.")
    last: int = Field(default=39999, ge=1024, le=65535, description="Highest port leased to tasks.")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.last < self.first:
            raise ValueError("last must not be below first")
        return self


class ClusterSettings(Model):
    """Who owns which machines."""

    config: Path | dict[str, Any] | None = Field(
        default=None,
        description="Cell types, machines and virtual clusters in the schema of HiveD: a YAML file, or (in a "
        "configuration file) the configuration itself. None given: every virtual cluster may use every node.",
    )
    fixed: bool = Field(
        default=False,
        description="Only `config` counts: changing the cluster configuration over REST is refused, and what was "
        "applied before gives way to `config` at the next start.",
    )
    grants: dict[str, tuple[str, ...]] = Field(
        default={},
        description="Virtual clusters that a user may use, `{alice: [default, vc1]}`: what nothing else changes. A "
        "user who is not named may use what `pai group` and `pai user` grant, which is all until the virtual clusters "
        "of the group `default` are set. Administrators may use all.",
    )
    cells_for_cpu_tasks: bool = Field(
        default=False,
        description="Let tasks that ask for no GPU hold cells too, by their CPU and memory. Otherwise only those do "
        "that name a `skuType` or a pinned cell.",
    )
    sku_scheduling: dict[str, NodeRule] = Field(
        default={},
        description="Which nodes tasks on cells of a SKU (leaf type) may use, `{V100: {nodeSelector: {pool: gpu}, "
        "tolerations: [{key: nvidia.com/gpu, operator: Exists}]}}`, with the meaning that a pod's fields have in "
        "Kubernetes. A SKU that is not named asks for no label and tolerates no taint.",
    )
    cpu_scheduling: NodeRule = Field(
        default=NodeRule(), description="The same for tasks that hold no cells: those without GPU."
    )


class DebugSettings(Model):
    """Jobs that ask for debugging (`jobEnvs.isDebug`)."""

    keep_s: int = Field(
        default=604_800,
        ge=0,
        le=31_536_000,
        description="Seconds that a failed task is kept, with its place and files, unless it is released before; "
        "0 keeps none.",
    )


class ControllerSettings(Model):
    """The controller's own port, for Prometheus and probes."""

    metrics_host: str = Field(default="127.0.0.1", description="Address to listen on for `metrics_port`.")
    metrics_port: int = Field(
        default=0,
        ge=0,
        le=65535,
        description="Port of the controller's `/metrics`, `/healthz` and `/readyz` over HTTP, without authentication: "
        "its figures name virtual clusters and users. 0: none.",
    )


class MetricSettings(Model):
    """What tasks are seen to use, and when GPUs count as idle."""

    sample_s: float = Field(
        default=60,
        ge=0.2,
        description="Seconds between two looks at what running tasks use. 10,080 looks are kept of a task: a week of "
        "them at one a minute.",
    )
    idle_gpus_s: float = Field(
        default=7200,
        ge=0,
        description="Seconds for which GPUs of a job must do nothing before an event tells its owner; 0: never.",
    )


class Settings(Model):
    """The whole configuration of one backend."""

    data_dir: Path = Field(
        default_factory=default_data_dir,
        description="Directory of everything that is kept: database, token, logs, tasks.",
    )
    disk_reserve_bytes: int = Field(
        default=67_108_864,
        ge=0,
        description="Bytes of the disk of the data directory that are kept for stop, delete and sign-in when it is "
        "full; 0 keeps none.",
    )
    cluster_name: str = Field(default="local", min_length=1, description="Name shown to users, used in file names.")
    user: str = Field(
        default_factory=getpass.getuser, min_length=1, description="The user whom the token file stands for; an admin."
    )
    database: SecretText | None = Field(
        default=None,
        description="SQLAlchemy URL, `sqlite:///FILE` or `postgresql://…`. "
        "Default: `pai.sqlite` in the data directory. May hold a password, so not a flag.",
    )
    secret_key: SecretText | None = Field(
        default=None,
        description="What documents, secrets and private keys in the database are encrypted with: a Fernet key, or "
        "several with commas between them, newest first. Secret, so not a flag.",
    )
    secret_key_file: Path | None = Field(
        default=None,
        description="File with these keys instead, one a line, newest first; made with mode 0600 when absent. "
        "Default: `secret.key` in the data directory.",
    )
    processes: tuple[tuple[ProcessRole, ...], ...] = Field(
        default=((ProcessRole.API, ProcessRole.CONTROLLER), (ProcessRole.GATEWAY,), (ProcessRole.AGENT,)),
        description="Roles grouped into processes; roles are api, controller, gateway, agent.",
    )
    api: ApiSettings = Field(default=ApiSettings(), description="The HTTP API.")
    gateway: GatewaySettings = Field(default=GatewaySettings(), description="The SSH gateway.")
    ports: PortSettings = Field(default=PortSettings(), description="Ports that tasks may get.")
    engine: EngineSettings = Field(default=EngineSettings(), description="What runs tasks.")
    containers: ContainerSettings = Field(default=ContainerSettings(), description="How tasks become containers.")
    kubernetes: KubernetesSettings = Field(default=KubernetesSettings(), description="How a cluster is reached.")
    cluster: ClusterSettings = Field(default=ClusterSettings(), description="Who owns which machines.")
    queue: QueueSettings = Field(default=QueueSettings(), description="What may run at once, and who waits how long.")
    jobs: JobSettings = Field(default=JobSettings(), description="What jobs begin with, and how long they are kept.")
    controller: ControllerSettings = Field(
        default=ControllerSettings(), description="The controller's own port, for Prometheus and probes."
    )
    audit: AuditSettings = Field(default=AuditSettings(), description="Who changed what: how long, and where else.")
    notifications: NotificationSettings = Field(
        default=NotificationSettings(), description="How users are notified about their jobs."
    )
    metrics: MetricSettings = Field(default=MetricSettings(), description="What tasks are seen to use over time.")
    debug: DebugSettings = Field(default=DebugSettings(), description="Jobs that ask for debugging.")
    storage: StorageSettings = Field(default=StorageSettings(), description="Where jobs find inputs, leave outputs.")
    virtual_clusters: tuple[str, ...] = Field(
        default=("default",),
        min_length=1,
        description="Names of the virtual clusters that documents may name, where there is no `cluster.config`, which "
        "names its own.",
    )
    log_format: Literal["text", "json"] = Field(
        default="text", description="Lines for people, or a JSON object a line, with the ids of job and request."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(default="info", description="How much is logged.")
    log_dir: Path | None = Field(
        default=None,
        description="Directory of log files, one a process, rotated by size. None given: standard error.",
    )
    log_file_bytes: int = Field(
        default=8_388_608, ge=65536, description="Bytes after which a log file is rotated (three old ones are kept)."
    )

    @field_validator("secret_key")
    @classmethod
    def _are_keys(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not all(_is_fernet_key(key) for key in _split(value)):
            raise ValueError("must be Fernet keys: 32 random bytes as 44 characters of URL-safe base64 each")
        return value

    @model_validator(mode="after")
    def _users_once(self) -> Self:
        names = [user.name for user in self.api.users]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"api.users: the user {twice} is listed twice")
        return self

    @model_validator(mode="after")
    def _users_trust_each_other(self) -> Self:
        """A user who may submit jobs to the local engine has all rights of the backend's account."""
        known, given = self.known_users, self.engine
        shared = provider(given.kind).tasks_run_as_backend(self)
        if shared and len(known) > 1 and not given.trust_all_users:
            raise ValueError(
                f"engine.trust_all_users: this backend knows {len(known)} users ({', '.join(known[:3])}…) and "
                "runs their tasks as one account, so that each could read the keys, the database and the files of all. "
                "As root, give them accounts (engine.accounts). Run a backend for each user, or use engine.kind: "
                "kubernetes; set it to true if they may do so"
            )
        return self

    @model_validator(mode="after")
    def _accounts_are_for_local_tasks(self) -> Self:
        given = self.engine.accounts
        if given.given and self.engine.kind != "local":
            raise ValueError("engine.accounts: only tasks of the local engine run in accounts; leave it out")
        missing = [user for user in self.known_users if user not in given.map] if given.map else []
        if missing:
            raise ValueError(f"engine.accounts.map: there is no account for {', '.join(missing)}; add one for each")
        return self

    @property
    def known_users(self) -> tuple[str, ...]:
        """Everybody whom the configuration names, by name."""
        known = {self.user, *(token.user for token in self.api.tokens), *(user.name for user in self.api.users)}
        return tuple(sorted(known))

    @model_validator(mode="after")
    def _engine_has_what_it_needs(self) -> Self:
        provider(self.engine.kind).check(self)
        return self

    @model_validator(mode="after")
    def _roles_once(self) -> Self:
        roles = [role for group in self.processes for role in group]
        if not all(self.processes) or not roles:
            raise ValueError("processes: each process needs at least one role")
        twice = next((role for role in roles if roles.count(role) > 1), None)
        if twice is not None:
            raise ValueError(f"processes: the role {twice} is listed twice")
        if self.gateway.processes > 1 and (ProcessRole.GATEWAY,) not in self.processes and ProcessRole.GATEWAY in roles:
            raise ValueError("gateway.processes: more than one needs the gateway in processes of its own")
        return self

    @property
    def token_path(self) -> Path:
        """The token file, wherever it was put."""
        return self.api.token_file or self.data_dir / "token"

    @property
    def secret_keys(self) -> tuple[str, ...]:
        """The configured keys, newest first; none when they are in :attr:`secret_key_path`."""
        return _split(self.secret_key) if self.secret_key is not None else ()

    @property
    def secret_key_path(self) -> Path:
        """The file of the keys, wherever it was put."""
        return self.secret_key_file or self.data_dir / "secret.key"

    @property
    def database_url(self) -> str:
        """The SQLAlchemy URL; may hold a password."""
        if self.database is not None:
            return self.database.get_secret_value()
        return f"sqlite:///{self.data_dir / 'pai.sqlite'}"

    @property
    def default_fs_uri(self) -> str:
        """The default file system as jobs are told: a URI, or the plain absolute path of a directory."""
        return self.storage.default_uri or str(self.data_dir / "fs")

    def reveal(self, version: str) -> bytes:
        """All of it as JSON with its secrets and our version, for inherited descriptors only."""
        values = self.model_dump(mode="json", context={"reveal": True})
        return json.dumps({**values, "version": version}).encode()
