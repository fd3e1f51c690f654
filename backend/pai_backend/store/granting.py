"""Keys, certificates, shares and their audit in SQL. :class:`SqlGrants` satisfies ``grants.GrantStore``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial

from sqlalchemy import Connection

from pai_backend.model.account import Account
from pai_backend.model.ids import JobUid
from pai_backend.store import accounts as accounts_
from pai_backend.store import audit, certificates, keys, sharing, task_keys, users
from pai_backend.store.base import UserKey
from pai_backend.store.database import Database
from pai_backend.store.grants import Act, Certificate, JobKey, KeyEvent, Share, UserCa, UserUpdate
from pai_backend.store.keyring import KeyRing
from pai_backend.store.writer import Writer

PAUSE = timedelta(minutes=1)
"""Uses of one key that are closer together than this are not written down: an editor logs in several times a second."""


class SqlGrants:
    """Grants in a database; ``grants.GrantStore`` documents the methods."""

    def __init__(self, database: Database, writer: Writer, ring: KeyRing) -> None:
        self._database, self._writer, self._ring = database, writer, ring

    async def key(self, fingerprint: str) -> UserKey | None:
        """A registered key."""
        return await self._database.read(partial(keys.one, fingerprint=fingerprint))

    async def job_key(self, fingerprint: str) -> JobKey | None:
        """Whose own key that is."""
        return await self._database.read(partial(task_keys.job_of_key, fingerprint=fingerprint))

    async def certificate(self, serial: int) -> Certificate | None:
        """One of them."""
        return await self._database.read(partial(certificates.certificate, serial=serial))

    async def certificates(self, user: str | None, now: datetime) -> list[Certificate]:
        """Those that are accepted."""
        return await self._database.read(partial(certificates.living, user=user, now=now))

    async def issue(self, made: Certificate, act: Act) -> None:
        """Write one down."""
        await self._writer.run(partial(certificates.issue, made=made, act=act), announce=False)

    async def revoke(self, user: str | None, serial: int, act: Act) -> None:
        """Refuse one."""
        await self._writer.run(partial(certificates.revoke, user=user, serial=serial, act=act))

    async def user_cas(self, now: datetime) -> Sequence[UserCa]:
        """Who signs, and who signed."""
        return await self._database.read(partial(certificates.accepted_cas, now=now))

    async def ca_key(self, number: int) -> str | None:
        """What one of them signs with."""
        kept = await self._database.read(partial(certificates.ca_key, number=number))
        return None if kept is None else (await self._ring.open(kept)).decode()

    async def follow_ca(self, after: int, made: UserCa, private_pem: str, act: Act) -> UserCa:
        """Another one signs."""
        private = self._ring.cipher.sealed(private_pem.encode())
        change = partial(certificates.follow_ca, after=after, made=made, private=private, act=act)
        return await self._writer.run(change)

    async def shares(self, job: JobUid) -> list[Share]:
        """With whom a job is shared."""
        return await self._database.read(partial(sharing.of_job, job=job))

    async def shared_with(self, user: str, now: datetime) -> list[Share]:
        """What is shared with a user."""
        return await self._database.read(partial(sharing.with_user, user=user, now=now))

    async def shared_by(self, user: str, now: datetime) -> list[Share]:
        """What a user lets others enter."""
        return await self._database.read(partial(sharing.by_user, user=user, now=now))

    async def share(self, share: Share, act: Act) -> None:
        """Let a user in."""
        await self._writer.run(partial(sharing.give, share=share, act=act))

    async def unshare(self, job: JobUid, user: str, act: Act) -> None:
        """End a user's access."""
        await self._writer.run(partial(sharing.end, job=job, user=user, act=act))

    async def locked_out(self, users: Collection[str]) -> frozenset[str]:
        """Who of them is."""
        return await self._database.read(partial(sharing.locked_out, users=users))

    async def keep_accounts(self, accounts: Mapping[str, bool]) -> None:
        """Who there is."""
        await self._writer.run(partial(accounts_.keep, accounts=accounts))

    async def shut_out(self, users: Collection[str]) -> Mapping[str, bool]:
        """Who of them may enter nothing."""
        return await self._database.read(partial(accounts_.shut_out, users=users))

    async def admins(self, users: Collection[str]) -> frozenset[str]:
        """Who of them administers."""
        return await self._database.read(partial(accounts_.admins, users=users))

    async def added_users(self) -> list[Account]:
        """All that were added."""
        return await self._database.read(users.added)

    async def add_user(self, account: Account, act: Act, *, again: bool) -> None:
        """One more."""
        await self._writer.run(partial(users.add, account=account, act=act, again=again))

    async def change_user(self, name: str, to: UserUpdate, act: Act, *, session: str) -> Account:
        """One as they are now."""
        return await self._writer.run(partial(users.change, name=name, to=to, act=act, session=session))

    async def remove_user(self, name: str, act: Act) -> None:
        """One less."""
        await self._writer.run(partial(users.remove, name=name, act=act))

    async def lockouts(self) -> list[str]:
        """Who is."""
        return await self._database.read(sharing.lockouts)

    async def lock_out(self, user: str, act: Act) -> None:
        """Refuse a user."""
        await self._writer.run(partial(sharing.lock_out, user=user, act=act))

    async def let_in(self, user: str, act: Act) -> None:
        """End a user's lock-out."""
        await self._writer.run(partial(sharing.let_in, user=user, act=act))

    async def note_key_use(self, fingerprint: str, at: datetime, source: str) -> None:
        """A key was used."""
        kept = await self.key(fingerprint)
        if kept is not None and (kept.replaces or _is_old(kept.last_used_at, at)):
            change = partial(keys.note_use, fingerprint=fingerprint, at=at, source=source)
            await self._writer.run(change, announce=bool(kept.replaces))

    async def note_certificate_use(self, serial: int, at: datetime, source: str) -> None:
        """A certificate was used."""
        kept = await self.certificate(serial)
        if kept is not None and _is_old(kept.last_used_at, at):
            change = partial(certificates.note_use, serial=serial, at=at, source=source)
            await self._writer.run(change, announce=False)

    async def note(
        self, type_: str, user: str, subject: str, act: Act, job: JobUid | None = None, token: str = ""
    ) -> None:
        """Write down what changes nothing here."""

        def change(conn: Connection) -> None:
            audit.require_token(conn, token)
            audit.note(conn, type_, user, subject, act, job=job, detail=audit.by_token(token) if token else "")

        await self._writer.run(change, announce=False)

    async def audit(self, user: str | None, before: int | None = None) -> list[KeyEvent]:
        """What was done."""
        return await self._database.read(partial(audit.latest, user=user, before=before))


def _is_old(last: datetime | None, now: datetime) -> bool:
    return last is None or now - last >= PAUSE
