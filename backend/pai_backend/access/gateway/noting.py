"""Notes the use of jobs by the logins of one gateway process: it looks at all of them once a second.

Looking costs one comparison a login, where noting each message would cost every byte that passes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from weakref import WeakKeyDictionary

from pai_backend.access.gateway.activity import LoginActivity, LoginUse
from pai_backend.access.gateway.login import Login
from pai_backend.access.gateway.names import EntryPoint
from pai_backend.access.gateway.turns import in_turns
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


TRICKLE_BYTES = 2048
"""Both directions together; a window of VS Code in which nothing is done moves less than 1 KiB in a minute."""
TRICKLE_S = 60.0

_WITH_HEARTBEATS = frozenset({LoginUse.JUMP, LoginUse.VSCODE})


class LoginUsage:
    """What of one login's activity was use, seen by looking at it now and then.

    SSH's own keepalives are no channel's bytes and never reach the counts. Some channels carry another protocol whose
    own heartbeats look like data: the encrypted stream of a jump, where the client's keepalives are (two packets of
    some 50 bytes at a time), and VS Code's, which says 13 bytes and a frame's header in both directions every 5 s on
    each of its two connections (``PersistentProtocol`` of vscode, ipc.net.ts). There a trickle is no use.
    """

    def __init__(self) -> None:
        self._uses = 0
        self._bytes = 0
        self._since = float("-inf")

    def grown(self, activity: LoginActivity, now: float) -> bool:
        """Whether the login was used since the last look. ``now``: seconds of a clock that never goes back."""
        if activity.kind not in _WITH_HEARTBEATS:
            grown = activity.uses > self._uses
            self._uses = activity.uses
            return grown
        moved = activity.bytes_in + activity.bytes_out
        if moved - self._bytes > TRICKLE_BYTES:
            self._bytes, self._since = moved, now
            return True
        if now - self._since >= TRICKLE_S:
            self._bytes, self._since = moved, now
        return False
