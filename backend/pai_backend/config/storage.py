"""The keys about where jobs find inputs and leave outputs."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, Secret, SerializationInfo, field_serializer, field_validator, model_validator

from pai_backend.config.secret_text import revealed
from pai_backend.model.base import Model
from pai_backend.storage.faults import StorageFault
from pai_backend.storage.uris import parse


def _open_uri(text: str) -> str:
    """A path or URI that jobs are told, so that it may hold no password."""
    try:
        place = parse(text)
    except StorageFault as fault:
        raise ValueError(f"is not a storage location: {fault.line()}") from None
    if place.secrets:
        raise ValueError("must not hold a password; put it into storage.options")
    return place.uri


class MountSettings(Model):
    """A team storage that v2 documents name in ``extras.storages``."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$", description="Name that documents use.")
    uri: str = Field(description="Absolute path, or URI.")
    users: tuple[str, ...] = Field(default=(), description="Who may use it; none means everyone.")

    _uri = field_validator("uri")(_open_uri)


class StorageSettings(Model):
    """Where jobs find inputs and leave outputs."""

    default_uri: str | None = Field(
        default=None,
        description="The default file system, `$PAI_DEFAULT_FS_URI` in jobs: an absolute path, or a URI such as "
        "`hdfs://namenode:8020`. Default: `fs` in the data directory.",
    )
    options: dict[str, Secret[dict[str, Any]]] = Field(
        default={},
        description="fsspec's options by scheme, e.g. `{s3: {key: …, secret: …}}`. They are the backend's own: "
        "no task sees them. Secret, so not a flag.",
    )
    mounts: tuple[MountSettings, ...] = Field(
        default=(), description="Team storages that documents may name: a list of `{name, uri, users}`."
    )
    shared: tuple[str, ...] = Field(
        default=(),
        description="Directories at the top of the default file system that everyone may read and write over the API, "
        "besides the one with their own name.",
    )
    max_file_bytes: int = Field(
        default=107_374_182_400, ge=1, description="Largest file that is accepted over the API, in bytes."
    )
    quota_bytes: int = Field(
        default=0,
        ge=0,
        description="Bytes that a user may have in their own directory and their jobs' outputs together, over the API; "
        "0: no limit.",
    )
    shared_quota_bytes: int = Field(
        default=0, ge=0, description="Bytes that each shared directory may hold, over the API; 0: as `quota_bytes`."
    )

    @field_validator("default_uri")
    @classmethod
    def _default_is_open(cls, value: str | None) -> str | None:
        if value is None:
            return None
        uri = _open_uri(value).rstrip("/")  # documents put /path behind it
        if not uri:
            raise ValueError("must be a directory below the root of this machine")
        return uri

    @field_validator("shared")
    @classmethod
    def _shared_are_names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not name.isprintable() or "/" in name or name in ("", ".", "..", "Output"):
                raise ValueError("must be names of directories, without a slash, and not Output")
        return value

    @model_validator(mode="after")
    def _distinct_mounts(self) -> Self:
        names = [mount.name for mount in self.mounts]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"has two mounts with the name {twice}")
        return self

    @field_serializer("options", when_used="json")
    def _options_text(self, value: dict[str, Secret[dict[str, Any]]], info: SerializationInfo) -> dict[str, Any]:
        """The options themselves only for our own child processes; masked everywhere else."""
        return {scheme: revealed(secret, info) for scheme, secret in value.items()}
