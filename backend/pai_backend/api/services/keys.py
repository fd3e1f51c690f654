"""Registered SSH keys, and users who are locked out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from pai_backend.access.keys import parse_public_key
from pai_backend.api.context import ApiContext
from pai_backend.api.key_wire import KeyList, KeyWire, Lockouts, NewKey
from pai_backend.api.services.jobs import JobService
from pai_backend.auth.users import User
from pai_backend.model.errors import Forbidden, InvalidParameters, NoSuchKey, NoSuchUser
from pai_backend.model.text import Text
from pai_backend.store.base import UserKey
from pai_backend.store.grants import Act


class KeyService:
    """Keys of users. ``source`` is the address that the caller's request came from, for the audit."""

    def __init__(self, ctx: ApiContext, source: str) -> None:
        self._ctx, self._source = ctx, source

    def act(self, user: User) -> Act:
        """What the caller does now, for the audit."""
        return Act(user.name, self._ctx.clock(), self._source)

    async def keys(self, user: User) -> KeyList:
        """The caller's registered keys; by a token of one virtual cluster those that it has registered."""
        return KeyList(data=tuple(_shown(key) for key in await self._kept(user)))

    async def add(self, user: User, new: NewKey) -> KeyWire:
        """Register a public key for the caller; one that is registered gets these terms. Idempotent.

        Raises InvalidParameters, NoSuchJob, Forbidden (a job of another user).
        """
        act = self.act(user)
        key = await self._key(user, new, act)
        await self._ctx.store.user_keys.add(key, act)
        kept = await self._ctx.store.grants.key(key.fingerprint)
        return _shown(kept or key)

    async def replace(self, user: User, wanted: Sequence[NewKey]) -> None:
        """Make these the caller's keys, all or none. Raises InvalidParameters."""
        act = self.act(user)
        await self._ctx.store.user_keys.replace(user.name, [await self._key(user, new, act) for new in wanted], act)

    async def remove(self, user: User, fingerprint: str) -> None:
        """Forget a key of the caller. Raises NoSuchKey."""
        if user.within and fingerprint not in {key.fingerprint for key in await self._kept(user)}:
            raise NoSuchKey(
                Text("This token has registered no key {fingerprint}.", fingerprint=repr(fingerprint[:100])),
                hint=Text("`pai keys list` shows them."),
            )
        await self._ctx.store.user_keys.remove(user.name, fingerprint, self.act(user))

    async def lockouts(self, user: User) -> Lockouts:
        """Who is locked out of SSH. Raises Forbidden."""
        _require_admin(user)
        return Lockouts(data=tuple(await self._ctx.store.grants.lockouts()))

    async def lock_out(self, user: User, name: str) -> None:
        """Refuse all requests and logins of that user, and end those that go on. Idempotent.

        Users who are gone may be locked out too: they may come back, and what they left is refused meanwhile. One
        administrator is always left to end lock-outs. Raises Forbidden, InvalidParameters for the caller's own name.
        """
        _require_admin(user)
        if name == user.name:
            raise InvalidParameters(Text("You cannot lock yourself out."), hint=Text("Ask another administrator."))
        await self._ctx.store.grants.lock_out(name, self.act(user))
        self._ctx.identity.lockouts.forget()

    async def let_in(self, user: User, name: str) -> None:
        """End a lockout. Idempotent. Raises Forbidden."""
        _require_admin(user)
        await self._ctx.store.grants.let_in(name, self.act(user))
        self._ctx.identity.lockouts.forget()

    async def _kept(self, user: User) -> list[UserKey]:
        found = await self._ctx.store.user_keys.registered(user.name)
        return [key for key in found if not user.within or key.made_by == user.maker]

    async def _key(self, user: User, new: NewKey, act: Act) -> UserKey:
        parsed = parse_public_key(new.public_key)
        job = None if new.job is None else await JobService(self._ctx).own(user, new.job, "register a key for")
        return UserKey(
            fingerprint=parsed.fingerprint,
            user=user.name,
            public_key=parsed.line,
            comment=new.comment or parsed.comment,
            added_at=act.at,
            name=new.name,
            expires_at=user.until(None if new.lifetime_s is None else act.at + timedelta(seconds=new.lifetime_s)),
            job=None if job is None else job.uid,
            replaces=new.replaces,
            made_by=user.maker,
            within=user.within,
        )


async def require_account(ctx: ApiContext, name: str) -> None:
    """Raises NoSuchUser for an unknown name."""
    if await ctx.identity.accounts.get(name) is None:
        raise NoSuchUser(
            Text("There is no user {name}.", name=repr(name[:100])), hint=Text("Ask the administrator who there is.")
        )


def _require_admin(user: User) -> None:
    if not user.admin:
        raise Forbidden(Text("Only an administrator may do this."), hint=Text("Ask one."))


def _shown(key: UserKey) -> KeyWire:
    return KeyWire(
        fingerprint=key.fingerprint,
        public_key=key.public_key,
        comment=key.comment,
        added_at=key.added_at,
        name=key.name or key.comment,
        expires_at=key.expires_at,
        job=key.job,
        replaces=key.replaces,
        last_used_at=key.last_used_at,
        last_used_from=key.last_used_from,
    )
