"""How many requests a user may send: a count for each user and fixed span of time. Off unless configured.

Source: OpenPAI's rest-server limits all requests, lists and submissions, each by user. The counts are of one process;
with several api replicas each allows as many.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from pai_backend.model.errors import TooManyRequests
from pai_backend.model.text import Text


@dataclass
class RateLimit:
    """At most ``most`` requests of a user in each span of ``span_s`` seconds; 0 is no limit."""

    most: int
    span_s: int
    what: str
    clock: Callable[[], float] = time.monotonic
    _span: int = field(default=-1, init=False)
    _counts: dict[str, int] = field(default_factory=dict, init=False)

    def take(self, user: str) -> None:
        """Count a request. Raises TooManyRequests, which names the wait."""
        if not self.most:
            return
        now = self.clock()
        span = int(now // self.span_s)
        if span != self._span:
            self._span, self._counts = span, {}  # so memory holds the users of one span only
        count = self._counts[user] = self._counts.get(user, 0) + 1
        if count > self.most:
            wait = int((span + 1) * self.span_s - now) + 1
            raise TooManyRequests(
                Text(
                    "You have sent {most} {what} in {span_s} s, the limit.",
                    most=self.most,
                    what=self.what,
                    span_s=self.span_s,
                ),
                hint=Text("Try again in {wait} s.", wait=wait),
            )


@dataclass(frozen=True)
class RateLimits:
    """The limits of one process."""

    requests: RateLimit
    lists: RateLimit
    submissions: RateLimit


def limits(
    requests_per_minute: int = 0,
    lists_per_minute: int = 0,
    submissions_per_hour: int = 0,
    clock: Callable[[], float] = time.monotonic,
) -> RateLimits:
    """Limits in OpenPAI's spans; 0: no limit."""
    return RateLimits(
        RateLimit(requests_per_minute, 60, "requests", clock),
        RateLimit(lists_per_minute, 60, "requests for lists", clock),
        RateLimit(submissions_per_hour, 3600, "submissions", clock),
    )
