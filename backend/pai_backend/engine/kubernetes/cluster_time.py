"""What time it is in the cluster: our own clock may be off, and how long a pod has waited is written in the cluster's.

Answers of the API server say when they were made (``Date``). They are late by as long as they were on their way, so one
that is ahead of what we thought is believed at once, and one that is behind only when no journey takes that long.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

_log = logging.getLogger(__name__)

EXACT: Final = timedelta(seconds=2)  # Date has whole seconds
SLOWEST: Final = timedelta(seconds=30)  # an answer that was longer on its way has timed out


def own_time() -> datetime:
    """The time by our own clock."""
    return datetime.now(UTC)


class ClusterTime:
    """Our clock, corrected by what the API server's answers say."""

    def __init__(self, clock: Callable[[], datetime] = own_time) -> None:
        self._clock = clock
        self._shift = timedelta(0)

    def now(self) -> datetime:
        """The time in the cluster; our own until an answer has shown that it is another."""
        return self._clock() + self._shift

    def heard(self, date: str | None) -> None:
        """Take the header ``Date`` of an answer that has just begun. One that cannot be read changes nothing."""
        try:
            said = parsedate_to_datetime(date or "")
        except ValueError:
            return
        if said.tzinfo is None:
            return
        off = said - self.now()
        if -SLOWEST <= off <= EXACT:
            return
        self._shift += off
        _log.warning(
            "our clock differs from the API server's by %.0f s: the latter counts", self._shift.total_seconds()
        )
