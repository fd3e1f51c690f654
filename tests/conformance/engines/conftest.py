"""The rooms: one backend for each engine, and the jobs of a module side by side in it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import uuid
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.conformance.clients.entry import Entry
from tests.conformance.engines.room import Job, Room, opened
from tests.kubernetes import notebook_image
from tests.kubernetes.backend_image import backend_image
from tests.kubernetes.cluster import programs, slots
from tests.kubernetes.cluster.cluster import Cluster, joined
from tests.kubernetes.cluster.kubectl import Kubectl
from tests.kubernetes.fixtures import GIVEN, Kubernetes, kubernetes, remove_namespace, testbed
from tests.kubernetes.runtime_image import runtime_image
from tests.support.podman_site import CONTAINERS, PodmanSite, site

__all__ = ["backend_image", "kubernetes", "runtime_image", "site", "testbed"]

HERE = f"{Path(__file__).parent}{os.sep}"
GPU = "TITANX"  # what the seeds' documents ask for
NODES = [
    {"name": name, "simulated": True, "gpus": {"type": GPU, "count": 1}, "cpus": 8, "memory_mb": 32768}
    for name in ("carol", "dan")
]
SETTINGS = (
    *("--engine-grace-s", "2"),
    *("--virtual-clusters", json.dumps(["default", "your_virtual_cluster"])),
)
LIMIT_S, BUILD_S = 900, 2400
"""The first test of an engine also waits for images, cluster and backend, on a new machine until they are built."""
WORDS = 6000  # of a backend, beside a failure


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of an engine in one worker, where they share a backend."""
    ours = [(item, engine) for item in items if str(item.path).startswith(HERE) and (engine := _engine_of(item))]
    limits = dict.fromkeys((engine for _, engine in ours), LIMIT_S)
    if "kubernetes" in limits and programs.unbuilt():
        limits["kubernetes"] = BUILD_S
    for item, engine in ours:
        item.add_marker(f"room_{engine}")
        item.add_marker(pytest.mark.xdist_group(CONTAINERS if engine == "containers" else f"room-{engine}"))
        item.add_marker(pytest.mark.timeout(limits[engine]))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what the backend said last beside a failure."""
    report = yield
    room = getattr(item, "funcargs", {}).get("room")
    if report.failed and isinstance(room, Room):
        report.sections.append(("backend", room.backend.errors.read_text(errors="replace")[-WORDS:]))
    return report


def _engine_of(item: pytest.Item) -> str:
    """The engine that a test is for; empty when it is for none."""
    call = getattr(item, "callspec", None)
    return str(call.params.get("room", "")) if call is not None else ""


@pytest.fixture(scope="session", params=["local", "containers", "kubernetes"])
def room(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    """A backend with the engine that the test's name ends with."""
    directory = tmp_path_factory.mktemp(request.param)
    if request.param == "local":
        image, arguments = "not-used-here", ["--engine-nodes", json.dumps(NODES)]
    elif request.param == "containers":
        image, arguments = _in_containers(request, directory / "files")
    else:
        image, arguments = _on_kubernetes(request, directory / "files")
    with opened(request.param, image, directory, [*arguments, *SETTINGS]) as made:
        yield made


def _in_containers(request: pytest.FixtureRequest, files: Path) -> tuple[str, list[str]]:
    """The image of tasks, and what the backend is told of Podman, which it finds by variables."""
    site: PodmanSite = request.getfixturevalue("site")
    os.environ.update(site.environment)
    given = {"runtime_image": site.runtime_image, "mounts": json.dumps([{"source": str(files)}])}
    words = [word for key, value in given.items() for word in (f"--containers-{key.replace('_', '-')}", value)]
    return site.image, ["--engine-kind", "containers", "--engine-nodes", json.dumps(NODES), *words]


def _on_kubernetes(request: pytest.FixtureRequest, files: Path) -> tuple[str, list[str]]:
    """The image of tasks, and what the backend is told of the cluster."""
    cluster: Kubernetes = request.getfixturevalue("kubernetes")
    namespace: Kubectl = request.getfixturevalue("room_namespace")
    pods = {
        "runtime_image": request.getfixturevalue("runtime_image"),
        "inputs_image": request.getfixturevalue("backend_image"),
        "grace_s": 2,
        "cpu_limits": False,
        "volumes": [{"name": "files", "host_path": str(files), "path": str(files)}],
    }
    keys = {
        "kubeconfig": str(cluster.kubeconfig),
        "namespace": namespace.namespace,
        "pods": json.dumps(pods),
        "nodes": json.dumps({"gpu_types": {"GPU": GPU}}),
    }
    words = [word for key, value in keys.items() for word in (f"--kubernetes-{key}", value)]
    return cluster.python, ["--engine-kind", "kubernetes", *words]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def room_namespace(kubernetes: Kubernetes) -> AsyncIterator[Kubectl]:
    """kubectl within the namespace of the room on the cluster; it goes with all that is in it."""
    namespace = kubernetes.kubectl.within(f"room-{uuid.uuid4().hex[:12]}")
    await namespace("create", "namespace", namespace.namespace)
    await namespace("wait", "--for=create", "--timeout=30s", "serviceaccount/default")
    yield namespace
    await remove_namespace(namespace)


@pytest.fixture(scope="session")
def scm_images(room: Room, request: pytest.FixtureRequest) -> None:
    """Where images are, those that documents of SCM name: only their authors' registry has them."""
    if room.engine == "containers":
        site: PodmanSite = request.getfixturevalue("site")
        site.load_scm_images(notebook_image.built(programs.images()), notebook_image.REFERENCES)
    elif room.engine == "kubernetes":
        request.getfixturevalue("scm_images_on_nodes")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def scm_images_on_nodes(kubernetes: Kubernetes, request: pytest.FixtureRequest) -> None:
    """Those on our own nodes."""
    archive = await asyncio.to_thread(notebook_image.built, programs.images())
    async with contextlib.AsyncExitStack() as uses:
        if not os.environ.get(GIVEN):
            cluster: Cluster = request.getfixturevalue("testbed")
        elif slots.ROOT in kubernetes.kubeconfig.resolve().parents:
            cluster = await uses.enter_async_context(joined(int(kubernetes.kubeconfig.parent.name)))
        else:
            pytest.skip(f"the nodes of the cluster that {GIVEN} names cannot be given images")
        first, *others = notebook_image.REFERENCES
        for node in cluster.nodes.values():
            if not await node.has_image(first):
                await node.load_image(archive)
            for other in others:
                await node.ctr("images", "tag", "--force", first, other)


@pytest.fixture
def job(room: Room, request: pytest.FixtureRequest) -> Iterator[Job]:
    """The job of the test's own document. All of a module are submitted when the first of them is needed."""
    if request.node.nodeid not in room.jobs:
        for item in request.session.items:
            document = item.get_closest_marker("document")
            if item.path == request.node.path and document is not None and _engine_of(item) == room.engine:
                room.jobs[item.nodeid] = room.submit(*document.args)
    found = room.jobs[request.node.nodeid]
    yield found
    found.stop()


@pytest.fixture(scope="module")
def entry(room: Room, job: Job) -> Entry:
    """The way into the job that the tests of a module share: a module that asks for it has a ``job`` of that scope."""
    return room.entry(job)
