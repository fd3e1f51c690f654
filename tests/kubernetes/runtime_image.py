"""The runtime bundle's image on the nodes that tests use."""

from __future__ import annotations

import asyncio
import importlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from backend.runtime.bundle.__main__ import ARCHIVE, built
from tests.kubernetes import fixtures
from tests.kubernetes.cluster import slots
from tests.kubernetes.cluster.cluster import Cluster, joined
from tests.kubernetes.fixtures import Kubernetes

GIVEN = "PAI_TEST_RUNTIME_IMAGE"
BUILD = Path(__file__).resolve().parents[2] / "build" / "kubernetes-runtime"
NAME = "localhost/jupyter-pai/runtime"  # no registry has it: a node that lacks it says so


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def runtime_image(kubernetes: Kubernetes, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """Its name; built and loaded onto our own nodes. For a cluster that is not ours, ``PAI_TEST_RUNTIME_IMAGE``."""
    await asyncio.to_thread(importlib.import_module, "kubernetes_asyncio.client")  # seconds that no test's patience has
    if os.environ.get(GIVEN):
        yield os.environ[GIVEN]
    elif not os.environ.get(fixtures.GIVEN):
        yield await loaded(request.getfixturevalue("testbed"))
    elif slots.ROOT in kubernetes.kubeconfig.resolve().parents:
        async with joined(int(kubernetes.kubeconfig.parent.name)) as cluster:
            yield await loaded(cluster)
    else:
        pytest.skip(f"no image with a launcher for this cluster; name one in {GIVEN}")


async def loaded(cluster: Cluster) -> str:
    """The name of the image, which all nodes of the cluster have now."""
    told = await asyncio.to_thread(built, BUILD, NAME)
    for node in cluster.nodes.values():
        if not await node.has_image(told["reference"]):
            await node.load_image(BUILD / ARCHIVE)
    return told["reference"]
