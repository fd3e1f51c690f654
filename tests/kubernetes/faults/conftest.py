"""A cluster to harm while no other test uses it. One backend serves all tests that it survives."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.kubernetes.cluster.cluster import Cluster
from tests.kubernetes.faults.product import Product, Site, product_on, site_on
from tests.kubernetes.runtime_image import loaded


@pytest.fixture(scope="session")
def faulty(testbed: Cluster) -> Cluster:
    """The worker's own cluster, which tests of this package may harm while they run: they leave it whole."""
    return testbed


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def bundle(faulty: Cluster) -> str:
    """The runtime image, on both nodes."""
    return await loaded(faulty)


@pytest_asyncio.fixture(loop_scope="session")
async def site(faulty: Cluster, bundle: str, tmp_path: Path) -> AsyncIterator[Site]:
    """A namespace of the test's own."""
    async with site_on(faulty, f"faults-{uuid.uuid4().hex[:8]}", tmp_path, bundle) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def other_site(faulty: Cluster, bundle: str, tmp_path: Path) -> AsyncIterator[Site]:
    """Another one."""
    place = tmp_path / "other"
    place.mkdir()
    async with site_on(faulty, f"faults-{uuid.uuid4().hex[:8]}", place, bundle) as made:
        yield made


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def product(faulty: Cluster, bundle: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Product]:
    """A backend in a namespace of its own, with api and controller as two processes."""
    place = tmp_path_factory.mktemp("product")
    async with (
        site_on(faulty, f"faults-{uuid.uuid4().hex[:8]}", place, bundle) as site,
        product_on(site, place / "backend") as made,
    ):
        yield made
