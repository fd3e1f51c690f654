"""What is kept of keys, certificates and shares, as the other rooms see it, and who changed it and when.

Every change of these takes an :class:`Act` and writes its audit event in the same transaction: there is no change
without its event, and no event without its change.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from pai_backend.model.ids import JobUid
from pai_backend.model.rights import Limits

if TYPE_CHECKING:
    from pai_backend.store.base import UserKey

MOST_LISTED = 1000
"""Audit events that one answer holds at most."""


@dataclass(frozen=True)
class Act:
    """Who does something to keys, when, and from which address (empty: from this machine, by command)."""

    by: str
    at: datetime
    source: str = ""


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


class GrantStore(Protocol):
    """Keys, certificates, shares and their audit; a part of :class:`~pai_backend.store.base.Store`."""

    async def key(self, fingerprint: str) -> UserKey | None:
        """The registered key of that fingerprint, whoever has it, expired or not."""
        ...

    async def job_key(self, fingerprint: str) -> JobKey | None:
        """The job whose own key pair has that fingerprint, unless the job has ended."""
        ...

    async def certificate(self, serial: int) -> Certificate | None:
        """The certificate of that serial, revoked or expired or not, if it is still kept."""
        ...

    async def shares(self, job: JobUid) -> list[Share]:
        """With whom a job is shared, ended ones included until they are forgotten."""
        ...

    async def locked_out(self, users: Collection[str]) -> frozenset[str]:
        """Those of the users whom an administrator has locked out of SSH."""
        ...

    async def note_use(self, kind: str, name: str, at: datetime, source: str) -> None:
        """Remember the last use of a key (``name`` is its fingerprint) or certificate (its serial).

        A key that was registered in place of another takes its place now: the other one is removed.
        """
        ...

    async def user_cas(self, now: datetime) -> Sequence[UserCa]:
        """Whose certificates are accepted, the one that signs first: older ones until their certificates ran out."""
        ...
