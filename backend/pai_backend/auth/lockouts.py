"""Which users an administrator has locked out."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection

from pai_backend.auth.fresh import Fresh
from pai_backend.model.errors import LockedOut
from pai_backend.model.text import Text


class LockoutCache:
    """Asked at every request."""

    def __init__(self, read: Callable[[], Awaitable[Collection[str]]], clock: Callable[[], float] = time.monotonic):
        self._users = Fresh(read, clock)
        self.forget = self._users.forget

    async def is_locked(self, user: str) -> bool:
        """Whether the user is locked out. Raises what the store raises."""
        return user in await self._users.get()

    async def require_free(self, user: str) -> None:
        """Raise LockedOut for a user who is locked out, and what the store raises."""
        if await self.is_locked(user):
            raise LockedOut(
                Text("The user {user} is locked out.", user=user),
                hint=Text("Ask an administrator, who can end this with `pai user enable USER`."),
            )
