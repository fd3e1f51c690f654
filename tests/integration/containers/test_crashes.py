"""A short crash campaign over containers; ``make crash ENGINE=containers KILLS=100`` is the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from pai_backend.engine.containers.podman import prefix
from tests.crash.campaign import Campaign
from tests.support.backend_process import until
from tests.support.podman_site import PodmanSite

SEED = 2027
"""Of what is submitted and killed when; other seeds belong to ``make crash``, which prints its own."""


@pytest.mark.crash
@pytest.mark.asyncio
async def test_eight_kills_lose_no_container_and_run_none_twice(site: PodmanSite, tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "home", kills=8, jobs=16, seed=SEED, takeovers=3, podman=site)
    findings = await campaign.run()
    assert findings == []
    assert sum(campaign.killed.values()) == 8
    own = prefix(str(tmp_path / "home" / "data" / "engine"))
    until(lambda: own not in site.podman("ps", "--all", "--format={{.Names}}"), 20)  # shims remove them last
