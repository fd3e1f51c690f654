"""The backend's image made by a real builder from its recipe, and a container of it that answers."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.kubernetes import backend_image
from tests.kubernetes.cluster import programs
from tests.kubernetes.cluster.cluster import Cluster
from tests.kubernetes.cluster.commands import run, until
from tests.kubernetes.cluster.kubectl import Kubectl
from tests.kubernetes.deploy import base_image

pytestmark = pytest.mark.asyncio(loop_scope="session")

ROOT = Path(__file__).resolve().parents[3]
BUILD_S = 1200
# By which pip of this machine reaches the index of packages.
OF_THIS_MACHINE = [path for path in ("/etc/ssl/certs", "/etc/pip.conf") if Path(path).exists()]
PORT = 8080


@dataclass(frozen=True)
class Builder:
    """buildah, with images of its own."""

    place: Path

    async def __call__(self, *words: str | Path) -> str:
        """What a command prints to which this is the builder. Raises CommandFailed."""
        # As the root of a container can: no file systems over one another, no namespaces.
        here = [f"CONTAINERS_STORAGE_CONF={self.place / 'storage.conf'}", "BUILDAH_ISOLATION=chroot"]
        return await run("env", *here, "IMAGE_BUILDER=buildah", *words, limit_s=BUILD_S)


@pytest.fixture
def builder() -> Iterator[Builder]:
    """Removed with all images, which are large."""
    place = Path(tempfile.mkdtemp(prefix="pai-images-"))
    where = {"runroot": place / "run", "graphroot": place / "images"}
    lines = ["[storage]", 'driver = "vfs"', *(f'{key} = "{path}"' for key, path in where.items())]
    (place / "storage.conf").write_text("\n".join(lines) + "\n")
    yield Builder(place)
    shutil.rmtree(place)


@pytest.mark.timeout(2 * BUILD_S)
async def test_a_builder_makes_of_the_recipe_an_image_that_serves(
    our_cluster: Cluster, namespace: Kubectl, builder: Builder
) -> None:
    reference, archive = f"localhost/jupyter-pai/built:{uuid.uuid4().hex[:8]}", builder.place / "image.tar"
    await asyncio.to_thread(base_image.built, programs.images(), archive)
    await builder("buildah", "pull", "--quiet", f"docker-archive:{archive}")
    archive.unlink()
    options = [f"--build-arg=PYTHON={base_image.REFERENCE}"]
    options += [f"--volume={path}:{path}:ro" for path in OF_THIS_MACHINE]
    said = await builder(ROOT / "tools" / "backend-image", reference, *options)
    assert said.splitlines()[-1] == reference

    config = json.loads(await builder("buildah", "inspect", "--type=image", reference))["OCIv1"]["config"]
    assert {key: config[key] for key in backend_image.CONFIG if key != "Env"} == {
        key: value for key, value in backend_image.CONFIG.items() if key != "Env"
    }
    assert set(backend_image.CONFIG["Env"]) <= set(config["Env"])

    await builder("buildah", "push", "--quiet", reference, f"docker-archive:{archive}:{reference}")
    carol = our_cluster.nodes["carol"]
    await carol.load_image(archive)
    try:
        await it_serves(namespace, reference)
    finally:
        await carol.remove_image(reference)


async def it_serves(kubectl: Kubectl, reference: str) -> None:
    """Run a container of it with nothing but an address to listen on, and ask it."""
    listen = {"PAI_BACKEND_API__HOST": "0.0.0.0", "PAI_BACKEND_API__PORT": str(PORT)}
    container = {
        "name": "backend",
        "image": reference,
        "imagePullPolicy": "Never",
        "env": [{"name": name, "value": value} for name, value in listen.items()],
    }
    await kubectl.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "backend"},
            "spec": {"nodeName": "carol", "restartPolicy": "Never", "containers": [container]},
        }
    )
    pod = await kubectl.until_phase("backend", "Running")
    async with httpx.AsyncClient(base_url=f"http://{pod['status']['podIP']}:{PORT}", trust_env=False) as client:

        async def answers() -> bool:
            try:
                return (await client.get("/readyz")).status_code == 200
            except httpx.ConnectError:
                return False

        await until(answers, "the backend to answer", 120, 0.2)
        assert (await client.get("/api/v2/info")).json()["version"]
    assert (await kubectl("exec", "backend", "--", "id", "-u")).strip() == str(backend_image.USER)
