"""helm, built as the cluster's programs are, and a release of the chart on a cluster of ours."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.kubernetes import fixtures
from tests.kubernetes.cluster import programs, slots
from tests.kubernetes.cluster.cluster import Cluster, joined
from tests.kubernetes.deploy.helm import Helm
from tests.kubernetes.deploy.release import Release, made_for
from tests.kubernetes.fixtures import Kubernetes

RELEASE_S = 1200


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def helm_program() -> Path:
    """The program."""
    return await asyncio.to_thread(programs.build, "helm") / "helm"


@pytest_asyncio.fixture
async def helm(helm_program: Path, tmp_path: Path) -> Helm:
    """helm without a cluster."""
    return Helm(helm_program, tmp_path)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def our_cluster(kubernetes: Kubernetes, request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    """The cluster, when it is one of ours: a database must listen where its pods reach it."""
    if not os.environ.get(fixtures.GIVEN):
        yield request.getfixturevalue("testbed")
    elif slots.ROOT in kubernetes.kubeconfig.resolve().parents:
        async with joined(int(kubernetes.kubeconfig.parent.name)) as cluster:
            yield cluster
    else:
        pytest.skip(f"{fixtures.GIVEN} names a cluster whose pods cannot reach a database on this machine")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def release(
    our_cluster: Cluster,
    helm_program: Path,
    backend_image: str,
    runtime_image: str,
    kubernetes: Kubernetes,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> AsyncIterator[Release]:
    """A release of the chart, installed with the ``VALUES`` of a module, whose tests share it."""
    place = tmp_path_factory.mktemp("release")
    helm = Helm(helm_program, place, our_cluster.kubeconfig)
    name = f"pai-{uuid.uuid4().hex[:8]}"
    async with made_for(name, our_cluster, helm, place, backend_image, runtime_image, kubernetes.python) as made:
        await made.install(**request.module.VALUES)
        await made.make_key()
        yield made


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the first test of a release time for an image to be built and loaded, on a machine that others use."""
    for item in items:
        if "release" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(RELEASE_S), append=False)  # before the one that all tests here have
