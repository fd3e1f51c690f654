"""Every key of the configuration, with its default, its limits and its meaning.

The descriptions are the documentation: ``--help`` and ``docs/configuration.md`` are made from them.
"""

from __future__ import annotations

import getpass
import json
from enum import StrEnum
from pathlib import Path
from typing import Literal, Self

import platformdirs
from pydantic import Field, SecretStr, SerializationInfo, field_serializer, model_validator

from pai_backend.model.base import Model


class Role(StrEnum):
    """A part of the backend that can run alone or beside others in one process."""

    API = "api"
    CONTROLLER = "controller"
    GATEWAY = "gateway"
    AGENT = "agent"


def default_data_dir() -> Path:
    """Where a backend keeps its things when nothing else is said: the user's data directory."""
    return Path(platformdirs.user_data_dir("jupyter-pai")) / "backend"


class TokenSettings(Model):
    """A bearer token and whom it stands for."""

    user: str = Field(min_length=1, description="User the token stands for.")
    token: SecretStr = Field(min_length=16, description="The token, at least 16 characters.")
    admin: bool = Field(default=False, description="May see and change the jobs of everyone.")

    @field_serializer("token", when_used="json")
    def _token_text(self, value: SecretStr, info: SerializationInfo) -> str:
        """The text itself only for our own child processes; masked everywhere else."""
        reveal = isinstance(info.context, dict) and info.context.get("reveal") is True
        return value.get_secret_value() if reveal else str(value)


class ApiSettings(Model):
    """The HTTP face."""

    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(
        default=0, ge=0, le=65535, description="Port to listen on; 0 means any free one, kept over restarts."
    )
    public_url: str | None = Field(
        default=None, description="Base URL under which users reach the API, when a proxy stands in front."
    )
    token_file: Path | None = Field(
        default=None,
        description="File with the bearer token of `user`, made with mode 0600 when absent. "
        "Default: `token` in the data directory.",
    )
    tokens: tuple[TokenSettings, ...] = Field(
        default=(), description="More bearer tokens: a list of `{user, token, admin}`. Secret, so not a flag."
    )
    allowed_origins: tuple[str, ...] = Field(
        default=(),
        description="Origins besides our own whose pages may open WebSockets, e.g. `https://lab.example.org`.",
    )
    service_domain: str = Field(
        default="localhost", min_length=1, description="Services answer at `<service alias>.<this domain>`."
    )
    max_document_bytes: int = Field(
        default=1_048_576, ge=1024, le=1_048_576, description="Largest job document that is accepted, in bytes."
    )


class GatewaySettings(Model):
    """The SSH front door."""

    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(
        default=0,
        ge=0,
        le=65535,
        description="Port to listen on; 0 means a free one from 2222 to 2421, kept over restarts.",
    )
    public_host: str | None = Field(default=None, description="Host name users give to ssh, when it is not `host`.")
    public_port: int | None = Field(
        default=None, ge=1, le=65535, description="Port users give to ssh, when it is not `port`."
    )
    login_timeout_s: float = Field(default=30, gt=0, description="Seconds in which a login must be complete.")
    keepalive_s: float = Field(default=30, gt=0, description="Seconds between keep-alive messages.")
    keepalive_count: int = Field(default=4, ge=1, description="Unanswered keep-alives after which a client is gone.")


class PortSettings(Model):
    """Ports that tasks may get, on every machine."""

    first: int = Field(default=15000, ge=1024, le=65535, description="Lowest port leased to tasks.")
    last: int = Field(default=39999, ge=1024, le=65535, description="Highest port leased to tasks.")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.last < self.first:
            raise ValueError("last must not be below first")
        return self


class GpuSettings(Model):
    """Simulated GPUs of a node."""

    type: str = Field(min_length=1, description="SKU word, compared with a document's gpuType, e.g. TITANX.")
    count: int = Field(ge=0, le=64, description="How many.")


class NodeSettings(Model):
    """A node of the local engine."""

    name: str = Field(min_length=1, max_length=63, description="Name of the node, unique.")
    simulated: bool = Field(default=True, description="A made-up node; false means this machine as it is detected.")
    gpus: GpuSettings | None = Field(default=None, description="Simulated GPUs: `{type, count}`.")
    cpus: int = Field(default=8, ge=1, description="CPUs it has to give.")
    memory_mb: int = Field(default=16384, ge=1, description="MiB of memory it has to give.")


class EngineSettings(Model):
    """What runs tasks."""

    kind: Literal["local"] = Field(default="local", description="`local`: processes on this machine.")
    nodes: tuple[NodeSettings, ...] = Field(
        default=(),
        description="Nodes: a list of `{name, simulated, gpus: {type, count}, cpus, memory_mb}`. "
        "None given: this machine with the GPUs it has.",
    )
    grace_s: float = Field(default=10, ge=0, description="Seconds between TERM and KILL when a task is stopped.")
    log_bytes: int = Field(
        default=268_435_456,
        ge=4096,
        description="Bytes of a task's output after which its log is rotated (one old kept).",
    )

    @model_validator(mode="after")
    def _distinct_names(self) -> Self:
        names = [node.name for node in self.nodes]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"has two nodes with the name {twice}")
        return self


class Settings(Model):
    """The whole configuration of one backend."""

    data_dir: Path = Field(
        default_factory=default_data_dir,
        description="Directory of everything that is kept: database, token, logs, tasks.",
    )
    cluster_name: str = Field(default="local", min_length=1, description="Name shown to users, used in file names.")
    user: str = Field(
        default_factory=getpass.getuser, min_length=1, description="The user whom the token file stands for; an admin."
    )
    database: SecretStr | None = Field(
        default=None,
        description="SQLAlchemy URL, `sqlite:///FILE` or `postgresql://…`. "
        "Default: `pai.sqlite` in the data directory. May hold a password, so not a flag.",
    )
    processes: tuple[tuple[Role, ...], ...] = Field(
        default=((Role.API, Role.CONTROLLER), (Role.GATEWAY,), (Role.AGENT,)),
        description="Roles grouped into processes; roles are api, controller, gateway, agent.",
    )
    api: ApiSettings = Field(default=ApiSettings(), description="The HTTP face.")
    gateway: GatewaySettings = Field(default=GatewaySettings(), description="The SSH front door.")
    ports: PortSettings = Field(default=PortSettings(), description="Ports that tasks may get.")
    engine: EngineSettings = Field(default=EngineSettings(), description="What runs tasks.")
    virtual_clusters: tuple[str, ...] = Field(
        default=("default",), min_length=1, description="Names of the virtual clusters that documents may name."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(default="info", description="How much is logged.")
    log_dir: Path | None = Field(
        default=None,
        description="Directory of log files, one a process, rotated by size. None given: standard error.",
    )
    log_file_bytes: int = Field(
        default=8_388_608, ge=65536, description="Bytes after which a log file is rotated (three old ones are kept)."
    )

    @field_serializer("database", when_used="json-unless-none")
    def _database_text(self, value: SecretStr, info: SerializationInfo) -> str:
        """The URL itself only for our own child processes; masked everywhere else."""
        reveal = isinstance(info.context, dict) and info.context.get("reveal") is True
        return value.get_secret_value() if reveal else str(value)

    @model_validator(mode="after")
    def _roles_once(self) -> Self:
        roles = [role for group in self.processes for role in group]
        if not all(self.processes) or not roles:
            raise ValueError("processes: each process needs at least one role")
        twice = next((role for role in roles if roles.count(role) > 1), None)
        if twice is not None:
            raise ValueError(f"processes: the role {twice} stands in two places")
        return self

    @property
    def token_path(self) -> Path:
        """The token file, wherever it was put."""
        return self.api.token_file or self.data_dir / "token"

    @property
    def database_url(self) -> str:
        """The SQLAlchemy URL; may hold a password."""
        if self.database is not None:
            return self.database.get_secret_value()
        return f"sqlite:///{self.data_dir / 'pai.sqlite'}"

    def reveal(self, version: str) -> bytes:
        """All of it as JSON with its secrets and our version, for inherited descriptors only."""
        values = self.model_dump(mode="json", context={"reveal": True})
        return json.dumps({**values, "version": version}).encode()
