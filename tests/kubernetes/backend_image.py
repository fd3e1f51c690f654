"""The backend's image without Docker and without a registry: what ``deploy/image/Containerfile`` describes, on Debian.

Three layers: the Debian with Python that tests have anyway, the libraries, the project. The libraries are kept until
others are locked for the image; the project's layer is made anew in seconds whenever its wheel is another.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
import pytest_asyncio

from tests.kubernetes import fixtures
from tests.kubernetes.cluster import images, programs, slots
from tests.kubernetes.cluster.cluster import Cluster, joined
from tests.kubernetes.cluster.images import Layer
from tests.kubernetes.fixtures import Kubernetes

GIVEN = "PAI_TEST_BACKEND_IMAGE"
USER, HOME = 64000, "var/lib/jupyter-pai"
KEPT = 2  # older archives, which another run may be loading
_ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = _ROOT / "deploy" / "image" / "requirements.txt"
_NAME = "localhost/jupyter-pai/backend"
CONFIG = {
    "User": f"{USER}:{USER}",
    "WorkingDir": f"/{HOME}",
    "Entrypoint": ["python", "-P", "-m", "pai_backend"],
    "Cmd": ["serve"],
    "Env": [f"PAI_BACKEND_DATA_DIR=/{HOME}", "LOGNAME=jupyter-pai", "PYTHONUNBUFFERED=1", "PYTHONDONTWRITEBYTECODE=1"],
}


def built(place: Path) -> tuple[str, Path]:
    """The image's reference, which is another for other content, and its archive in a directory. Raises ImageFailed."""
    (base,) = (each for each in images.ensure(place) if each.name.startswith("python-"))
    place = place / "backend"  # apart, because the others are not to wait for it
    place.mkdir(exist_ok=True)
    with images.sole(place), tempfile.TemporaryDirectory(dir=place, prefix=images.DRAFT) as draft:
        wheel = _wheel(Path(draft))
        digest = hashlib.sha256(wheel.read_bytes() + base.name.encode()).hexdigest()[:16]
        reference, archive = f"{_NAME}:{digest}", place / f"image-{digest}.tar"
        if not archive.exists():
            for old in sorted(place.glob("image-*.tar"), key=lambda path: path.stat().st_mtime)[:-KEPT]:
                old.unlink()
            (Path(draft) / "base").mkdir()
            below = images.layers_in(base, Path(draft) / "base")
            version = python_of(below[0])
            libraries = _libraries(place, Path(draft), wheel, version)
            project = _project(Path(draft), wheel, version)
            images.assemble([*below, libraries, project], reference, CONFIG, archive)
    return reference, archive


def _wheel(place: Path) -> Path:
    """The project's wheel, with the panel as it was built last."""
    command = (sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(place), str(_ROOT))
    images.run_tool(*command, variables={"HATCH_BUILD_NO_HOOKS": "true"})
    return next(place.glob("*.whl"))


def python_of(layer: Layer) -> str:
    """The version of the image's Python, such as ``3.11``."""
    told = images.run_tool("tar", "--zstd", "-tvf", str(layer.file), "./usr/bin/python3")
    found = re.search(r"python(3\.\d+)\s*$", told)
    if found is None:
        raise images.ImageFailed(f"the image has no Python: {told}")
    return found[1]


def _libraries(place: Path, draft: Path, wheel: Path, version: str) -> Layer:
    """What the project needs, the name ``python`` and the home of its data; kept while nothing of that changes."""
    key = hashlib.sha256(version.encode() + REQUIREMENTS.read_bytes()).hexdigest()[:16]
    kept, note = place / f"libraries-{key}.tar", place / f"libraries-{key}.digest"
    if kept.exists() and note.exists():
        return Layer(kept, note.read_text())
    root = draft / "libraries"
    install(root, version, ["--require-hashes", "--requirement", str(REQUIREMENTS)])
    (root / "usr/local/bin").mkdir(parents=True, exist_ok=True)
    (root / "usr/local/bin/python").symlink_to("/usr/bin/python3")
    home = root / HOME
    home.mkdir(parents=True)
    os.chown(home, USER, USER)
    layer = images.layer_of(root, draft / "libraries.tar")
    for old in place.glob("libraries-*"):
        old.unlink()
    os.replace(layer.file, kept)
    note.write_text(layer.digest)
    return Layer(kept, layer.digest)


def _project(draft: Path, wheel: Path, version: str) -> Layer:
    root = draft / "project"
    install(root, version, ["--no-deps", str(wheel)])
    return images.layer_of(root, draft / "project.tar")


def install(root: Path, version: str, wanted: Sequence[str]) -> None:
    """Install for the image's Python, which need not be ours; byte code only when it is."""
    same = version == f"{sys.version_info.major}.{sys.version_info.minor}"
    target = root / f"usr/local/lib/python{version}/dist-packages"
    options = ["--quiet", "--target", str(target), "--python-version", version, "--only-binary=:all:"]
    options += [] if same else ["--no-compile"]
    images.run_tool(sys.executable, "-m", "pip", "install", *options, *wanted)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def backend_image(kubernetes: Kubernetes, request: pytest.FixtureRequest) -> str:
    """The backend's image, for its own pods and as ``inputs_image``: the one that is named, or built and loaded."""
    given = os.environ.get(GIVEN, "")
    if given:
        return given
    if not os.environ.get(fixtures.GIVEN):
        reference, archive = await asyncio.to_thread(built, programs.images())
        await load(request.getfixturevalue("testbed"), reference, archive)
        return reference
    if kubernetes.kubeconfig.parent.parent != slots.ROOT:
        pytest.skip(f"no image of the backend for this cluster; name one in {GIVEN}")
    reference, archive = await asyncio.to_thread(built, programs.images())
    async with joined(int(kubernetes.kubeconfig.parent.name)) as cluster:
        await load(cluster, reference, archive)
    return reference


async def load(cluster: Cluster, reference: str, archive: Path) -> None:
    """Put the image on all nodes that lack it."""
    for node in cluster.nodes.values():
        if not await node.has_image(reference):
            await node.load_image(archive)
