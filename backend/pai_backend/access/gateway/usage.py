"""Whether a login uses its job: bytes of every kind of channel, and no heartbeats.

SSH's own keepalives are no channel's bytes and never reach the counts. Some channels carry another protocol whose own
heartbeats look like data: the encrypted stream of a jump, where the client's keepalives are (two packets of some 50
bytes at a time), and VS Code's, which says 13 bytes and a frame's header in both directions every 5 s on each of its
two connections (``PersistentProtocol`` of vscode, ipc.net.ts). There a trickle is no use.
"""

from __future__ import annotations

from pai_backend.access.gateway.activity import LoginActivity, LoginUse

TRICKLE_BYTES = 2048
"""Both directions together; a window of VS Code in which nothing is done moves less than 1 KiB in a minute."""
TRICKLE_S = 60.0

_WITH_HEARTBEATS = frozenset({LoginUse.JUMP, LoginUse.VSCODE})


class LoginUsage:
    """What of one login's activity was use, seen by looking at it now and then."""

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
