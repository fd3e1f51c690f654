"""What is kept of keys, certificates and shares, as the other rooms see it, and who changed it and when.

Every change of these takes an :class:`Act` and writes its audit event in the same transaction: there is no change
without its event, and no event without its change.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pai_backend.model.ids import JobUid
from pai_backend.model.rights import Limits

MOST_LISTED = 1000
"""Audit events that one answer holds at most."""


@dataclass(frozen=True)
class Act:
    """Who does something to keys, when, and from which address (empty: from this machine, by command)."""

    by: str
    at: datetime
    source: str = ""


@dataclass(frozen=True)
class UserUpdate:
    """What is to change of a user; None stays as it is."""

    admin: bool | None = None
    email: str | None = None
    password_hash: str | None = field(default=None, repr=False)

    def given(self) -> dict[str, Any]:
        """What is to change, by the names of :class:`~pai_backend.model.account.Account`."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class Share:
    """A job that its owner lets another user enter. One at most for each job and user."""

    job: JobUid
    user: str
    """Who may enter."""
    limits: Limits
    created_at: datetime
    created_by: str
    expires_at: datetime | None = None
    made_by: str = ""
    """As of :class:`Certificate`."""


@dataclass(frozen=True)
class Certificate:
    """A certificate that was issued. ``fingerprint`` is that of the certified key, ``ca`` that of who signed it."""

    serial: int
    user: str
    fingerprint: str
    ca: str
    principals: tuple[str, ...]
    limits: Limits
    issued_at: datetime
    expires_at: datetime
    job: JobUid | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None
    last_used_from: str = ""
    reason: str = ""
    """Why an administrator enters another user's job with it; empty: it is for what its user may enter."""
    made_by: str = ""
    """Digest of the application token that had it made, and with which it ends; empty: none had."""


@dataclass(frozen=True)
class JobKey:
    """The public half of a key pair of a job's own, and the job's owner."""

    job: JobUid
    user: str
    fingerprint: str


@dataclass(frozen=True)
class UserCa:
    """A key that signs, or signed, certificates of users. ``public_key`` is ``type base64``; 1 is the first one."""

    number: int
    public_key: str
    fingerprint: str
    made_at: datetime


@dataclass(frozen=True)
class KeyEvent:
    """Something that was done to keys: never with a private half.

    ``user``: whose key, certificate or share it is. ``subject``: a fingerprint, a serial or a user.
    """

    position: int
    at: datetime
    type: str
    user: str
    by: str
    source: str
    subject: str
    job: JobUid | None = None
    detail: str = ""
