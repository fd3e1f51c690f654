"""The distribution as users get it, built from this checkout; and an environment without Node to install it in."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = Path(sys.executable).parent
BUILD_TIMEOUT_S = 300


def run(command: list[str], cwd: Path, environment: Mapping[str, str], timeout_s: float) -> str:
    """What a command printed. Fails the test with its words when it fails."""
    done = subprocess.run(
        command, cwd=cwd, env=dict(environment), capture_output=True, text=True, timeout=timeout_s, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def no_node(root: Path, python: Path) -> dict[str, str]:
    """An environment whose PATH has this Python's scripts and the system's tools, but no Node."""
    tools = root / "tools"
    tools.mkdir(exist_ok=True)
    for name in ("env", "sh", "uname"):
        found = shutil.which(name)
        if found and not (tools / name).exists():
            (tools / name).symlink_to(found)
    path = f"{python.parent}{os.pathsep}{tools}"
    assert shutil.which("node", path=path) is None
    return {"PATH": path, "HOME": str(root), "PYTHONDONTWRITEBYTECODE": "1"}


def copy_checkout(target: Path) -> None:
    """Copy what is in git, or would be, as it is in this checkout."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    ours = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, timeout=60)
    for name in ours.stdout.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


def build_sdist(out: Path) -> Path:
    """The source distribution of this checkout, with the panel built when it is out of date."""
    path = f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}"
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(out)]
    run(command, ROOT, {**os.environ, "PATH": path}, BUILD_TIMEOUT_S)
    [found] = out.glob("*.tar.gz")
    return found


def build_wheel(sdist: Path, out: Path) -> Path:
    """The wheel, built from the unpacked source distribution without Node."""
    run(["tar", "-xf", str(sdist)], out, dict(os.environ), 60)  # safe by itself; ``extractall`` needs Python 3.11.4
    [source] = [entry for entry in out.iterdir() if entry.is_dir()]
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    run(command, source, no_node(out, Path(sys.executable)), BUILD_TIMEOUT_S)
    [found] = out.glob("*.whl")
    return found
