"""What is kept of keys, certificates and shares, as the other rooms see it, and who changed it and when.

Every change of these takes an :class:`Act` and writes its audit event in the same transaction: there is no change
without its event, and no event without its change.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from pai_backend.model.account import Account
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


class GrantStore(Protocol):
    """Keys, certificates, shares and their audit; a part of :class:`~pai_backend.store.base.Store`."""

    async def key(self, fingerprint: str) -> UserKey | None:
        """The registered key of that fingerprint, of any user, expired or not."""
        ...

    async def job_key(self, fingerprint: str) -> JobKey | None:
        """The job whose own key pair has that fingerprint, unless the job has ended."""
        ...

    async def certificate(self, serial: int) -> Certificate | None:
        """The certificate of that serial, revoked or expired or not, if it is still kept."""
        ...

    async def certificates(self, user: str | None, now: datetime) -> list[Certificate]:
        """Certificates of a user, or of all, that are neither revoked nor over, oldest first."""
        ...

    async def issue(self, made: Certificate, act: Act) -> None:
        """Write down a certificate, to be called before it is handed out."""
        ...

    async def revoke(self, user: str | None, serial: int, act: Act) -> None:
        """Refuse a certificate from now on. Idempotent. ``user``: whose it must be, None for anybody's.

        Raises NoSuchCertificate.
        """
        ...

    async def user_cas(self, now: datetime) -> Sequence[UserCa]:
        """Whose certificates are accepted, the one that signs first: older ones until their certificates ran out."""
        ...

    async def ca_key(self, number: int) -> str | None:
        """The private half (OpenSSH PEM) of the key that signs now; None for one that no longer signs."""
        ...

    async def follow_ca(self, after: int, made: UserCa, private_pem: str, act: Act) -> UserCa:
        """Let ``made`` sign instead of number ``after`` (0: none signs yet), whose private half is deleted.

        Returns the one that signs now: another than ``made`` when another caller was faster.
        """
        ...

    async def shares(self, job: JobUid) -> list[Share]:
        """With whom a job is shared, ended ones included until they are forgotten."""
        ...

    async def shared_with(self, user: str, now: datetime) -> list[Share]:
        """What a user may enter of others' jobs that have not ended."""
        ...

    async def shared_by(self, user: str, now: datetime) -> list[Share]:
        """What others may enter of a user's jobs that have not ended."""
        ...

    async def share(self, share: Share, act: Act) -> None:
        """Let a user in, on these terms instead of earlier ones. Raises ReadOnlyJob for a job that has ended."""
        ...

    async def unshare(self, job: JobUid, user: str, act: Act) -> None:
        """End a user's share. Raises NoSuchShare."""
        ...

    async def locked_out(self, users: Collection[str]) -> frozenset[str]:
        """Those of the users whom an administrator has locked out."""
        ...

    async def keep_accounts(self, accounts: Mapping[str, bool]) -> None:
        """Tell who the users are, each with whether they administer: what the configuration says now."""
        ...

    async def shut_out(self, users: Collection[str]) -> Mapping[str, bool]:
        """Those of the users who may enter nothing, each with whether they are locked out; the others are gone."""
        ...

    async def admins(self, users: Collection[str]) -> frozenset[str]:
        """Those of the users who administer."""
        ...

    async def added_users(self) -> list[Account]:
        """Users whom administrators have added, by name."""
        ...

    async def add_user(self, account: Account, act: Act, *, again: bool) -> None:
        """Add a user. Raises UserExists, also for a name that a removed user had, unless ``again``."""
        ...

    async def change_user(self, name: str, to: UserUpdate, act: Act, *, session: str) -> Account:
        """Change a user; a new password ends all their tokens but ``session``. Raises NoSuchUser."""
        ...

    async def remove_user(self, name: str, act: Act) -> None:
        """Remove a user, and what lets them in. Raises NoSuchUser, UserHasJobs."""
        ...

    async def lockouts(self) -> list[str]:
        """Everybody who is locked out."""
        ...

    async def lock_out(self, user: str, act: Act) -> None:
        """Refuse every request and login of a user, whatever proves it. Idempotent."""
        ...

    async def let_in(self, user: str, act: Act) -> None:
        """End a lockout. Idempotent."""
        ...

    async def note_key_use(self, fingerprint: str, at: datetime, source: str) -> None:
        """Remember the last use of a registered key, to the minute.

        A key that was registered in place of another takes its place now: the other one is removed.
        """
        ...

    async def note_certificate_use(self, serial: int, at: datetime, source: str) -> None:
        """Remember the last use of a certificate, to the minute."""
        ...

    async def note(
        self, type_: str, user: str, subject: str, act: Act, job: JobUid | None = None, token: str = ""
    ) -> None:
        """Write an audit event of something that changes nothing here, such as a download.

        ``token``: digest of the application token that did it; empty: none. Raises Unauthorized when it was revoked.
        """
        ...

    async def audit(self, user: str | None, before: int | None = None) -> list[KeyEvent]:
        """What was done to a user's keys, or to everybody's, the newest first: ``MOST_LISTED`` events at most.

        ``before``: only those with a smaller position.
        """
        ...
