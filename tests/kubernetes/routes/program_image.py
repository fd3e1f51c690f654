"""An image with nothing in it but one program and the libraries that it is linked with."""

from __future__ import annotations

import asyncio
import hashlib
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.kubernetes.cluster import images, programs
from tests.kubernetes.cluster.cluster import Cluster

_LIBRARY = re.compile(r"(/\S+) \(0x")


async def loaded(cluster: Cluster, program: Path) -> str:
    """The reference of a program's image, which all nodes have now. Its command is the program's name."""
    reference, archive = await asyncio.to_thread(_built, program, programs.images())
    for node in cluster.nodes.values():
        if not await node.has_image(reference):
            await node.load_image(archive)
    return reference


def _built(program: Path, place: Path) -> tuple[str, Path]:
    """Kept until the program is another. Raises ImageFailed."""
    place = place / program.name
    place.mkdir(parents=True, exist_ok=True)
    with program.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()[:16]
    reference, archive = f"localhost/jupyter-pai/{program.name}:{digest}", place / f"image-{digest}.tar"
    with images.sole(place), tempfile.TemporaryDirectory(dir=place, prefix=images.DRAFT) as draft:
        if not archive.exists():
            for old in place.glob("image-*.tar"):
                old.unlink()
            root = Path(draft) / "root"
            for file, at in [
                (program, f"usr/bin/{program.name}"),
                *((each, str(each)[1:]) for each in _needed(program)),
            ]:
                (root / at).parent.mkdir(mode=0o755, parents=True, exist_ok=True)
                shutil.copy(file, root / at)
                (root / at).chmod(0o755)
            layer = images.layer_of(root, Path(draft) / "layer.tar")
            images.assemble([layer], reference, {"Entrypoint": [f"/usr/bin/{program.name}"]}, archive)
    return reference, archive


def _needed(program: Path) -> list[Path]:
    """The libraries that a program is linked with, and what loads them; none of one that is static."""
    done = subprocess.run(["ldd", str(program)], capture_output=True, text=True, timeout=60, check=False)
    return [Path(found) for found in _LIBRARY.findall(done.stdout)]
