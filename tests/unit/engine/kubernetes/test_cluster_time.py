"""The cluster's time, by what its answers say of when they were made."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from pai_backend.engine.kubernetes.cluster_time import ClusterTime

OURS = datetime(2026, 11, 21, 12, 0, 0, 400_000, tzinfo=UTC)


def told(off: timedelta) -> str:
    """What a server writes whose clock differs from ours by so much."""
    return format_datetime(OURS + off, usegmt=True)


@pytest.mark.parametrize("hours", [-1.0, 1.0, 24.0])
def test_a_clock_that_is_off_is_corrected(hours: float) -> None:
    time = ClusterTime(lambda: OURS)
    time.heard(told(timedelta(hours=hours)))
    assert abs(time.now() - OURS - timedelta(hours=hours)) <= timedelta(seconds=1)


@pytest.mark.parametrize("seconds", [-29.0, -1.0, 0.0, 1.5])
def test_an_answer_that_was_long_on_its_way_changes_nothing(seconds: float) -> None:
    time = ClusterTime(lambda: OURS)
    time.heard(told(timedelta(seconds=seconds)))
    assert time.now() == OURS


def test_a_late_answer_does_not_undo_an_early_one_and_a_clock_that_was_set_is_followed() -> None:
    now = [OURS]
    time = ClusterTime(lambda: now[0])
    time.heard(told(timedelta(hours=1)))
    first = time.now()
    time.heard(told(timedelta(hours=1, seconds=-20)))
    assert time.now() == first
    now[0] = OURS + timedelta(hours=1)  # somebody has set ours right
    time.heard(told(timedelta(hours=1)))
    assert abs(time.now() - now[0]) <= timedelta(seconds=1)


@pytest.mark.parametrize(
    "text", [None, "", "yesterday", "Sat, 99 Nov 2026 12:00:00 GMT", "Sat, 21 Nov 2026 25:00:00 -0000"]
)
def test_what_is_no_date_changes_nothing(text: str | None) -> None:
    time = ClusterTime(lambda: OURS)
    time.heard(text)
    assert time.now() == OURS
