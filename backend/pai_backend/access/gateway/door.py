"""The target of a login name, and whether a credential may enter it. Every question reads the store again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pai_backend.access.broker import lookup, rights
from pai_backend.access.broker.rights import Credential, CredentialKind, Limits
from pai_backend.access.gateway import names
from pai_backend.access.gateway.names import EntryPoint, LoginRefused, NotYet
from pai_backend.access.gateway.pace import Pace
from pai_backend.access.gateway.reasons import RefusalReason
from pai_backend.model.errors import NoSuchJob
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Job

if TYPE_CHECKING:
    from pai_backend.store.sql import Store

NO_JOB = JobUid("")
"""Asked for where a name means nothing, so that the answer takes the same work as for a job of another user."""

ANY_USER = "root"
"""Who OpenPAI's guides log in as. With a job's own key it means that job; such a key is good for no other."""

LOOK_S = 0.5  # between two looks at a job that is waited for
SAY_S = 30.0  # a waiting client hears something this often, so that a dead one is noticed

_STARTING = frozenset({CredentialKind.KEY, CredentialKind.CERTIFICATE})
"""Whose holder may start a job: what a user registered or had certified, not what is handed on with a job."""

_ENDED = {
    CredentialKind.KEY: "Your key was removed.",
    CredentialKind.JOB_KEY: "The job's own key is no longer valid.",
    CredentialKind.DOCUMENT_KEY: "The key of the job's document is no longer valid.",
    CredentialKind.CERTIFICATE: "Your certificate was revoked.",
}


def utc_now() -> datetime:
    """The clock's reading."""
    return datetime.now(UTC)


async def find_job(store: Store, name: names.LoginName, user: str = "") -> Job | None:
    """The job that a login name means, of any owner; the workspace names of ``user`` come first."""
    if name.alias:
        return await store.jobs.by_alias(name.alias, user)
    try:
        return await store.jobs.find(name.job, name.user)
    except NoSuchJob:
        return None


async def job_of(store: Store, uid: JobUid) -> Job | None:
    """The job of that uid; None when it is not kept any more."""
    try:
        return await store.jobs.get(uid)
    except NoSuchJob:
        return None


async def current(store: Store, credential: Credential) -> Credential | LoginRefused:
    """The credential on the terms it has now, or why it is no longer valid. Raises Unavailable."""
    now = utc_now()
    found = await lookup.again(store, credential, now)
    if found is not None and found.user == credential.user:
        return found
    if credential.expires_at is not None and credential.expires_at <= now:
        kind = "certificate" if credential.kind is CredentialKind.CERTIFICATE else "key"
        return LoginRefused(f"Your {kind} has expired.", RefusalReason.RIGHT_ENDED)
    for locked in (await store.grants.shut_out((credential.user,))).values():
        text = "An administrator has locked you out of SSH." if locked else "Your account was removed."
        return LoginRefused(text, RefusalReason.RIGHT_ENDED)
    return LoginRefused(_ENDED[credential.kind], RefusalReason.RIGHT_ENDED)


class Door:
    """The target of one login name."""

    def __init__(self, store: Store, text: str) -> None:
        self.text = text
        self.job_seen: JobUid | None = None
        """The job that the last look found, of any owner."""
        self._store, self._name = store, names.parse(text)
        self._may_start = False
        self._started: JobUid | None = None
        """The job that this login has asked to run again, until that is answered."""
        self._refusal = ""
        self._starts_for: str | None = None
        """The owner of the job that was last seen, if it starts on login and everything may be done there.

        Not the job itself: a door is kept as long as its login, and thousands of logins are open at a time."""

    async def _job(self, credential: Credential) -> Job | None:
        if self.text == ANY_USER and credential.kind is CredentialKind.JOB_KEY and credential.job is not None:
            job = await job_of(self._store, credential.job)
        else:
            job = await find_job(self._store, self._name, credential.user)
        self.job_seen = job.uid if job is not None else None
        return job

    async def named_key(self, fingerprint: str, public_key: str) -> Credential | None:
        """What a key is good for that the document of the job of this name names. Raises Unavailable.

        Who has no such key learns nothing of the job, not even by a clock.
        """
        pace = Pace()
        job = await find_job(self._store, self._name)
        found = await lookup.by_document(self._store, job, fingerprint, public_key, utc_now())
        if found is None:
            await pace.next_moment()
        return found

    async def admits(self, credential: Credential) -> bool:
        """Whether the credential may log in at all. One that is limited to other jobs of its user may not, so that the
        client tries its next one. A user who may not see the job is let in and gets the answer for an unknown name.
        """
        _, limits, known = await self._seen(credential)
        return limits is not None or not known

    async def entry(self, credential: Credential) -> tuple[EntryPoint, Limits]:
        """Where the task is, and what a login with the credential may do there. Raises LoginRefused, Unavailable."""
        found = await current(self._store, credential)
        if isinstance(found, LoginRefused):
            raise found
        credential = found
        job, limits, known = await self._seen(credential)
        if job is None:
            raise names.unknown(self.text)
        if limits is None:
            raise names.not_for(self.text) if known else names.unknown(self.text, RefusalReason.DENIED)
        if self.text == ANY_USER and job.alias != ANY_USER and len(job.tasks) > 1:
            raise names.ambiguous(job)
        return names.find_entry(job, self._name.rest), limits

    def starts(self, credential: Credential) -> bool:
        """Whether :meth:`wait` has the job run again once it has ended, because its document says so.

        Only for logins of its owner that may do everything there, after :meth:`admits`.
        """
        self._may_start = self._starts_for == credential.user and credential.kind in _STARTING
        return self._may_start

    async def _started_again(self, refused: LoginRefused) -> bool:
        """Whether a job that has ended is to run again; asks for that, once. Raises Unavailable."""
        wishes = self._store.login_starts
        if self._may_start and self.job_seen is not None and refused.reason is RefusalReason.ENDED:
            self._may_start, self._started = False, self.job_seen
            await wishes.ask(self._started, utc_now())
            return True
        if self._started is None:
            return False
        if self._started in await wishes.open():
            return True
        self._refusal = await wishes.refusal(self._started)
        self._started = None
        return not self._refusal  # it runs by now: the next look sees it, or that it has ended again

    async def wait(self, credential: Credential, seconds: float, say: Callable[[str], None]) -> None:
        """Return when the task can be entered, or never will be, or the time is up; ``say`` tells how it stands."""
        loop = asyncio.get_running_loop()
        end, said, said_at, seen = loop.time() + seconds, "", 0.0, -1
        while True:
            try:
                await self.entry(credential)
                return
            except NotYet as waiting:
                text = str(waiting)
            except LoginRefused as refused:
                if not await self._started_again(refused):
                    if self._refusal:
                        say(self._refusal)
                    return  # the session asks again and is told
                text = f"{refused} It is started again for this login."
            now = loop.time()
            if now >= end:
                return
            if text != said or now >= said_at + SAY_S:
                said, said_at = text, now
                say(text)
            seen = await self._store.changes.wait(seen, min(SAY_S, end - now))
            await asyncio.sleep(LOOK_S)  # bounds the rate of looks while a store is busy

    async def _seen(self, credential: Credential) -> tuple[Job | None, Limits | None, bool]:
        """The job, what may be done in it, and whether the credential's user may know of it.

        Takes the same time for every job that they may not know of, and for none.
        """
        pace = Pace()
        job = await self._job(credential)
        limits, known = await self._limits(credential, job), await self._is_known(credential, job)
        if not known:
            await pace.next_moment()
        starts = job is not None and job.spec.start_on_login and limits == rights.EVERYTHING
        self._starts_for = job.user if job is not None and starts else None
        return job, limits, known

    async def _is_known(self, credential: Credential, job: Job | None) -> bool:
        """Whether the credential's user may know that there is the job: it is theirs, shared with them, or theirs to
        enter as an administrator. Those have a certificate for that, and OpenSSH offers its key by itself before it.
        """
        if job is not None and (job.user == credential.user or (credential.as_admin and credential.job == job.uid)):
            return True
        uid, now = job.uid if job is not None else NO_JOB, utc_now()
        if any(kept.reason and kept.job == uid for kept in await self._store.grants.certificates(credential.user, now)):
            return True
        shares = await self._store.grants.shares_in_force(uid, now)
        return any(share.is_for(credential.user) for share in shares)

    async def _limits(self, credential: Credential, job: Job | None) -> Limits | None:
        if job is None:
            await self._store.grants.shares_in_force(
                NO_JOB, utc_now()
            )  # as long as the answer for a job of others takes
            return None
        try:
            alias = names.alias_of(job, self._name.rest)
        except LoginRefused:
            alias = ""  # a task that there is not: who may enter the job is told so
        return await lookup.entrance(self._store, credential, job, utc_now(), alias)
