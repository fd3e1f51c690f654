"""Secrets that users keep: listed, set and removed."""

from __future__ import annotations

from pai_backend.api.context import ApiContext
from pai_backend.api.secret_wire import SecretList, SecretWire
from pai_backend.auth.users import User
from pai_backend.model.errors import InvalidParameters, NoSuchSecret
from pai_backend.model.text import Text
from pai_backend.model.user_secret import ALLOWED, is_secret_name
from pai_backend.store.grants import Act


class SecretService:
    """A user's secrets. ``source`` is the address that the caller's request came from, for the audit."""

    def __init__(self, ctx: ApiContext, source: str = "") -> None:
        self._ctx, self._source = ctx, source

    async def list(self, user: User) -> SecretList:
        """The caller's, without values."""
        found = await self._ctx.store.user_secrets.list(user.name)
        shown = [SecretWire(name=each.name, set_at=each.set_at, used_at=each.used_at) for each in found]
        return SecretList(data=tuple(shown))

    async def set(self, user: User, name: str, value: str) -> None:
        """Keep a value. Raises InvalidParameters."""
        if not is_secret_name(name):
            raise InvalidParameters(
                Text("The name is invalid."), hint=Text("The name of a secret must have {allowed}.", allowed=ALLOWED)
            )
        await self._ctx.store.user_secrets.set(user.name, name, value, self._act(user))

    async def remove(self, user: User, name: str) -> None:
        """Keep it no longer. Raises NoSuchSecret."""
        if not is_secret_name(name):
            raise NoSuchSecret(
                Text("You have no secret {name}.", name=repr(name[:100])), hint=Text("`pai secret list` shows yours.")
            )
        await self._ctx.store.user_secrets.remove(user.name, name, self._act(user))

    def _act(self, user: User) -> Act:
        return Act(user.name, self._ctx.clock(), self._source)
