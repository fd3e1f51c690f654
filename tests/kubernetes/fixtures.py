"""Fixtures of tests on Kubernetes: the worker's cluster, a namespace of the test's own, simulated nodes.

``kubernetes`` is for tests that any cluster can serve, ``testbed`` for those that cut its power. With
``PAI_TEST_KUBECONFIG`` the former use the cluster that it names, and the latter are skipped. Where no cluster can run,
all are skipped with the reason; in CI (``CI`` is set) that is a failure.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest
import pytest_asyncio

from tests.kubernetes.cluster import images, programs, slots
from tests.kubernetes.cluster.cluster import Cluster, started
from tests.kubernetes.cluster.kubectl import Kubectl
from tests.kubernetes.cluster.simulation import RARE, Simulation

GIVEN = "PAI_TEST_KUBECONFIG"
NODES = ("carol", "dan")  # the machines of the lab that the examples describe, with one GPU each


@dataclass(frozen=True)
class Kubernetes:
    """A cluster that tests use and do not harm."""

    kubectl: Kubectl
    busybox: str
    python: str

    @property
    def kubeconfig(self) -> Path:
        """The file by which it is reached, as an administrator."""
        return self.kubectl.kubeconfig


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def testbed() -> AsyncIterator[Cluster]:
    """The worker's own cluster, with two nodes of one GPU that does not exist."""
    if os.environ.get(GIVEN):
        pytest.skip(f"{GIVEN} names a cluster that is not ours to cut the power of")
    await asyncio.to_thread(need_machine)
    async with started(NODES) as cluster:
        for name in NODES:
            await cluster.give_gpus(name, 1)
        yield cluster


@pytest.fixture(scope="session")
def kubernetes(request: pytest.FixtureRequest) -> Kubernetes:
    """The cluster to test on: the given one, or the worker's own."""
    given = os.environ.get(GIVEN)
    if not given:
        cluster: Cluster = request.getfixturevalue("testbed")
        return Kubernetes(cluster.kubectl, images.BUSYBOX, images.PYTHON)
    installed = shutil.which("kubectl")
    program = Path(installed) if installed else programs.build("kubectl") / "kubectl"
    if not Path(given).is_file():
        pytest.fail(f"{GIVEN}={given}: there is no such file")
    kubectl = Kubectl(program, Path(given))
    if slots.ROOT in Path(given).resolve().parents:  # `make cluster`
        return Kubernetes(kubectl, images.BUSYBOX, images.PYTHON)
    return Kubernetes(kubectl, "busybox:stable", "python:3.12-slim")


@pytest_asyncio.fixture
async def namespace(kubernetes: Kubernetes) -> AsyncIterator[Kubectl]:
    """kubectl within a namespace of the test's own, which is deleted afterwards with all that is in it."""
    name = f"test-{uuid.uuid4().hex[:12]}"
    kubectl = kubernetes.kubectl.within(name)
    await kubectl("create", "namespace", name)
    await kubectl("wait", "--for=create", "--timeout=30s", "serviceaccount/default")
    yield kubectl
    await remove_namespace(kubectl)


@pytest_asyncio.fixture
async def scale() -> AsyncIterator[Simulation]:
    """A control plane of the test's own with kwok, for hundreds of simulated nodes: ``await scale.add_nodes(50)``."""
    await asyncio.to_thread(need_machine)
    place = await asyncio.to_thread(programs.build, *programs.CONTROL_PLANE, "kwok")
    async with started(timing=RARE) as cluster:
        simulation = Simulation(cluster)
        simulation.start(place)
        yield simulation


async def remove_namespace(kubectl: Kubectl) -> None:
    """End the pods of a namespace now, whoever wants to look at them first, and let the rest go by itself."""
    for pod in (await kubectl.get("pods"))["items"]:
        if pod["metadata"].get("finalizers"):
            nothing = '{"metadata":{"finalizers":null}}'
            # It may go while we look.
            await kubectl.attempt("patch", "pod", pod["metadata"]["name"], "--type=merge", "-p", nothing)
    await kubectl("delete", "pods", "--all", "--grace-period=1", "--timeout=60s")
    await kubectl("delete", "namespace", kubectl.namespace, "--wait=false")


def need_machine(lacking_also: Callable[[], list[str]] = list) -> None:
    """Skip the test where no cluster can run, with what is missing; in CI that is a failure.

    ``lacking_also`` is asked, on a machine that has all that clusters need, what it lacks for what else tests do.
    """
    lacks = programs.lacking() or lacking_also()
    if lacks:
        help_ = "`tools/system-packages kubernetes` helps"
        _refuse(f"no Kubernetes cluster can run here; missing: {', '.join(lacks)}. {help_}")


def _refuse(why: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(why)
    pytest.skip(why)


def keep_logs(cluster: Cluster, place: Path) -> None:
    """Copy the logs of all parts of a cluster to a place where they stay."""
    if place.exists():
        shutil.rmtree(place)
    place.mkdir(parents=True)
    for log in cluster.logs():
        shutil.copy(log, place / "-".join(log.relative_to(cluster.directory).parts))
