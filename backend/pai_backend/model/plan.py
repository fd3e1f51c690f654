"""What an engine is given to run one task: values only, so that pure rooms can build it."""

from __future__ import annotations

from pydantic import Field, SecretStr

from pai_backend.model.base import Model
from pai_backend.model.ids import TaskUid
from pai_backend.model.node import Placement


class SshPlan(Model):
    """The task's SSH server: it must present this host key and accept exactly these keys."""

    port: int = Field(description="Leased port of the task's machine that the server listens on.")
    host_key: SecretStr = Field(description="OpenSSH private key, PEM text.")
    authorized_keys: tuple[str, ...] = Field(description="Public keys in authorized_keys form, one each.")


class TaskPlan(Model):
    """All that an engine needs to run one task."""

    uid: TaskUid
    job_name: str
    user: str
    role: str
    index: int
    image: str
    command: str = Field(description="Shell text for exactly one bash parse (bash -c).")
    env: dict[str, str] = Field(description="The whole PAI environment; the engine adds only what it must.")
    placement: Placement
    cpus: int = 1
    memory_mb: int = 0
    shm_mb: int = 64
    ssh: SshPlan | None = None
