"""Who is calling, by whichever credential: a configured token, a session, an application token.

Tokens that users make or sign in for are kept as digests in the store, and what their user may do is read off the
configuration at each use: a user who is no longer configured, or no longer an admin, loses that at once.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
import os
import secrets
import sys
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from pai_backend.auth.accounts import Accounts, hash_password, password_fits
from pai_backend.auth.guessing import Guesses, LockoutCache
from pai_backend.auth.jupyterhub import HubApi, HubTokens
from pai_backend.auth.remembered import RememberedTokens
from pai_backend.auth.tokens import TOKEN_BYTES, TokenTable
from pai_backend.auth.users import User
from pai_backend.model.account import Account
from pai_backend.model.audit import AuditEvent
from pai_backend.model.errors import NotSupported, TooManyRequests, Unauthorized, Unavailable, WrongPassword
from pai_backend.model.scope import Scope
from pai_backend.model.text import Text
from pai_backend.store import deeds
from pai_backend.store.audit import TOKEN_ID
from pai_backend.store.base import AccessToken
from pai_backend.store.grants import Act

if TYPE_CHECKING:
    from pai_backend.auth.provider_sign_ins import ProviderSignIns
    from pai_backend.store.sql import Store

log = logging.getLogger(__name__)

USE_PAUSE = timedelta(minutes=1)
"""Uses of one token that are closer together are not written down."""
SESSION_LIFE = timedelta(days=7)  # OpenPAI's, whatever expiration was asked for there
CHECKS_AT_ONCE = 2
"""Passwords checked at the same time, beside one likely guess: each takes 64 MiB."""
HOLD_S, HELD = 0.5, 64
"""How long refusals of the locked are delayed, and of how many at once: they hold connections."""
GUESSES_NICE = 10
"""Of threads that check likely guesses: a tenth of the processor that others ask for. With less, one that holds the
interpreter's lock could keep the loop from it for long."""


def utc_now() -> datetime:
    """The clock used where no other is given."""
    return datetime.now(UTC)


class PasswordLane:
    """Checks of passwords that wait for each other, in threads of their own."""

    def __init__(self, at_once: int, begin: Callable[[], None] | None = None) -> None:
        """``begin`` is called in each thread first."""
        self.turns = asyncio.Semaphore(at_once)
        self.threads = ThreadPoolExecutor(at_once, "passwords", begin)


class Identity:
    """Finds the user behind a credential, and makes new ones."""

    def __init__(
        self,
        store: Store,
        table: TokenTable,
        accounts: Accounts,
        now: Callable[[], datetime] = utc_now,
        hub: HubApi | None = None,
        provider: ProviderSignIns | None = None,
    ) -> None:
        """``hub``: a JupyterHub whose users are users here; ``provider``: one of OpenID Connect that signs users in."""
        self.accounts, self.provider = accounts, provider
        self._store, self._table, self._now = store, table, now
        self._checks = PasswordLane(CHECKS_AT_ONCE)
        self._suspects = PasswordLane(
            1, _yield_to_others
        )  # likely guesses wait for each other; other sign-ins do not for them
        self._held = 0
        self._used: dict[str, datetime] = {}  # by digests of application tokens, of which users have a bounded number
        self.guesses = Guesses()
        self.lockouts = LockoutCache(store.grants.lockouts)
        self._tokens = RememberedTokens(store.tokens.get)
        self._hub = (
            HubTokens(hub, store.tokens, store.external_users, now=now, changed=self.forget)
            if hub is not None
            else None
        )
        self.sign_ins = Counter({"accepted": 0, "refused": 0, "locked": 0})

    async def of_header(self, header: str) -> User | None:
        """The user of an ``Authorization`` header: ``Bearer TOKEN``, or ``Basic`` with a token as the password.

        Source: RFC 6750 §2.1, RFC 7617; OpenPAI takes application tokens in both ways. Raises as :meth:`of_bearer`.
        """
        scheme, _, credential = header.partition(" ")
        if scheme.lower() == "bearer" and credential.strip():
            return await self.of_bearer(credential.strip())
        if scheme.lower() != "basic":
            return None
        name, token = _basic(credential.strip())
        user = await self.of_bearer(token) if token else None
        return user if user is not None and user.name == name else None

    async def of_token(self, token: str) -> User | None:
        """The user of a token of ours. Raises as :meth:`of_digest`."""
        return await self.of_digest(digest(token))

    async def of_bearer(self, token: str) -> User | None:
        """The user of a token by which a request comes; it may be JupyterHub's, which is then asked.

        Raises LockedOut, Forbidden for a token of JupyterHub that is not for this backend, Unavailable.
        """
        if self._hub is not None and (refusal := await self._hub.confirm(digest(token), token)) is not None:
            raise refusal
        return await self.of_token(token)

    async def of_digest(self, token: str) -> User | None:
        """The user of the token with this digest, as things are now; None when it is no longer valid.

        Raises LockedOut, which counts for every use of a token: requests, streams, services, links.
        """
        configured = self._table.of_digest(bytes.fromhex(token))
        if configured is None and self._hub is not None:
            await self._hub.confirm(token)  # what it refuses is no session any more
        kept = await self._tokens.get(token, self._now()) if configured is None else None
        name = configured.name if configured is not None else kept.user if kept is not None else ""
        account = await self.accounts.get(name)
        if account is None:
            return None
        await self.lockouts.require_free(name)
        if configured is not None:
            return replace(user_of(account, token=token), admin=configured.admin)
        assert kept is not None
        await self._note_use(kept)
        return limited(account, kept)

    async def _note_use(self, kept: AccessToken) -> None:
        """Write down that an application token is used, once a minute. A trouble of the database refuses no request."""
        now = self._now()
        last = self._used.get(kept.digest, kept.last_used_at)
        if not kept.application or (last is not None and now - last < USE_PAUSE):
            return
        self._used[kept.digest] = now
        try:
            await self._store.tokens.note_use(kept.digest, now)
        except Unavailable as error:
            log.warning("the use of a token of %s is not written down: %s", kept.user, error.message)

    async def sign_in(self, name: str, password: str, source: str = "") -> tuple[str, Account]:
        """A session token for a name and password. Raises WrongPassword, TooManyRequests, LockedOut."""
        account = await self.require_password(name, password, source)
        return await self._make(account.name, application=False, life=SESSION_LIFE), account

    async def sign_in_by_provider(self, id_token: str, source: str = "") -> tuple[str, Account]:
        """A session token for who has just signed in at the provider of OpenID Connect.

        Raises NotSupported without one, Unauthorized, Forbidden for a name that is not theirs here, Unavailable and
        LockedOut.
        """
        if self.provider is None:
            raise NotSupported(Text("No provider signs users in here."), hint=Text("Sign in with name and password."))
        name = await self.provider.signed_in(id_token, self._now(), source)
        self.forget()
        await self.lockouts.require_free(name)
        account = await self.accounts.get(name)
        if account is None:
            raise Unauthorized(Text("The user {name} has gone.", name=name), hint=Text("Sign in again."))
        life, label = self.provider.terms.session, self.provider.provider.issuer
        return await self._make(name, application=False, life=life, label=label), account

    async def require_password(self, name: str, password: str, source: str = "") -> Account:
        """The account whose name and password these are. Raises WrongPassword, TooManyRequests, LockedOut.

        Only a user who knows the password learns of a lock-out. A wrong name and a wrong password give the same
        words, the same work and the same lock.
        """
        pair, account = (name, source), await self.accounts.get(name)
        known = account is not None and bool(account.password_hash)
        who = name if known else "an unknown user"  # an unknown name may be a password in the wrong field
        try:
            self.guesses.admit(pair)
            lane = self._suspects if self.guesses.is_suspect(pair) else self._checks
            async with lane.turns:
                self.guesses.admit(pair)  # others may have failed while this one waited
                check = partial(password_fits, account if known else None, password)
                fits = await asyncio.get_running_loop().run_in_executor(lane.threads, check)
                if not fits:
                    count = self.guesses.failed(pair)
        except TooManyRequests:
            self.sign_ins["locked"] += 1
            log.warning("sign-in of %s from %s refused: locked after failures", who, source)
            await self._hold()
            raise
        if not fits or account is None:
            self.sign_ins["refused"] += 1
            log.warning("sign-in of %s from %s refused: wrong name or password (%d in a row)", who, source, count)
            if known:
                await self._note_refusal(name, source)
            raise _wrong_password()
        self.guesses.succeeded(pair)
        await self.lockouts.require_free(account.name)
        self.accounts.forget()
        if await self.accounts.get(name) != account:  # removed, or given another password, within the last second
            raise _wrong_password()
        self.sign_ins["accepted"] += 1
        return account

    async def _note_refusal(self, name: str, source: str) -> None:
        """Write into the audit that a password was wrong: a bounded number of times, since guesses are locked out."""
        refused = AuditEvent("session.begun", self._now(), name, "", source, result=WrongPassword.code)
        with deeds.doing(None):
            await self._store.audit.add(refused)

    async def hash(self, password: str) -> str:
        """What is kept of a new password."""
        async with self._checks.turns:
            return await asyncio.get_running_loop().run_in_executor(self._checks.threads, hash_password, password)

    async def _hold(self) -> None:
        """Delay a refusal: a client that guesses in a loop takes little processor time. At most ``HELD`` wait."""
        if self._held < HELD:
            self._held += 1
            try:
                await asyncio.sleep(HOLD_S)
            finally:
                self._held -= 1

    async def make_application_token(
        self,
        user: User,
        name: str = "",
        scopes: frozenset[Scope] = frozenset(),
        life: timedelta | None = None,
        within: str = "",
    ) -> str:
        """A token for a program of the user: good until it is revoked, or for a time.

        Without ``scopes`` it may do all that the user may. ``within``: with jobs of this virtual cluster alone.
        """
        return await self._make(user.name, application=True, life=life, label=name, scopes=scopes, within=within)

    async def tokens(self, user: User) -> list[AccessToken]:
        """The user's sessions and application tokens, oldest first."""
        return await self._store.tokens.of_user(user.name, self._now())

    async def revoke(self, user: User, token: str, source: str = "") -> None:
        """End a token of the user, given itself or the id that :meth:`tokens` shows, and what it made.

        ``source`` is the address that asked, for the audit. Raises NoSuchToken.
        """
        named = token.lower()
        is_id = len(named) <= len(digest("")) and all(letter in "0123456789abcdef" for letter in named)
        wanted = named if is_id else digest(token)
        act, deed = Act(user.name, self._now(), source), deeds.current()
        if deed is not None:
            deed.subject = wanted[:TOKEN_ID]
        try:
            await self._store.tokens.remove(user.name, wanted, act)
        finally:
            self._tokens.forget()

    def forget(self) -> None:
        """Read accounts and tokens again before the next answer: this process has changed them."""
        self.accounts.forget()
        self._tokens.forget()

    async def _make(
        self,
        name: str,
        *,
        application: bool,
        life: timedelta | None,
        label: str = "",
        scopes: frozenset[Scope] = frozenset(),
        within: str = "",
    ) -> str:
        token, now = secrets.token_urlsafe(TOKEN_BYTES), self._now()
        end = now + life if life is not None else None
        deed = deeds.current()
        if deed is not None:
            deed.by, deed.subject, deed.detail = name, digest(token)[:TOKEN_ID], label
        kept = AccessToken(digest(token), name, application, now, end, label, scopes, virtual_cluster=within)
        await self._store.tokens.add(kept)
        return token


def user_of(account: Account, *, token: str = "") -> User:
    """A caller with all rights of the account."""
    return User(
        account.name,
        account.admin,
        manages=account.manages,
        virtual_clusters=account.virtual_clusters,
        token=token,
    )


def limited(account: Account, kept: AccessToken) -> User:
    """A caller by a token: with the rights of the account that its scopes allow."""
    user = replace(
        user_of(account, token=kept.digest),
        application=kept.application,
        # A session with a name began at a provider, without the password.
        must_change_password=account.must_change_password and not kept.application and not kept.name,
        scopes=kept.scopes,
        token_ends_at=kept.expires_at if kept.application else None,
        within=kept.virtual_cluster,
    )
    if not user.may(Scope.ADMIN):
        return replace(user, admin=False, manages=frozenset())
    if user.within:  # who administers all administers that one
        is_its_manager = user.admin or user.within in user.manages
        return replace(user, admin=False, manages=frozenset({user.within} if is_its_manager else ()))
    return user


def _yield_to_others() -> None:
    """Give way to all else in this thread and in those that Argon2 starts from it. Only Linux has it for one thread."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), GUESSES_NICE)


def digest(token: str) -> str:
    """What stands for a token in the store. The token has 256 random bits, so a plain hash cannot be guessed back."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def _wrong_password() -> WrongPassword:
    return WrongPassword(
        Text("The name or the password is wrong."),
        hint=Text(
            "An administrator sets a new one: `pai user set NAME --new-password`. Without any, use the token file's."
        ),
    )


def _basic(credential: str) -> tuple[str, str]:
    """(user, password) of a Basic credential; empty for one that cannot be read."""
    try:
        text = base64.b64decode(credential, validate=True).decode("utf-8")
    except ValueError:  # no base64, no ASCII, or no UTF-8 in it
        return "", ""
    name, _, password = text.partition(":")
    return name, password
