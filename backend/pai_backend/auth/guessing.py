"""Who may not sign in for now: users that an administrator has locked out, and those who guess passwords.

Guesses are counted for each pair of a user and a source. An unknown name counts like any other, so that refusals do
not tell which there are. Of one process.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection

from pai_backend.auth.fresh import Fresh
from pai_backend.model.errors import LockedOut, TooManyRequests
from pai_backend.model.text import Text

FREE = 5
"""Failures in a row that cost nothing: people mistype."""
LONGEST_S = 300.0
SUSPECT = 10
"""Failures of a source, for any name, after which it goes to the back of the queue."""
FORGET_S = 3_600.0
_KEPT = 10_000

Pair = tuple[str, str]


class Guesses:
    """Counts failures by user and source."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures: OrderedDict[Pair, tuple[int, float]] = OrderedDict()  # how many, and when the last was
        self._good: OrderedDict[Pair, None] = OrderedDict()

    def admit(self, pair: Pair) -> None:
        """Raise TooManyRequests while the pair is locked; it names the wait."""
        count, last = self._of(pair)
        wait = last + min(2.0 ** (count - FREE), LONGEST_S) - self._clock() if count >= FREE else 0.0
        if wait > 0:
            raise TooManyRequests(
                Text("{count} sign-ins of this user from this address have failed in a row.", count=count),
                hint=Text("Try again in {math} s.", math=math.ceil(wait)),
            )

    def is_suspect(self, pair: Pair) -> bool:
        """Whether this is likely to be a guess: those wait for each other, and no other request waits for them."""
        if self._of(pair)[0]:
            return True
        return pair not in self._good and self._of(("", pair[1]))[0] >= SUSPECT

    def failed(self, pair: Pair) -> int:
        """Count a failure; how many of this pair there are in a row."""
        for each in (pair, ("", pair[1])):
            self._failures[each] = self._of(each)[0] + 1, self._clock()
            self._failures.move_to_end(each)
        while len(self._failures) > _KEPT:
            self._failures.popitem(last=False)
        return self._failures[pair][0]

    def succeeded(self, pair: Pair) -> None:
        """The password was right: earlier failures were mistakes."""
        self._failures.pop(pair, None)
        self._good[pair] = None
        self._good.move_to_end(pair)
        while len(self._good) > _KEPT:
            self._good.popitem(last=False)

    def _of(self, pair: Pair) -> tuple[int, float]:
        count, last = self._failures.get(pair, (0, 0.0))
        return (count, last) if count and self._clock() - last < FORGET_S else (0, 0.0)


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
