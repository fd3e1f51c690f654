"""When to ask an API server again, and after how long. Pure: chance and time come in as arguments."""

from __future__ import annotations

from dataclasses import dataclass

from pai_backend.engine.kubernetes.failures import (
    Busy,
    ClusterError,
    NotAdmitted,
    RequestRefused,
    Unreachable,
    Untrusted,
)

# 501 (not implemented) and 505 are as final as a 404.
_PASSING = {429, 500, 502, 503, 504}


@dataclass(frozen=True)
class Backoff:
    """Pauses that double up to a cap, each drawn between nothing and that bound ("full jitter").

    Source: https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/, where of all variants this one
    lets many clients recover with the fewest calls.
    """

    base_s: float = 0.25
    cap_s: float = 15.0

    def bound_s(self, failures: int) -> float:
        """The longest pause after that many failures in a row; none after none."""
        return 0.0 if failures <= 0 else min(self.cap_s, self.base_s * 2.0 ** min(failures - 1, 30))

    def pause_s(self, failures: int, chance: float, retry_after_s: float | None = None) -> float:
        """The pause for a ``chance`` in [0, 1), on top of what the server asked for."""
        return (retry_after_s or 0.0) + chance * self.bound_s(failures)


def passing(error: ClusterError) -> bool:
    """Whether the same request may succeed a little later."""
    if isinstance(error, Unreachable):
        return not isinstance(error, Untrusted)
    return isinstance(error, Busy) and error.status in _PASSING


def open_outcome(error: ClusterError) -> bool:
    """Whether the request may have been carried out although it failed.

    A 5xx leaves that open: ``etcdserver: request timed out`` is a 500 whose write may have happened. A 429 does not,
    nor what was never admitted.
    """
    if isinstance(error, Unreachable):
        return error.sent
    return isinstance(error, RequestRefused) and error.status >= 500 and not isinstance(error, NotAdmitted)
