"""A short crash campaign, as CI runs it; ``make crash KILLS=100`` is the long one."""

from pathlib import Path

import pytest

from tests.crash.campaign import Campaign

SEED = 2026
"""Of what is submitted and killed when; other seeds belong to ``make crash``, which prints its own."""


@pytest.mark.crash
@pytest.mark.timeout(600)
@pytest.mark.asyncio
async def test_ten_kills_lose_nothing_and_run_nothing_twice(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, kills=10, jobs=30, seed=SEED, takeovers=6)
    findings = await campaign.run()
    assert findings == []
    assert sum(campaign.killed.values()) == 10
