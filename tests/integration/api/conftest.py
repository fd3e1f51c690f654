from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from tests.support.api_site import ApiSite, running_api


@pytest_asyncio.fixture
async def api(tmp_path: Path) -> AsyncIterator[ApiSite]:
    """A running API over a fresh store."""
    async with running_api(tmp_path) as site:
        yield site
