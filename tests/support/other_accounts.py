"""A directory and a Python that every account of this machine reaches, for backends whose tasks run as others.

pytest's own directories are closed, and so may be the interpreter that runs the tests: a developer's lies in a home.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FIRST_UID = 3_171_000_000
"""Of accounts that no machine has; far from those of containers and of systemd's dynamic users."""


def why_not() -> str:
    """Why tests with other accounts cannot run here; empty when they can."""
    if sys.platform != "linux":
        return "accounts for tasks are for Linux"
    if os.geteuid() != 0:
        return "only root can run processes as other accounts"
    return "" if _interpreter() else f"no Python {sys.version_info[0]}.{sys.version_info[1]} that all accounts reach"


@contextmanager
def open_place() -> Iterator[Path]:
    """A directory below /tmp that accounts pass through."""
    path = Path(tempfile.mkdtemp(prefix="pai-accounts-"))
    path.chmod(0o711)
    try:
        yield path
    finally:
        shutil.rmtree(path)


def open_python(place: Path) -> str:
    """An interpreter in ``place`` that has the packages of this one and that every account can run."""
    base = _interpreter()
    folder = place / "python"
    packages = folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    packages.mkdir(parents=True)
    (folder / "bin").mkdir()
    (folder / "bin" / "python").symlink_to(base)
    (folder / "pyvenv.cfg").write_text(f"home = {os.path.dirname(base)}\ninclude-system-site-packages = false\n")
    below = [path for path in sys.path if path and os.path.isdir(path) and "site-packages" in path]
    lines = [f"import site; site.addsitedir({path!r})\n" for path in (*below, sysconfig.get_path("purelib"))]
    (packages / "below.pth").write_text("".join(dict.fromkeys(lines)))
    return str(folder / "bin" / "python")


@functools.cache
def _interpreter() -> str:
    """A Python of this version that the account of a stranger runs; empty when there is none."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    for program in (os.path.realpath(sys.executable), f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        try:
            done = subprocess.run(
                [program, "-I", "-c", ""], user=FIRST_UID, group=FIRST_UID, extra_groups=[FIRST_UID], timeout=60
            )
        except OSError:
            continue
        if done.returncode == 0:
            return program
    return ""
