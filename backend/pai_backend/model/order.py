"""In which order a queue serves those that wait with one priority."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum

UNKNOWN_RUN = timedelta(hours=1)
LONGEST_RUN = timedelta(days=30)
"""No run is expected to be longer, so that no turn lies beyond all dates."""


class Order(StrEnum):
    """In which order groups of one priority are served.

    By submission, or by submission put off by a multiple of how long the group is expected to run: short groups then go
    first, and a long one waits for those of a bounded time after it, not for ever. Without ending anybody a short mean
    wait and a short longest wait pull against each other; hence two multiples.
    """

    SUBMITTED = "submitted"
    FAIR = "fair"
    PREDICTED = "predicted"

    def put_off(self, run: timedelta | None) -> timedelta:
        """By how much the turn of a group is put off that is expected to run so long; None is unknown."""
        return _PUT_OFF[self] * min(UNKNOWN_RUN if run is None else run, LONGEST_RUN)


_PUT_OFF: dict[Order, float] = {Order.SUBMITTED: 0, Order.FAIR: 1, Order.PREDICTED: 4}
