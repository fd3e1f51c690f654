"""Tokens that were read a moment ago: a page that loads brings the same one a hundred times in a second."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from datetime import datetime

from pai_backend.store.base import AccessToken

FRESH_S = 0.5
"""Seconds for which a token counts that was read. Who stays is looked at each second, and what ends a right counts
within 2 s (docs/security.md)."""
MOST = 4096


class RememberedTokens:
    """Reads tokens by their digests; those that are there are remembered, what is not there is asked for again."""

    def __init__(
        self,
        read: Callable[[str, datetime], Awaitable[AccessToken | None]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read, self._clock = read, clock
        self._kept: dict[str, tuple[float, AccessToken]] = {}
        self._changes = 0

    def forget(self) -> None:
        """Read again before the next answer: this process has ended a token."""
        self._changes += 1
        self._kept.clear()

    async def get(self, digest: str, now: datetime) -> AccessToken | None:
        """The token of this digest, unless its time is over. Raises what the read raises."""
        begun, kept = self._clock(), self._kept.get(digest)
        if kept is not None and begun < kept[0]:
            token = kept[1]
            return token if token.expires_at is None or now < token.expires_at else None
        changes, token_now = self._changes, await self._read(digest, now)
        self._kept.pop(digest, None)
        if token_now is not None and changes == self._changes:  # else it may have ended while it was read
            while len(self._kept) >= MOST:
                del self._kept[next(iter(self._kept))]  # the oldest
            self._kept[digest] = begun + FRESH_S, token_now
        return token_now
