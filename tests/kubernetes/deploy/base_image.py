"""What stands in for Python's public image, which no registry gives here: Debian with pip, laid out like that one."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.kubernetes.backend_image import python_of
from tests.kubernetes.cluster import images

REFERENCE = "localhost/jupyter-pai/base:1"
_PIP = "#!/usr/local/bin/python\nfrom pip._internal.cli.main import main\n\nraise SystemExit(main())\n"


def built(place: Path, archive: Path) -> None:
    """Write the archive; what it is made of is kept in a directory. Raises ImageFailed.

    Debian's Python puts things into places of its own, but not where it is a virtual environment: so /usr/local is one.
    """
    (base,) = (each for each in images.ensure(place) if each.name.startswith("python-"))
    with tempfile.TemporaryDirectory(dir=archive.parent, prefix=images.DRAFT) as draft:
        (Path(draft) / "base").mkdir()
        below = images.layers_in(base, Path(draft) / "base")
        local = Path(draft) / "root" / "usr/local"
        (local / "bin").mkdir(parents=True)
        (local / "pyvenv.cfg").write_text("home = /usr/bin\ninclude-system-site-packages = false\n")
        (local / "bin/python").symlink_to("/usr/bin/python3")
        (local / "bin/pip").write_text(_PIP)
        (local / "bin/pip").chmod(0o755)
        packages = local / f"lib/python{python_of(below[0])}/site-packages"
        images.run_tool(sys.executable, "-m", "pip", "install", "--quiet", "--target", str(packages), "pip")
        layer = images.layer_of(Path(draft) / "root", Path(draft) / "pip.tar")
        images.assemble([*below, layer], REFERENCE, {"Cmd": ["python"]}, archive)
