"""Keys, certificates, shares and their audit in SQL."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial

from sqlalchemy import Connection

from pai_backend.model.account import Account
from pai_backend.model.ids import JobUid
from pai_backend.store import accounts as accounts_
from pai_backend.store import audit, certificates, groups, keys, sharing, task_keys, users
from pai_backend.store.base import UserKey
from pai_backend.store.grants import GROUP, Act, Certificate, Holdings, JobKey, Share, UserCa, UserUpdate
from pai_backend.store.repository import Repository

PAUSE = timedelta(minutes=1)
"""Uses of one key that are closer together than this are not written down: an editor logs in several times a second."""


class Grants(Repository):
    """Keys, certificates, shares and their audit."""

    async def key(self, fingerprint: str) -> UserKey | None:
        """The registered key of that fingerprint, of any user, expired or not."""
        return await self._database.read(partial(keys.one, fingerprint=fingerprint))

    async def job_key(self, fingerprint: str) -> JobKey | None:
        """The job whose own key pair has that fingerprint, unless the job has ended."""
        return await self._database.read(partial(task_keys.job_of_key, fingerprint=fingerprint))

    async def certificate(self, serial: int) -> Certificate | None:
        """The certificate of that serial, revoked or expired or not, if it is still kept."""
        return await self._database.read(partial(certificates.certificate, serial=serial))

    async def certificates(self, user: str | None, now: datetime) -> list[Certificate]:
        """Certificates of a user, or of all, that are neither revoked nor over, oldest first."""
        return await self._database.read(partial(certificates.living, user=user, now=now))

    async def issue(self, made: Certificate, act: Act) -> None:
        """Write down a certificate, to be called before it is handed out."""
        await self._writer.run(partial(certificates.issue, made=made, act=act), announce=False)

    async def revoke(self, user: str | None, serial: int, act: Act) -> None:
        """Refuse a certificate from now on. Idempotent. ``user``: whose it must be, None for anybody's.

        Raises NoSuchCertificate.
        """
        await self._writer.run(partial(certificates.revoke, user=user, serial=serial, act=act))

    async def user_cas(self, now: datetime) -> Sequence[UserCa]:
        """Whose certificates are accepted, the one that signs first: older ones until their certificates ran out."""
        return await self._database.read(partial(certificates.accepted_cas, now=now))

    async def ca_key(self, number: int) -> str | None:
        """The private half (OpenSSH PEM) of the key that signs now; None for one that no longer signs."""
        kept = await self._database.read(partial(certificates.ca_key, number=number))
        return None if kept is None else (await self._ring.open(kept)).decode()

    async def follow_ca(self, after: int, made: UserCa, private_pem: str, act: Act) -> UserCa:
        """Let ``made`` sign instead of number ``after`` (0: none signs yet), whose private half is deleted.

        Returns the one that signs now: another than ``made`` when another caller was faster.
        """
        private = self._ring.cipher.sealed(private_pem.encode())
        change = partial(certificates.follow_ca, after=after, made=made, private=private, act=act)
        return await self._writer.run(change)

    async def shares(self, job: JobUid) -> list[Share]:
        """With whom a job is shared, ended ones included until they are forgotten."""
        return await self._database.read(partial(sharing.of_job, job=job))

    async def shares_in_force(self, job: JobUid, now: datetime) -> list[Share]:
        """By which shares a job may be entered now: none while its owner is locked out or gone."""
        return await self._database.read(partial(sharing.in_force, job=job, now=now))

    async def shared_with(self, user: str, now: datetime) -> list[Share]:
        """What a user may enter of others' jobs that have not ended."""
        return await self._database.read(partial(sharing.with_user, user=user, now=now))

    async def shared_by(self, user: str, now: datetime) -> list[Share]:
        """What others may enter of a user's jobs that have not ended."""
        return await self._database.read(partial(sharing.by_user, user=user, now=now))

    async def share(self, share: Share, act: Act) -> None:
        """Let a user or a group in, on these terms instead of earlier ones.

        Raises NoSuchGroup, and ReadOnlyJob for a job that has ended.
        """

        def change(conn: Connection) -> None:
            if share.user.startswith(GROUP):
                groups.require_known(conn, (share.user.removeprefix(GROUP),))
            sharing.give(conn, share, act)

        await self._writer.run(change)

    async def unshare(self, job: JobUid, user: str, act: Act) -> None:
        """End the share of a user or a group. Raises NoSuchShare."""
        await self._writer.run(partial(sharing.end, job=job, user=user, act=act))

    async def locked_out(self, users: Collection[str]) -> frozenset[str]:
        """Those of the users whom an administrator has locked out."""
        return await self._database.read(partial(sharing.locked_out, users=users))

    async def keep_accounts(self, accounts: Mapping[str, bool]) -> None:
        """Tell who the users are, each with whether they administer: what the configuration says now."""
        await self._writer.run(partial(accounts_.keep, accounts=accounts))

    async def shut_out(self, users: Collection[str]) -> Mapping[str, bool]:
        """Those of the users who may enter nothing, each with whether they are locked out; the others are gone."""
        return await self._database.read(partial(accounts_.shut_out, users=users))

    async def all_admins(self) -> frozenset[str]:
        """All users who administer."""
        return await self._database.read(accounts_.all_admins)

    async def admins(self, users: Collection[str]) -> frozenset[str]:
        """Those of the users who administer."""
        return await self._database.read(partial(accounts_.admins, users=users))

    async def require_addable(self, account: Account, *, again: bool) -> None:
        """Raise what :meth:`add_user` would, and change nothing."""
        await self._database.read(partial(users.require_addable, account=account, again=again))

    async def add_user(self, account: Account, act: Act, *, again: bool) -> None:
        """Add a user. Raises UserExists, also for a name that a removed user had, unless ``again``, and NoSuchGroup."""
        await self._writer.run(partial(users.add, account=account, act=act, again=again))

    async def change_user(self, name: str, to: UserUpdate, act: Act, *, session: str) -> None:
        """Change a user; a new password ends all their tokens but ``session``. Raises NoSuchUser, NoSuchGroup."""
        await self._writer.run(partial(users.change, name=name, to=to, act=act, session=session))

    async def holdings(self, name: str, now: datetime) -> Holdings:
        """What belongs to a user, or lets them in, now."""
        return await self._database.read(partial(users.holdings, name=name, now=now))

    async def remove_user(self, name: str, act: Act, *, heir: str = "") -> None:
        """Remove a user, and what lets them in; the heir gets what has a name and is not a right.

        Raises NoSuchUser, UserHasJobs, InvalidParameters.
        """
        await self._writer.run(partial(users.remove, name=name, act=act, heir=heir))

    async def lockouts(self) -> list[str]:
        """Everybody who is locked out."""
        return await self._database.read(sharing.lockouts)

    async def lock_out(self, user: str, act: Act) -> None:
        """Refuse every request and login of a user, whatever proves it. Idempotent."""
        await self._writer.run(partial(sharing.lock_out, user=user, act=act))

    async def let_in(self, user: str, act: Act) -> None:
        """End a lockout. Idempotent."""
        await self._writer.run(partial(sharing.let_in, user=user, act=act))

    async def note_key_use(self, fingerprint: str, at: datetime, source: str) -> None:
        """Remember the last use of a registered key, to the minute.

        A key that was registered in place of another takes its place now: the other one is removed.
        """
        kept = await self.key(fingerprint)
        if kept is not None and (kept.replaces or _is_old(kept.last_used_at, at)):
            change = partial(keys.note_use, fingerprint=fingerprint, at=at, source=source)
            await self._writer.run(change, announce=bool(kept.replaces))

    async def note_certificate_use(self, serial: int, at: datetime, source: str) -> None:
        """Remember the last use of a certificate, to the minute."""
        kept = await self.certificate(serial)
        if kept is not None and _is_old(kept.last_used_at, at):
            change = partial(certificates.note_use, serial=serial, at=at, source=source)
            await self._writer.run(change, announce=False)

    async def note(
        self, type_: str, user: str, subject: str, act: Act, job: JobUid | None = None, token: str = ""
    ) -> None:
        """Write an audit event of something that changes nothing here, such as a download.

        ``token``: digest of the application token that did it; empty: none. Raises Unauthorized when it was revoked.
        """

        def change(conn: Connection) -> None:
            audit.require_token(conn, token)
            audit.note(conn, type_, user, subject, act, job=job, detail=audit.by_token(token) if token else "")

        await self._writer.run(change, announce=False)


def _is_old(last: datetime | None, now: datetime) -> bool:
    return last is None or now - last >= PAUSE
