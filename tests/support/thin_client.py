"""An environment of a client: a wheel, and of this environment's packages those that the wheel needs without extras."""

from __future__ import annotations

import subprocess
import venv
from email import message_from_bytes
from importlib.metadata import Distribution, distribution
from pathlib import Path
from zipfile import ZipFile

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

INSTALL_TIMEOUT_S = 300


def make_client(wheel: Path, folder: Path) -> Path:
    """The Python of a new environment in which pip would have installed the wheel alone; nothing is downloaded."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    command = [str(python), "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", str(wheel)]
    subprocess.run(command, check=True, timeout=INSTALL_TIMEOUT_S)
    asked = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = Path(subprocess.run(asked, check=True, capture_output=True, text=True, timeout=60).stdout.strip())
    for needed in closure(requirements(wheel)):
        _link(needed, packages)
    return python


def requirements(wheel: Path) -> list[str]:
    """What a wheel says that it needs, extras with their conditions."""
    with ZipFile(wheel) as archive:
        [metadata] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return message_from_bytes(archive.read(metadata)).get_all("Requires-Dist", [])


def closure(texts: list[str]) -> list[Distribution]:
    """The distributions that these requirements lead to, each once."""
    found: dict[str, Distribution] = {}
    left = [(text, "") for text in texts]
    seen = set(left)
    while left:
        text, extra = left.pop()
        requirement = Requirement(text)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        needed = distribution(requirement.name)
        found[canonicalize_name(requirement.name)] = needed
        new = {(each, of) for each in needed.requires or [] for of in ("", *requirement.extras)} - seen
        seen |= new
        left += new
    return list(found.values())


def _link(needed: Distribution, packages: Path) -> None:
    for name in {file.parts[0] for file in needed.files or []} - {"..", "__pycache__"}:
        link = packages / name
        if not link.exists():
            link.symlink_to(Path(str(needed.locate_file(name))))
