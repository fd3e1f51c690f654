"""Users who come from elsewhere: one who is known there is the user of that name here, and becomes one at first."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from datetime import datetime

from pai_backend.model.account import Account
from pai_backend.model.errors import Forbidden, UserExists
from pai_backend.store.granting import Grants
from pai_backend.store.grants import Act

_NAME = re.compile(r"(?!me$)[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
"""Names of users here: they name directories, and ``me`` is the caller."""


class Newcomers:
    """Adds users whom others vouch for."""

    def __init__(
        self,
        grants: Grants,
        account: Callable[[str], Awaitable[Account | None]],
        now: Callable[[], datetime],
        changed: Callable[[], None],
    ) -> None:
        """``account`` finds a user; ``changed`` is called when one was added."""
        self._grants, self._account, self._now, self._changed = grants, account, now, changed

    async def require(self, name: str, voucher: str) -> Account:
        """The user of that name, who is added when there is none. Raises Forbidden for a name that cannot be taken.

        That is one that a removed user had, too, whose jobs and files the new one would have.
        """
        require_name(name, voucher)
        found = await self._account(name)
        if found is not None:
            return found
        refusal = Forbidden(f"The user {name} has gone.", hint="Try again.")
        try:
            await self._grants.add_user(Account(name), Act(name, self._now(), voucher), again=False)
        except UserExists as error:  # or another process has added the user just now
            refusal = Forbidden(error.message, hint=error.hint)
        self._changed()
        found = await self._account(name)
        if found is None:
            raise refusal
        return found


def require_name(name: str, voucher: str) -> None:
    """Raise Forbidden for a name that no user here can have."""
    if not _NAME.fullmatch(name):
        raise Forbidden(
            f"{voucher}'s user {name[:64]!r} cannot be one here.",
            hint="Names are letters, digits, `_`, `.` and `-`, at most 64, and not `me`.",
        )
