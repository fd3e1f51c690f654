"""Notes the use of jobs by the logins of one gateway process: it looks at all of them once a second.

Looking costs one comparison a login, where noting each message would cost every byte that passes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from weakref import WeakKeyDictionary

from pai_backend.access.gateway.login import Login
from pai_backend.access.gateway.names import EntryPoint
from pai_backend.access.gateway.turns import in_turns
from pai_backend.access.gateway.usage import LoginUsage
from pai_backend.access.uses import Uses
from pai_backend.model.idle import UseSource

LOOK_S = 1.0


class Noting:
    """Uses of jobs by logins; ``logins`` gives those that are open."""

    def __init__(self, uses: Uses, logins: Callable[[], Collection[Login]]) -> None:
        self._uses = uses
        self._logins = logins
        self._usage: WeakKeyDictionary[Login, LoginUsage] = WeakKeyDictionary()

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            async for login in in_turns(self._logins()):
                if login in self._logins():  # of those that have left meanwhile everything is noted
                    self._look(login, [entry for entry, _ in login.entries])

    def left(self, login: Login) -> None:
        """A login has ended: what it did since the last look counts too."""
        self._look(login, login.visited)
        self._usage.pop(login, None)

    def _look(self, login: Login, entries: Iterable[EntryPoint]) -> None:
        timeouts = {entry.job: entry.idle_timeout_s for entry in entries if entry.idle_timeout_s is not None}
        if not timeouts or login.activity is None:
            return
        now = asyncio.get_running_loop().time()
        if self._usage.setdefault(login, LoginUsage()).grown(login.activity, now):
            for job, timeout_s in timeouts.items():
                self._uses.note(job, UseSource.SSH, timeout_s)
