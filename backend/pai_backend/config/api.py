"""The keys of the HTTP API: where it listens, who may come, and limits of what they ask for."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Self

from pydantic import Field, SecretStr, field_validator, model_validator

from pai_backend.config.oidc import OidcSettings
from pai_backend.config.secret_text import SecretText
from pai_backend.model.base import Model
from pai_backend.model.urls import is_http_url


class TokenSettings(Model):
    """A bearer token and whom it stands for."""

    user: str = Field(min_length=1, description="User the token stands for.")
    token: SecretText = Field(min_length=16, description="The token, at least 16 characters.")
    admin: bool = Field(default=False, description="May see and change the jobs of everyone.")


class UserSettings(Model):
    """A user who may sign in with a password."""

    name: str = Field(min_length=1, description="Name of the user, unique.")
    password_hash: SecretText | None = Field(
        default=None, description="Argon2 hash of the password, as `python -m pai_backend hash-password` prints it."
    )
    admin: bool = Field(default=False, description="May see and change the jobs of everyone.")
    email: str = Field(default="", description="Shown in the user's profile.")

    @field_validator("password_hash")
    @classmethod
    def _is_a_hash(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not value.get_secret_value().startswith("$argon2"):
            raise ValueError("must be an Argon2 hash; make one with `python -m pai_backend hash-password`")
        return value


class JupyterHubSettings(Model):
    """A JupyterHub that says whose its servers' tokens are."""

    api_url: str = Field(
        default="",
        description="REST API of a JupyterHub whose users are users here, such as `https://hub.example.org/hub/api`: "
        "servers of its users then come with the token that the Hub gave them (`docs/connect/jupyterhub.md`).",
    )
    service: str = Field(
        default="pai",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$",
        description="Name of this backend among the Hub's services: who may come has `access:services!service=NAME`.",
    )
    take_names: bool = Field(
        default=False,
        description="Whether a user of the Hub is also that of the same name who was here before. Else only who came "
        "by the Hub first is that user.",
    )

    @field_validator("api_url")
    @classmethod
    def _is_an_address(cls, value: str) -> str:
        if value and not is_http_url(value):
            raise ValueError("must be a URL such as https://hub.example.org/hub/api")
        return value.rstrip("/")


class TlsSettings(Model):
    """The API by https, where no proxy in front ends TLS."""

    certificate: Path | None = Field(
        default=None,
        description="File with the certificate of the API's host, and of `*.<api.service_domain>`, in PEM, with those "
        "that signed it behind. With it the API speaks https alone. A file that is renewed is read within a second.",
    )
    key: Path | None = Field(default=None, description="File with the private key of the certificate, in PEM.")

    @model_validator(mode="after")
    def _both(self) -> Self:
        if (self.certificate is None) != (self.key is None):
            raise ValueError("certificate and key belong together: name both files")
        return self


class ApiSettings(Model):
    """The HTTP API."""

    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(
        default=0, ge=0, le=65535, description="Port to listen on; 0 means any free one, kept over restarts."
    )
    public_url: str | None = Field(
        default=None, description="Base URL under which users reach the API, behind a proxy."
    )
    proxies: tuple[IPv4Network | IPv6Network, ...] = Field(
        default=(),
        description="Addresses or networks of proxies in front of the API, such as `10.0.0.7` or `10.1.0.0/16`. The "
        "address in their `X-Forwarded-For` counts as the client's: guessed passwords lock out that address alone. The "
        "header of other senders is ignored.",
    )
    token_file: Path | None = Field(
        default=None,
        description="File with the bearer token of `user`, made with mode 0600 when absent. "
        "Default: `token` in the data directory.",
    )
    tokens: tuple[TokenSettings, ...] = Field(
        default=(), description="More bearer tokens: a list of `{user, token, admin}`. Secret, so not a flag."
    )
    users: tuple[UserSettings, ...] = Field(
        default=(),
        description="Users who may sign in with a password: a list of `{name, password_hash, admin, email}`. "
        "Administrators add others while the backend runs (`pai user add`). Secret, so not a flag.",
    )
    jupyterhub: JupyterHubSettings = Field(
        default=JupyterHubSettings(), description="A JupyterHub that says whose its servers' tokens are."
    )
    oidc: OidcSettings = Field(default=OidcSettings(), description="A provider of OpenID Connect that signs users in.")
    tls: TlsSettings = Field(default=TlsSettings(), description="The API by https, without a proxy in front.")
    anonymous_v1_list: bool = Field(
        default=False,
        description="Whether REST v1 lists the jobs of all users without a token, as OpenPAI's does: names, owners and "
        "states, and nothing else about them.",
    )
    requests_per_minute: int = Field(default=0, ge=0, description="Requests of one user in a minute; 0: no limit.")
    lists_per_minute: int = Field(
        default=0, ge=0, description="Requests of one user for job lists in a minute; 0: no limit."
    )
    submissions_per_hour: int = Field(default=0, ge=0, description="Jobs one user submits in an hour; 0: no limit.")
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

    @field_validator("public_url")
    @classmethod
    def _is_an_address(cls, value: str | None) -> str | None:
        if value and not is_http_url(value):
            raise ValueError("must be a URL such as https://pai.example.org")
        return value
