"""Settings of the engine ``containers``: values that its pure parts take."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, field_validator, model_validator

from pai_backend.model.base import Model
from pai_backend.model.pod_settings import MountPath

HostPath = Annotated[str, StringConstraints(pattern=r"^/[^:\x00]*$", max_length=4096)]
"""Absolute. Podman's ``--volume`` separates by colons."""


class ContainerMount(Model):
    """A directory of the machine that every task has."""

    source: HostPath = Field(
        description="Absolute path on the machine. `{user}` stands for the name of the task's user."
    )
    path: MountPath | None = Field(default=None, description="Where tasks have it. Default: under the same path.")
    read_only: bool = Field(default=False, description="Whether tasks may only read it.")

    @model_validator(mode="after")
    def _own_path_for_users(self) -> Self:
        if self.path is None and "{user}" in self.source:
            raise ValueError("path is required with {user}: a document must find it under one path for all users")
        return self

    @property
    def place(self) -> str:
        """Where tasks have it."""
        return self.source if self.path is None else self.path


class ContainerSettings(Model):
    """How tasks become containers of this machine."""

    @field_validator("addresses")
    @classmethod
    def _is_a_network(cls, value: str) -> str:
        try:
            network = ipaddress.IPv4Network(value)
        except ValueError as error:
            raise ValueError(f"{error}; write a network such as 10.201.0.0/16") from None
        if network.prefixlen > 24:
            raise ValueError(f"{value} has room for a few jobs only; give at least a /24")
        return value

    podman: str = Field(
        default="podman", min_length=1, description="The program, by name or path: Podman 4.3 or later."
    )
    runtime_image: str | None = Field(
        default=None,
        min_length=1,
        description="Image of the runtime bundle (launcher, SSH server, bash): `make runtime` builds it. Required with "
        "`engine.kind: containers`.",
    )
    pull: Literal["missing", "always", "never"] = Field(
        default="missing",
        description="When the image of a task is fetched: where it is not here, before each start, never.",
    )
    addresses: str = Field(
        default="10.201.0.0/16",
        description="Private addresses for the networks of jobs, which nothing else near the machine has.",
    )
    mounts: tuple[ContainerMount, ...] = Field(default=(), description="Directories that every task has.")
    arguments: tuple[str, ...] = Field(
        default=(), description="More arguments of `podman run`, such as `--security-opt=no-new-privileges`."
    )
