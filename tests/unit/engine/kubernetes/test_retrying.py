"""Pauses between tries: they double, are capped and drawn by chance."""

from __future__ import annotations

import pytest

from pai_backend.engine.kubernetes.retrying import Backoff


@pytest.mark.parametrize(
    ("failures", "bound"), [(0, 0.0), (-1, 0.0), (1, 0.5), (2, 1.0), (3, 2.0), (5, 8.0), (6, 10.0), (10_000, 10.0)]
)
def test_the_bound_doubles_up_to_the_cap(failures: int, bound: float) -> None:
    assert Backoff(base_s=0.5, cap_s=10.0).bound_s(failures) == bound


def test_a_pause_lies_anywhere_below_the_bound_and_after_what_the_server_asked_for() -> None:
    backoff = Backoff(base_s=0.5, cap_s=10.0)
    assert backoff.pause_s(3, 0.0) == 0.0
    assert backoff.pause_s(3, 0.75) == 1.5
    assert backoff.pause_s(3, 0.75, retry_after_s=30.0) == 31.5
    assert backoff.pause_s(0, 0.75) == 0.0
