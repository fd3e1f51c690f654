"""Who is this, what may they do in this job, and is that still so? Asked by the gateway; reads the store.

Nothing here is remembered between calls: a key that is removed, a certificate that is revoked or a share that is ended
counts at the next call, on every replica.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pai_backend.access.broker.rights import Credential, CredentialKind, Limits, Share, may_enter
from pai_backend.access.document_keys import document_keys
from pai_backend.model.errors import InvalidParameters
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Job
from pai_backend.model.tags import UnresolvedTag
from pai_backend.store.grants import Certificate

if TYPE_CHECKING:
    from pai_backend.store.sql import Store


@dataclass(frozen=True)
class CertificateFacts:
    """What a certificate says of itself, after the SSH library has checked its signature and its dates.

    ``ca`` and ``fingerprint`` are the SHA-256 fingerprints of the signing and of the certified key, ``public_key`` is
    the certified key as a line of authorized_keys.
    """

    serial: int
    fingerprint: str
    ca: str
    public_key: str = ""


async def by_public_key(store: Store, fingerprint: str, now: datetime) -> Credential | None:
    """Whose registered key or job key this is; None when it is unknown, removed or has expired, or when its user is
    locked out. Raises Unavailable.
    """
    credential = await _of_key(store, fingerprint) or await _of_job_key(store, fingerprint)
    return await _if_living(store, credential, now)


async def by_document(
    store: Store, job: Job | None, fingerprint: str, public_key: str, now: datetime
) -> Credential | None:
    """What a key opens that the job's own document names: this job, as its owner; None when it names another or none.

    ``public_key`` is a line of authorized_keys. Raises Unavailable.
    """
    if job is None or not any(role.ssh.authorized_keys for role in job.spec.task_roles):
        return None
    if public_key not in _named_in(job, await store.jobs.secrets(job.uid) if job.spec.secret_names else {}):
        return None
    return await _if_living(store, Credential(job.user, fingerprint, CredentialKind.DOCUMENT_KEY, job=job.uid), now)


def _named_in(job: Job, values: Mapping[str, Any]) -> Collection[str]:
    """The public keys of a document. Of one that was taken before its keys were looked at, those that are keys."""
    with contextlib.suppress(UnresolvedTag, InvalidParameters):
        roles = {role.ssh.authorized_keys: role.ssh for role in job.spec.task_roles}
        return {line for options in roles.values() for line in document_keys(options, values)}
    return ()


async def by_certificate(store: Store, facts: CertificateFacts, now: datetime) -> Credential | None:
    """Who holds this certificate; None when it is not one of ours, is revoked or expired, or its user is locked out.

    Rights and dates are those that were written down when it was issued. Raises Unavailable.
    """
    kept = await store.grants.certificate(facts.serial)
    if kept is None or kept.revoked_at is not None or (kept.ca, kept.fingerprint) != (facts.ca, facts.fingerprint):
        return None
    return await _if_living(store, _of_certificate(kept), now)


async def entrance(
    store: Store, credential: Credential, job: Job, now: datetime, task_alias: str = ""
) -> Limits | None:
    """What the credential may do in this job now: :func:`rights.may_enter` with its shares. Raises Unavailable."""
    if _is_over(credential, now):
        credential = await _renewed(store, credential, now) or credential
    return may_enter(job, credential, await _shares(store, credential, job, now), now, task_alias)


async def again(store: Store, credential: Credential, now: datetime) -> Credential | None:
    """The same credential as it is now; None when it is no longer valid: asked at every change of the store for live
    logins. Raises Unavailable.

    A certificate that has run out lives on in a newer one on the same terms for the same key: who had it renewed in
    time stays logged in. One that was revoked does not.
    """
    if credential.kind is CredentialKind.DOCUMENT_KEY:
        return await _if_living(store, credential, now)  # a document does not change
    if credential.kind is not CredentialKind.CERTIFICATE:
        return await by_public_key(store, credential.fingerprint, now)
    kept = await store.grants.certificate(credential.serial or 0)
    if not _is_over(credential, now):
        facts = None if kept is None else CertificateFacts(kept.serial, credential.fingerprint, kept.ca)
        return None if facts is None else await by_certificate(store, facts, now)
    if kept is not None and kept.revoked_at is not None:
        return None
    return await _if_living(store, await _renewed(store, credential, now), now)


async def note_use(store: Store, credential: Credential, now: datetime, source: str) -> None:
    """Remember that the credential has logged in, from the address ``source``. Raises Unavailable."""
    if credential.kind is CredentialKind.KEY:
        await store.grants.note_key_use(credential.fingerprint, now, source)
    elif credential.serial is not None:
        await store.grants.note_certificate_use(credential.serial, now, source)


def _of_certificate(kept: Certificate) -> Credential:
    return Credential(
        user=kept.user,
        fingerprint=kept.fingerprint,
        kind=CredentialKind.CERTIFICATE,
        serial=kept.serial,
        job=kept.job,
        limits=kept.limits,
        expires_at=kept.expires_at,
        principals=frozenset(kept.principals),
        as_admin=bool(kept.reason),
        within=kept.within,
    )


async def _renewed(store: Store, credential: Credential, now: datetime) -> Credential | None:
    """The certificate that lasts longest of those that say the same as one that is over; None when there is none."""
    if credential.kind is not CredentialKind.CERTIFICATE:
        return None
    terms = credential.fingerprint, credential.job, credential.limits, credential.as_admin, credential.within
    named = credential.principals or frozenset()
    living = await store.grants.certificates(credential.user, now)
    fitting = [
        kept for kept in living if (kept.fingerprint, kept.job, kept.limits, bool(kept.reason), kept.within) == terms
    ]
    fitting.sort(key=lambda kept: (named.issubset(kept.principals), kept.expires_at))
    return _of_certificate(fitting[-1]) if fitting else None


def _is_over(credential: Credential, now: datetime) -> bool:
    return credential.expires_at is not None and credential.expires_at <= now


async def _of_key(store: Store, fingerprint: str) -> Credential | None:
    kept = await store.grants.key(fingerprint)
    if kept is None:
        return None
    end = kept.expires_at
    return Credential(kept.user, fingerprint, CredentialKind.KEY, job=kept.job, expires_at=end, within=kept.within)


async def _of_job_key(store: Store, fingerprint: str) -> Credential | None:
    kept = await store.grants.job_key(fingerprint)
    return None if kept is None else Credential(kept.user, fingerprint, CredentialKind.JOB_KEY, job=kept.job)


async def _if_living(store: Store, credential: Credential | None, now: datetime) -> Credential | None:
    if credential is None or _is_over(credential, now):
        return None
    if await store.grants.shut_out((credential.user,)):
        return None
    if credential.as_admin and not await store.grants.admins((credential.user,)):
        return None
    return credential


async def _shares(store: Store, credential: Credential, job: Job, now: datetime) -> Sequence[Share]:
    """The job's shares; its owner needs none."""
    return () if job.user == credential.user else await store.grants.shares_in_force(JobUid(job.uid), now)
