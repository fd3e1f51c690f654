"""Virtual environments of tests: with the packages of this one, and some of their own."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Environment:
    """A virtual environment whose pip installs from a directory of wheels only."""

    home: Path
    wheels: Path

    @property
    def python(self) -> str:
        """Its interpreter."""
        return str(self.home / "bin" / "python")

    def install(self, wheel: Path) -> None:
        """Install a wheel, as its user would."""
        command = [self.python, "-m", "pip", "install", "--quiet", "--no-deps", str(wheel)]
        subprocess.run(command, check=True, timeout=60)

    def state(self) -> dict[str, str]:
        """Every file and link in it, by path, with what is in it."""
        found = {}
        for folder, folders, files in os.walk(self.home):
            for name in (*files, *(each for each in folders if os.path.islink(os.path.join(folder, each)))):
                path = Path(folder, name)
                content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
                found[str(path)] = hashlib.sha256(content).hexdigest()
        return found


def make_environment(folder: Path) -> Environment:
    """A new one below ``folder``, which reads the packages of this one, pip with them."""
    home, wheels = folder / "environment", folder / "wheels"
    wheels.mkdir(parents=True)
    venv.create(home, symlinks=True)
    packages = sysconfig.get_path("purelib", vars={"base": str(home), "platbase": str(home)})
    ours = sysconfig.get_path("purelib")
    Path(packages, "parent.pth").write_text(f"import site; site.addsitedir({ours!r})\n")
    (home / "pip.conf").write_text(f"[global]\nno-index = true\nfind-links = {wheels}\n")
    return Environment(home, wheels)
