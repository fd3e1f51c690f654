"""Certificates of users: issuing, listing, revoking, and changing the key that signs them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import timedelta

from pai_backend.access.broker import authority
from pai_backend.access.broker.certificates import MOST_PRINCIPALS
from pai_backend.access.keys import parse_public_key
from pai_backend.api.context import ApiContext
from pai_backend.api.key_wire import AuthorityWire, CertificateList, CertificateWire, IssuedCertificate, NewCertificate
from pai_backend.api.services.access import enter_as_admin
from pai_backend.api.services.shares import find_entered
from pai_backend.auth.policy import may_enter
from pai_backend.auth.users import User
from pai_backend.model.alias import task_alias
from pai_backend.model.errors import Forbidden, InvalidParameters, NoSuchCertificate
from pai_backend.model.job import Job, State
from pai_backend.model.rights import limits_of, narrower, words_of
from pai_backend.model.text import Text
from pai_backend.store.base import JobFilter, Sight
from pai_backend.store.grants import Act, Certificate, Share, UserCa

_LIVING = tuple(state for state in State if not state.final)


class CertificateService:
    """Certificates. ``source`` is the address that the caller's request came from, for the audit."""

    def __init__(self, ctx: ApiContext, source: str) -> None:
        self._ctx, self._source = ctx, source

    def _act(self, user: User) -> Act:
        return Act(user.name, self._ctx.clock(), self._source)

    async def issue(self, user: User, new: NewCertificate) -> IssuedCertificate:
        """Certify a public key for jobs that the caller may enter.

        For a job that is shared with the caller, the certificate says and lasts no more than the share. Raises
        InvalidParameters, NoSuchJob, Forbidden (another user's job, without a reason).
        """
        act = self._act(user)
        key = parse_public_key(new.public_key)
        end = act.at + timedelta(seconds=new.lifetime_s)
        terms = Certificate(
            serial=0,
            user=user.name,
            fingerprint=key.fingerprint,
            ca="",
            principals=(),
            limits=limits_of(new.only, pty=new.pty),
            issued_at=act.at,
            expires_at=user.until(end) or end,
            made_by=user.maker,
            within=user.within,
        )
        if new.job is None:
            terms = _named(await self._of_all(terms, user), new.principals)
        else:
            job, share = await find_entered(self._ctx, user, new.job)
            if share is None and not may_enter(user, job):
                terms = await self._as_admin(terms, user, new, job)
            terms = _named(_of_job(terms, job, share), new.principals, _task_aliases(job))
        made, line = await authority.issue(self._ctx.store, terms, key.line, act)
        return IssuedCertificate(certificate=line, **dict(_shown(made)))

    async def list(self, user: User) -> CertificateList:
        """The caller's certificates that are accepted now; everybody's for an administrator.

        By a token that is limited to a virtual cluster, those that it has had made.
        """
        return CertificateList(data=tuple(_shown(certificate) for certificate in await self._kept(user)))

    async def revoke(self, user: User, serial: int) -> None:
        """Refuse a certificate of the caller, of anybody for an administrator. Raises NoSuchCertificate."""
        if user.within and serial not in {kept.serial for kept in await self._kept(user)}:
            raise NoSuchCertificate(
                Text("This token has had no certificate {serial} made.", serial=serial),
                hint=Text("`pai keys certificates` lists those it has."),
            )
        await self._ctx.store.grants.revoke(None if user.admin else user.name, serial, self._act(user))

    async def authority(self, user: User) -> AuthorityWire:
        """Who certifies users."""
        return _authority(await authority.accepted(self._ctx.store, self._act(user)))

    async def rotate(self, user: User) -> AuthorityWire:
        """Certify with a new key from now on. Raises Forbidden."""
        if not user.admin:
            raise Forbidden(
                Text("Only an administrator may change the key that certifies users."), hint=Text("Ask one.")
            )
        await authority.rotate(self._ctx.store, self._act(user))
        return await self.authority(user)

    async def _kept(self, user: User) -> Sequence[Certificate]:
        found = await self._ctx.store.grants.certificates(None if user.admin else user.name, self._ctx.clock())
        return [kept for kept in found if not user.within or kept.made_by == user.maker]

    async def _as_admin(self, terms: Certificate, user: User, new: NewCertificate, job: Job) -> Certificate:
        """For another user's job, whose owner is told. Raises Forbidden."""
        until = f"{terms.expires_at:%Y-%m-%d %H:%M:%S} UTC"
        reason = new.reason if new.as_admin else ""
        await enter_as_admin(self._ctx, user, job, reason, f"certificate until {until}")
        return replace(terms, reason=reason.strip())

    async def _of_all(self, terms: Certificate, user: User) -> Certificate:
        """For all jobs of the caller, or of a limited token, that have not ended; the newest if there are very many."""
        own = Sight(user.name, within=user.within)
        wanted = JobFilter(sight=own, states=_LIVING, limit=MOST_PRINCIPALS, count=False)
        jobs, _ = await self._ctx.store.jobs.page(wanted)
        if not jobs:
            raise InvalidParameters(
                Text("You have no job to certify a key for."),
                hint=Text("Submit one first, or name one that is shared."),
            )
        return replace(terms, principals=tuple(job.alias for job in jobs))


def _of_job(terms: Certificate, job: Job, share: Share | None) -> Certificate:
    """For one job, the caller's own or one that is shared with the caller. Raises InvalidParameters when it has ended,
    unless a login of its owner runs it again.
    """
    if job.state.final and (share is not None or not job.spec.start_on_login):
        raise InvalidParameters(Text("The job {id} has ended.", id=job.id), hint=Text("Submit it again to enter it."))
    if share is not None:
        end = terms.expires_at if share.expires_at is None else min(terms.expires_at, share.expires_at)
        terms = replace(terms, limits=narrower(terms.limits, share.limits), expires_at=end)
    return replace(terms, principals=(job.alias,), job=job.uid)


def _task_aliases(job: Job) -> frozenset[str]:
    return frozenset(task_alias(job.alias, job.spec, task.role, task.index) for task in job.tasks)


def _named(terms: Certificate, wanted: Sequence[str] | None, more: Collection[str] = ()) -> Certificate:
    """Only the names that were asked for, of those that it would have and ``more``. Raises InvalidParameters."""
    if wanted is None:
        return terms
    foreign = [name for name in wanted if name not in terms.principals and name not in more]
    if foreign or not wanted:
        if foreign:
            message = Text("{alias} is not an alias that you may enter.", alias=repr(foreign[0][:100]))
        else:
            message = Text("No alias is named.")
        raise InvalidParameters(message, hint=Text("Name aliases of your jobs; for a task's, name its job too."))
    return replace(terms, principals=tuple(dict.fromkeys(wanted)))


def _authority(cas: Sequence[UserCa]) -> AuthorityWire:
    return AuthorityWire(
        keys=tuple(f"{ca.public_key} pai-user-ca-{ca.number}" for ca in cas), fingerprint=cas[0].fingerprint
    )


def _shown(made: Certificate) -> CertificateWire:
    return CertificateWire(
        serial=made.serial,
        user=made.user,
        fingerprint=made.fingerprint,
        principals=made.principals,
        only=words_of(made.limits),
        pty=made.limits.pty,
        job=made.job,
        issued_at=made.issued_at,
        expires_at=made.expires_at,
        last_used_at=made.last_used_at,
        last_used_from=made.last_used_from,
    )
