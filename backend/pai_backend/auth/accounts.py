"""The users that there are, and the check of their passwords.

Passwords are kept as Argon2id hashes in the PHC string format (RFC 9106), so each carries its own cost; the hash of
a new one is made by ``python -m pai_backend hash-password``. Pure but for the time and memory that a check takes.
"""

from __future__ import annotations

import secrets
import time
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from pai_backend.auth.fresh import Fresh
from pai_backend.auth.users import User
from pai_backend.model.account import Account, Directory


async def _empty() -> Directory:
    return Directory()


class Accounts:
    """All users: those whom the configuration names, and those whom administrators have added.

    The configuration comes first: the account of a name that stands there is as it says.
    """

    def __init__(
        self,
        known: Iterable[Account],
        others: Iterable[User] = (),
        directory: Callable[[], Awaitable[Directory]] = _empty,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``others`` are users that have tokens of the configuration; who is an admin by either is one.

        ``directory`` reads the users, groups and grants of the database. Its groups and grants count for all users.
        """
        self._accounts = {account.name: account for account in known}
        for user in others:
            account = self._accounts.get(user.name, Account(user.name))
            admin = account.admin or user.admin
            self._accounts[user.name] = replace(account, admin=admin)
        self._directory = Fresh(directory, clock)
        self.directory, self.forget = self._directory.get, self._directory.forget

    @property
    def configured(self) -> Sequence[Account]:
        """Those of the configuration by name, without groups and grants."""
        return sorted(self._accounts.values(), key=lambda account: account.name)

    async def get(self, name: str) -> Account | None:
        """The account of that name with its rights. Raises what the store raises."""
        known = await self._directory.get()
        found = self._accounts.get(name) or next((each for each in known.users if each.name == name), None)
        return None if found is None else known.with_rights(found)

    async def all(self) -> list[Account]:
        """Every account with its rights, by name. Raises what the store raises."""
        known = await self._directory.get()
        found = {account.name: account for account in known.users} | self._accounts
        return sorted(map(known.with_rights, found.values()), key=lambda account: account.name)


def hash_password(password: str) -> str:
    """A new hash, with a salt of its own and today's costs of the library (RFC 9106, low memory)."""
    return PasswordHasher().hash(password)


def password_fits(account: Account | None, password: str) -> bool:
    """Whether the password is the account's. Takes some 50 ms and 64 MiB: not for an event loop.

    It takes as long without an account, so that a clock does not tell which names there are.
    """
    hasher, known = PasswordHasher(), account is not None and bool(account.password_hash)
    try:
        kept = account.password_hash if account is not None and known else _NOBODYS
        return hasher.verify(kept, password.encode("utf-8", "surrogatepass")) and known
    except (VerificationError, InvalidHashError):
        return False


def _nobodys_hash() -> str:
    """A hash in the form and with the costs of new ones that is no password's; made without that cost."""
    hasher = PasswordHasher()
    costs = f"m={hasher.memory_cost},t={hasher.time_cost},p={hasher.parallelism}"
    salt, tag = (b64encode(secrets.token_bytes(size)).rstrip(b"=") for size in (hasher.salt_len, hasher.hash_len))
    return f"$argon2id$v=19${costs}${salt.decode()}${tag.decode()}"


_NOBODYS = _nobodys_hash()
