"""Refusals are told at fixed moments."""

from __future__ import annotations

import asyncio

import pytest

from pai_backend.access.gateway import pace


@pytest.mark.asyncio
@pytest.mark.parametrize(("took", "told"), [(0.0, 1), (0.2, 1), (0.9, 1), (1.1, 2), (3.5, 4)])
async def test_what_took_less_or_more_is_told_at_the_same_moment(
    took: float, told: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In steps, by a clock that stands still but for the look."""
    loop, slept, now = asyncio.get_running_loop(), [], [100.0]

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(loop, "time", lambda: now[0])
    monkeypatch.setattr(asyncio, "sleep", sleep)
    since = pace.Pace()
    now[0] += took * pace.STEP_S
    await since.next_moment()
    assert took * pace.STEP_S + slept[0] == pytest.approx(told * pace.STEP_S)
