"""A short crash campaign, as CI runs it; ``make crash KILLS=100`` is the long one."""

import random
from pathlib import Path

import pytest

from tests.crash.campaign import Campaign


@pytest.mark.crash
@pytest.mark.timeout(600)
@pytest.mark.asyncio
async def test_twenty_kills_lose_nothing_and_run_nothing_twice(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(10**6)
    campaign = Campaign(tmp_path, kills=20, jobs=60, seed=seed)
    findings = await campaign.run()
    assert findings == [], f"seed {seed}"
    assert sum(campaign.killed.values()) == 20
