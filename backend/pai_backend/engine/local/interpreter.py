"""The Python that tasks are given: where it and its packages are, as it says itself.

It is asked once, by running it: only an interpreter knows where a distribution, an environment or a user has put its
packages.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pai_backend.engine.base import EngineError

LIMIT_S = 60.0  # a cold disk needs some seconds for the first run of an interpreter

# For any Python 3.7 and later, so it is text and not a module of ours. A directory of packages counts as soon as it is
# one, so that what is installed there later is found too.
_QUESTION = """
import json, os, site, sys, sysconfig
from importlib.util import find_spec
own = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
scripts = [os.path.dirname(sys.executable), sysconfig.get_path("scripts")]
scripts += [os.path.join(site.getuserbase(), "bin")] if site.ENABLE_USER_SITE else []
print(json.dumps({
    "executable": sys.executable,
    "base": os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable),
    "version": "%d.%d" % sys.version_info[:2],
    "full_version": "%d.%d.%d" % sys.version_info[:3],
    "prefix": sys.prefix,
    "packages": own + site.getsitepackages(),
    "scripts": list(dict.fromkeys(scripts)),
    "has_pip": find_spec("pip") is not None,
}))
"""


@dataclass(frozen=True)
class Interpreter:
    """A Python, by what it said of itself."""

    executable: str
    base: str
    """The program itself, where ``executable`` is the one of a virtual environment."""
    version: str
    """Such as ``3.11``, as in the names of directories."""
    full_version: str
    prefix: str
    packages: tuple[str, ...]
    """Directories of packages that it reads, first ones first."""
    scripts: tuple[str, ...]
    """Directories of its commands."""
    has_pip: bool


def interpreter(executable: str, env: Mapping[str, str]) -> Interpreter:
    """What the Python at this path is; asked again only when the file has changed. ``env`` is what it runs with.

    Blocks. Raises EngineError, with the remedy, when it cannot be run or is no Python.
    """
    try:
        changed = os.stat(executable).st_mtime_ns
    except OSError as exc:
        raise _unusable(executable, exc.strerror or str(exc)) from exc
    return _asked(executable, changed, tuple(sorted(env.items())))


@functools.lru_cache(maxsize=4)
def _asked(executable: str, _changed: int, env: tuple[tuple[str, str], ...]) -> Interpreter:
    command = [executable, "-c", _QUESTION]
    try:
        # In the root, where no module of this name lies, as "-c" reads modules from the working directory.
        done = subprocess.run(
            command, env=dict(env), cwd="/", stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise _unusable(executable, str(exc)) from exc
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise _unusable(executable, said[-1] if said else f"it exited with status {done.returncode}")
    try:
        told = json.loads(done.stdout)
        told |= {"packages": tuple(told["packages"]), "scripts": tuple(told["scripts"])}
        return Interpreter(**told)
    except (ValueError, KeyError, TypeError) as exc:
        raise _unusable(executable, "it does not answer as Python does") from exc


def _unusable(executable: str, why: str) -> EngineError:
    return EngineError(
        f"the Python of tasks, {Path(executable)}, cannot be used: {why}; set engine.python to the path of another"
    )
