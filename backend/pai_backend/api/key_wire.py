"""Bodies and answers about keys, certificates and shares."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import Field, field_validator

from pai_backend.api.queries import MAX_SEQ, Body, Query
from pai_backend.model.base import Model
from pai_backend.model.rights import WORDS

LONGEST_KEY_S = 10 * 366 * 86_400
CERTIFICATE_S, LONGEST_CERTIFICATE_S = 3600, 86_400
LINK_S, LONGEST_LINK_S = 86_400, 30 * 86_400
_ONLY = f"What it is limited to, any of {', '.join(WORDS)}; empty: nothing is forbidden."


class _OneLine(Body):
    @field_validator("comment", "name", check_fields=False)
    @classmethod
    def _is_one_line(cls, value: str) -> str:
        if not value.isprintable():
            raise ValueError("must be one line of printable text")
        return value


class NewKey(_OneLine):
    """An SSH public key to register."""

    public_key: str = Field(max_length=32768, description="One line of a `.pub` file.")
    comment: str = Field(default="", max_length=200)
    name: str = Field(default="", max_length=100, description="What its user calls it; empty: its comment.")
    lifetime_s: int | None = Field(
        default=None, ge=1, le=LONGEST_KEY_S, description="Seconds until it expires; null: valid until removed."
    )
    job: str | None = Field(default=None, max_length=300, description="The only job that it is for.")
    replaces: str = Field(
        default="", max_length=128, description="Fingerprint of the key that is removed when this one is first used."
    )


class KeyWire(Model):
    """A registered SSH public key."""

    fingerprint: str
    public_key: str
    comment: str
    added_at: datetime
    name: str
    expires_at: datetime | None
    job: str | None = Field(description="Uid of the only job that it is for.")
    replaces: str
    last_used_at: datetime | None = Field(description="To the minute.")
    last_used_from: str


class KeyList(Model):
    """The caller's keys."""

    data: tuple[KeyWire, ...]


class NewCertificate(Body):
    """A public key to have certified."""

    public_key: str = Field(max_length=32768, description="One line of a `.pub` file.")
    job: str | None = Field(default=None, max_length=300, description="The only job that it is for.")
    principals: tuple[str, ...] | None = Field(
        default=None, max_length=256, description="Aliases that it names; null: those of the job, or of all your jobs."
    )
    lifetime_s: int = Field(default=CERTIFICATE_S, ge=1, le=LONGEST_CERTIFICATE_S)
    only: tuple[str, ...] = Field(default=(), max_length=50, description=_ONLY)
    pty: bool = Field(default=True, description="Whether it allows a terminal.")
    as_admin: bool = Field(default=False, description="For another user's job; for administrators, with a reason.")
    reason: str = Field(default="", max_length=300, description="The reason, one line that the job's owner sees.")


class CertificateWire(Model):
    """A certificate that was issued."""

    serial: int
    user: str
    fingerprint: str = Field(description="Of the certified key.")
    principals: tuple[str, ...]
    only: tuple[str, ...]
    pty: bool
    job: str | None = Field(description="Uid of the only job that it is for.")
    issued_at: datetime
    expires_at: datetime
    last_used_at: datetime | None = Field(description="To the minute.")
    last_used_from: str


class IssuedCertificate(CertificateWire):
    """A new certificate, with the line of its file."""

    certificate: str = Field(description="The line of a `-cert.pub` file.")


class CertificateList(Model):
    """Certificates that are accepted now."""

    data: tuple[CertificateWire, ...]


class AuthorityWire(Model):
    """Who certifies users: lines for `TrustedUserCAKeys`, the one that signs now first."""

    keys: tuple[str, ...]
    fingerprint: str = Field(description="Of the key that signs now.")


class NewShare(Body):
    """Whom to let into a job, for how long, to do what."""

    user: str = Field(min_length=1, max_length=255, description="A user, or `group:NAME`.")
    lifetime_s: int | None = Field(default=None, ge=1, le=LONGEST_KEY_S, description="Null: until the job ends.")
    only: tuple[str, ...] = Field(default=(), max_length=50, description=_ONLY)


class NewLink(Body):
    """A link for looking at one service without an account."""

    label: str = Field(min_length=1, max_length=100)
    role: str | None = Field(default=None, max_length=255)
    index: int = Field(default=0, ge=0, le=MAX_SEQ)
    lifetime_s: int = Field(default=LINK_S, ge=1, le=LONGEST_LINK_S)


class ShareQuery(Query):
    """Which shares."""

    given: bool = Field(default=False, description="Those of the caller's own jobs, not those with the caller.")


class ShareWire(Model):
    """A job that another user may enter, or a link to one of its services."""

    job: str = Field(description="`user~name`.")
    uid: str
    alias: str
    user: str = Field(description="Who may enter: a user, or `group:NAME`; `link:ID` of a link.")
    is_link: bool = Field(description="Whether it is a link: for reading, without an account.")
    services: tuple[str, ...] = Field(description="Labels of the services that it opens.")
    only: tuple[str, ...]
    created_by: str
    created_at: datetime
    expires_at: datetime | None


class MadeLink(ShareWire):
    """A new link."""

    url: str = Field(description="Where it leads. It is shown this once.")


class ShareList(Model):
    """Shares that have not ended."""

    data: tuple[ShareWire, ...]


class KeyFormat(StrEnum):
    """How a private key is written."""

    OPENSSH = "openssh"
    PEM = "pem"
    """RSA only, for old clients."""
    PPK = "ppk"
    """PuTTY 0.75 and newer."""
    PPK2 = "ppk2"
    """Older PuTTY, WinSCP and FileZilla."""


class KeyType(StrEnum):
    """Which of a job's key pairs."""

    ED25519 = "ed25519"
    RSA = "rsa"


class JobKeyQuery(Query):
    """Which of a job's private keys, written how."""

    format: KeyFormat = Field(default=KeyFormat.OPENSSH, description="`pem` is RSA alone.")
    type: KeyType | None = Field(default=None, description="`ed25519`, except of `pem`, which is `rsa`.")


class Lockouts(Model):
    """Users whose SSH logins are refused."""

    data: tuple[str, ...]
