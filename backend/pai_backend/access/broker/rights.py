"""May this credential enter this job, and what may its login do there? Pure: the clock's reading comes in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import reduce

from pai_backend.model.ids import JobUid
from pai_backend.model.job import Job
from pai_backend.model.rights import EVERYTHING as EVERYTHING
from pai_backend.model.rights import NOTHING as NOTHING
from pai_backend.model.rights import Limits as Limits
from pai_backend.model.rights import Sftp as Sftp
from pai_backend.model.rights import narrower as narrower
from pai_backend.model.rights import wider
from pai_backend.store.grants import Share as Share


class CredentialKind(StrEnum):
    """What proved itself."""

    KEY = "key"
    """A public key that its user registered."""
    JOB_KEY = "job-key"
    """A job's own key pair, which its owner downloaded."""
    DOCUMENT_KEY = "document-key"
    """A public key that the job's own document names (``userssh`` of the ssh plugin)."""
    CERTIFICATE = "certificate"
    """A certificate that the broker issued."""


@dataclass(frozen=True)
class Credential:
    """A user who has proved to hold a private key, and what that is good for.

    ``serial``: a certificate's. ``job``: the only job it is for; None for whatever the user may enter.
    ``principals``: the aliases that a certificate names, of jobs or of tasks (``<job>--<role>-<index>``); None: any.
    """

    user: str
    fingerprint: str
    kind: CredentialKind
    serial: int | None = None
    job: JobUid | None = None
    limits: Limits = EVERYTHING
    expires_at: datetime | None = None
    principals: frozenset[str] | None = None
    within: str = ""
    """The virtual cluster whose jobs it is limited to; empty: it is not."""
    as_admin: bool = False
    """An administrator's, who has said why, for the one job of another user that it names."""


def may_enter(
    job: Job, credential: Credential, shares: Sequence[Share], now: datetime, task_alias: str = ""
) -> Limits | None:
    """What the credential's login may do in this job, or None when it may not enter it.

    The job's owner may do what the credential allows; a user with whom the job is shared, what that and any of the
    shares allow, of which one is the user's own and others are those of groups. An
    administrator has no special rights here, except by a certificate that was issued for this job and a reason.
    ``task_alias``: the alias of the task that is meant, for certificates that name tasks; empty before it is known,
    and a certificate for any task of the job gets in then.
    """
    if credential.expires_at is not None and credential.expires_at <= now:
        return None
    if credential.job is not None and credential.job != job.uid:
        return None
    if credential.within not in ("", job.virtual_cluster):
        return None
    if credential.principals is not None and not _is_named(job.alias, task_alias, credential.principals):
        return None
    if job.user == credential.user or (credential.as_admin and credential.job == job.uid):
        return credential.limits
    given = [each.limits for each in shares if _lets_in(each, job, credential.user, now)]
    return narrower(credential.limits, reduce(wider, given)) if given else None


def _lets_in(share: Share, job: Job, user: str, now: datetime) -> bool:
    return share.job == job.uid and share.is_for(user) and is_living(share, now)


def is_living(share: Share, now: datetime) -> bool:
    """Whether the share has not ended by itself."""
    return share.expires_at is None or share.expires_at > now


def _is_named(alias: str, task_alias: str, principals: frozenset[str]) -> bool:
    if alias in principals or task_alias in principals:
        return True
    return not task_alias and any(principal.startswith(f"{alias}--") for principal in principals)
