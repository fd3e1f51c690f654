"""Counting requests."""

from __future__ import annotations

import pytest

from pai_backend.auth.limits import RateLimit, limits
from pai_backend.model.errors import TooManyRequests


def test_a_user_is_refused_beyond_the_limit_and_told_the_wait() -> None:
    now = [120.0]
    limit = RateLimit(2, 60, "requests", lambda: now[0])
    limit.take("alice")
    limit.take("alice")
    limit.take("bob")
    with pytest.raises(TooManyRequests) as refused:
        limit.take("alice")
    assert refused.value.hint == "Try again in 61 s."
    now[0] = 180.0
    limit.take("alice")


def test_nothing_is_counted_where_there_is_no_limit() -> None:
    none = limits()
    for _ in range(1000):
        none.requests.take("alice")
    assert vars(none.requests)["_counts"] == {}


def test_only_users_of_the_present_span_are_remembered() -> None:
    now = [0.0]
    limit = RateLimit(5, 60, "requests", lambda: now[0])
    for number in range(100):
        limit.take(f"user{number}")
    now[0] = 60.0
    limit.take("alice")
    assert vars(limit)["_counts"] == {"alice": 1}
