"""What is kept of keys, certificates and shares, as the other rooms see it, and who changed it and when.

Every change of these takes an :class:`Act` and writes its audit event in the same transaction: there is no change
without its event, and no event without its change.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pai_backend.model.account import VcGrants
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
    must_change_password: bool | None = None
    groups: tuple[str, ...] | None = None
    grants: VcGrants | None = None

    def profile(self) -> dict[str, Any]:
        """Fields of :class:`~pai_backend.model.account.Account` to change: not those of a configured user."""
        fields = {
            "admin": self.admin,
            "email": self.email,
            "password_hash": self.password_hash,
            "must_change_password": self.must_change_password,
        }
        return {name: value for name, value in fields.items() if value is not None}

    def is_empty(self) -> bool:
        """Whether nothing is to change."""
        return all(value is None for value in vars(self).values())


@dataclass(frozen=True)
class Holdings:
    """All that belongs to a user, or lets them in."""

    active_jobs: tuple[str, ...]
    """Names of jobs that have not ended."""
    ended_jobs: int
    addresses: tuple[str, ...]
    """Workspace names."""
    templates: int
    drafts: int
    keys: int
    certificates: int
    tokens: int
    """Sessions and application tokens."""
    shares_given: int
    """Shares and links of the user's jobs."""
    shares_taken: int
    """Jobs of others that are shared with the user."""


@dataclass(frozen=True)
class GroupUpdate:
    """What is to change of a group; None stays as it is."""

    description: str | None = None
    external_name: str | None = None
    members: tuple[str, ...] | None = None
    grants: VcGrants | None = None


GROUP = "group:"
"""What the names of groups begin with where a job is shared with one; no user's name holds a colon."""


@dataclass(frozen=True)
class Share:
    """A job that its owner lets another user, or a group, enter, one at most for each job and either; or a link.

    A link opens one service.
    """

    job: JobUid
    user: str
    """Who may enter: a user, or ``GROUP`` and the name of a group; of a link its name."""
    limits: Limits
    created_at: datetime
    created_by: str
    expires_at: datetime | None = None
    made_by: str = ""
    """As of :class:`Certificate`."""
    link: str = ""
    """Digest of the token that opens it; empty: it is for a user."""
    service: str = ""
    """Alias of the service that a link opens."""
    members: frozenset[str] = frozenset()
    """Who is in the group now; empty for other shares."""

    def is_for(self, user: str) -> bool:
        """Whether it is for that user, or for a group that the user is in now."""
        return not self.link and (self.user == user or user in self.members)


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
    within: str = ""
    """The virtual cluster whose jobs it is limited to, as that token is; empty: it is not."""


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
