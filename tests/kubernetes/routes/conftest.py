"""A release on nodes that enforce policies, and the door that a module's tests go in by: an Ingress, or a Gateway."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import ssl
import uuid
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio
import yaml

from pai_backend.api.wire import MEDIA_TYPE
from tests.kubernetes import backend_image as backend
from tests.kubernetes.cluster import images, programs
from tests.kubernetes.cluster.cluster import Cluster
from tests.kubernetes.cluster.commands import run
from tests.kubernetes.cluster.credentials import Authority
from tests.kubernetes.cluster.kubectl import Kubectl
from tests.kubernetes.deploy.helm import Helm
from tests.kubernetes.deploy.release import TOKEN, made_for, merged
from tests.kubernetes.policies.conftest import bundle, guarded
from tests.kubernetes.routes import traefik
from tests.kubernetes.routes.front import ByName, Front

__all__ = ["bundle", "guarded"]

API, SERVICES = "pai.example.com", "services.pai.example.com"
URL = f"https://{API}:{traefik.WEBSECURE}"
RELEASE_S, BUILD_S = 1200, 3600


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def controller(guarded: Cluster) -> AsyncIterator[Kubectl]:
    """kubectl in the namespace where Traefik runs."""
    async with traefik.traefik(guarded) as kubectl:
        yield kubectl


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def unopened(
    guarded: Cluster, bundle: str, controller: Kubectl, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Front]:
    """All that a release needs, its certificate included; nothing is installed yet."""
    place = tmp_path_factory.mktemp("routes")
    reference, archive = await asyncio.to_thread(backend.built, programs.images())
    await backend.load(guarded, reference, archive)
    helm = Helm(await asyncio.to_thread(programs.build, "helm") / "helm", place, guarded.kubeconfig)
    authority = Authority(place / "credentials")
    authority.create()
    trust = ssl.create_default_context(cafile=str(authority.certificate))
    address = guarded.nodes["carol"].address
    name = f"pai-{uuid.uuid4().hex[:8]}"
    headers = {"Authorization": f"Bearer {TOKEN}", "Accept": MEDIA_TYPE}
    async with (
        made_for(name, guarded, helm, place, reference, bundle, images.PYTHON) as release,
        httpx.AsyncClient(
            base_url=URL, headers=headers, timeout=60, transport=ByName(address, trust), trust_env=False
        ) as client,
    ):
        pair = authority.issue(API, hosts=[API, f"*.{SERVICES}"])
        pair.certificate.rename(place / "tls.crt")
        pair.key.rename(place / "tls.key")
        path = f"PATH={guarded.programs}{os.pathsep}{os.environ['PATH']}"
        command = traefik.fence("kubectl -n pai create secret tls").replace("-n pai ", f"-n {name} ")
        await run("env", "-C", place, path, f"KUBECONFIG={guarded.kubeconfig}", "bash", "-euc", command)
        ours = {
            "config": {"kubernetes": {"nodes": {"gpu_types": {"GPU": "TITANX"}}}},
            "tasks": {"storage": {"enabled": False}},  # files that are sent go to the backend's own claim
        }
        values = merged(release.values, ours)
        yield Front(dataclasses.replace(release, client=client, values=values), address, trust, URL, reference)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def front(unopened: Front, controller: Kubectl, request: pytest.FixtureRequest) -> AsyncIterator[Front]:
    """The release with the values that the page has for the ``DOOR`` of a module, and the objects that belong to it."""
    release, door = unopened.release, request.module.DOOR
    before = release.values
    objects = [row for file in door.objects for row in traefik.told(file)]
    for each in objects:
        if "namespace" in each["metadata"]:
            each["metadata"]["namespace"] = release.kubectl.namespace
    given = yaml.safe_dump_all(objects)
    await unopened.until_shut()
    try:
        if objects:
            await release.kubectl("apply", "-f", "-", given=given)
        (values,) = traefik.told(door.values)
        await release.install(**installed(values, controller.namespace, door.ssh))
        await unopened.until_open()
        (release.place / "known_hosts").unlink(missing_ok=True)  # of the port of another door
        if not (release.place / "key").exists():
            await release.make_key()
        yield unopened
    finally:
        await release.uninstall()
        if objects:
            await release.kubectl("delete", "--ignore-not-found", "-f", "-", given=given)
        release.values = before


def installed(values: dict[str, Any], namespace: str, ssh: int) -> dict[str, Any]:
    """The page's values, where Traefik's namespace has another name and the nodes have the ports."""
    for peers in values["networkPolicy"].values():
        for peer in peers:
            labels = peer["namespaceSelector"]["matchLabels"]
            assert labels == {"kubernetes.io/metadata.name": "traefik"}
            labels["kubernetes.io/metadata.name"] = namespace
    inner = {"type": "ClusterIP", "nodePort": None}
    ours = {
        "api": {"publicUrl": URL, "serviceDomain": SERVICES, "service": inner},
        "gateway": {"publicPort": ssh, "service": {"nodePort": None} if "gateway" in values else {}},
    }
    return merged(values, ours)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the first test time for Traefik to be built, for images, and for a release."""
    limit_s = BUILD_S if programs.unbuilt("traefik") else RELEASE_S
    for item in items:
        if "front" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(limit_s), append=False)  # before the one that all tests here have
