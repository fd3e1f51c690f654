"""An image with Jupyter for the documents of the examples, which name images that only their authors' registry has.

Two layers: the Debian with Python that tests have anyway, and Jupyter with an ``nvidia-smi`` that says it is simulated.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from pathlib import Path

from tests.kubernetes.backend_image import install, python_of
from tests.kubernetes.cluster import images

REFERENCES = ("docker.io/sitonholy/ai:16.04-9.0-3.5-pmt", "docker.io/sitonholy/tensorflow:16.04-9.0-3.5-1.8.0")
"""What the documents call it, in full."""
WANTED = ("notebook>=7.2", "ipykernel>=6.29")
_BESIDE = {"share": "usr/share", "etc": "usr/local/etc"}
"""Where Debian's Python looks for Jupyter's pages and extensions, which pip puts beside the packages."""
_SMI = Path(__file__).resolve().parents[2] / "backend/pai_backend/engine/local/simulated_smi.py"
_PROGRAMS = {
    "jupyter": "#!/usr/bin/python3\nfrom jupyter_core.command import main\n\nmain()\n",
    "jupyter-notebook": "#!/usr/bin/python3\nfrom notebook.app import main\n\nmain()\n",
    "nvidia-smi": "#!/bin/sh\n"
    'exec python3 -I -S /usr/local/lib/simulated_smi.py TITANX "${NVIDIA_VISIBLE_DEVICES:-0}" 12288 "$@"\n',
}


def built(place: Path) -> Path:
    """Its archive, kept in a directory until what is in it is to be another. Raises ImageFailed."""
    (base,) = (each for each in images.ensure(place) if each.name.startswith("python-"))
    place = place / "notebook"
    place.mkdir(exist_ok=True)
    made_of = json.dumps([base.name, WANTED, _BESIDE, _PROGRAMS, _SMI.read_text()])
    key = hashlib.sha256(made_of.encode()).hexdigest()[:16]
    archive = place / f"image-{key}.tar"
    with images.sole(place), tempfile.TemporaryDirectory(dir=place, prefix=images.DRAFT) as draft:
        if not archive.exists():
            for old in place.glob("image-*.tar"):
                old.unlink()
            (Path(draft) / "base").mkdir()
            below = images.layers_in(base, Path(draft) / "base")
            root = Path(draft) / "jupyter"
            _install(root, python_of(below[0]))
            for name, text in _PROGRAMS.items():
                program = root / "usr/local/bin" / name
                program.parent.mkdir(parents=True, exist_ok=True)
                program.write_text(text)
                program.chmod(0o755)
            shutil.copy(_SMI, root / "usr/local/lib/simulated_smi.py")
            layer = images.layer_of(root, Path(draft) / "jupyter.tar")
            images.assemble([*below, layer], REFERENCES[0], {"Cmd": ["bash"]}, archive)
    return archive


def _install(root: Path, version: str) -> None:
    install(root, version, WANTED)
    for name, place in _BESIDE.items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / f"usr/local/lib/python{version}/dist-packages/{name}").rename(root / place)
