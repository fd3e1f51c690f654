"""Settings of the engine ``containers``: values that its pure parts take."""

from __future__ import annotations

import ipaddress
from datetime import timedelta
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


class ImageSettings(Model):
    """How long images stay on the machine."""

    most_bytes: int = Field(
        default=0,
        ge=0,
        description="Bytes of all images together above which those are removed that were not used for the longest "
        "time; 0: no limit by bytes. Never removed: what a task uses, what a job that has not ended, a template of the "
        "site, `jobs.images` or `keep` names, and the runtime image.",
    )
    keep_days: float = Field(
        default=0, ge=0, description="Days after its last use when an image is removed; 0: no limit by age."
    )
    keep: tuple[str, ...] = Field(default=(), description="Names of images that always stay.")
    others: bool = Field(
        default=False,
        description="Whether images that people put on the machine are removed as well, once tasks used them. Default: "
        "only those that the backend fetched.",
    )

    @property
    def rule(self) -> tuple[int | None, timedelta | None, bool]:
        """The most bytes and the longest time without use, None: no limit; and whether others' images go, too."""
        return self.most_bytes or None, timedelta(days=self.keep_days) if self.keep_days else None, self.others


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
    images: ImageSettings = Field(default_factory=ImageSettings, description="How long images stay on the machine.")
    arguments: tuple[str, ...] = Field(
        default=(), description="More arguments of `podman run`, such as `--security-opt=no-new-privileges`."
    )
