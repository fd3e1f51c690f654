"""What a page of the documentation tells to type, typed into a shell where nothing is the user's own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.docs.pages import Fence, fences

LONG_S = 240
PROGRAMS = Path(sys.executable).parent


def fence(page: str, first: str) -> Fence:
    """The fence of a page that begins so."""
    (found,) = [each for each in fences(page) if each.first.startswith(first)]
    return found


class PageShell:
    """Runs lines of a page in a directory; ``variables`` come to those of this process that are nothing of pai's."""

    def __init__(self, place: Path, variables: Mapping[str, str]) -> None:
        self._place = place
        own = {name: value for name, value in os.environ.items() if not name.startswith("PAI_")}
        kept = {"PAI_DATA_DIR": "data", "PAI_SSH_DIR": "ssh", "XDG_CONFIG_HOME": "config", "PWD": ""}
        path = f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"
        self.variables = {**own, **{key: str(place / value) for key, value in kept.items()}, "PATH": path, **variables}

    def attempt(self, text: str) -> subprocess.CompletedProcess[str]:
        """What came of it."""
        return subprocess.run(
            ["bash", "-e", "-c", text],
            cwd=self._place,
            env=self.variables,
            capture_output=True,
            text=True,
            timeout=LONG_S,
            check=False,
        )

    def __call__(self, text: str) -> str:
        """What it printed; it must succeed."""
        done = self.attempt(text)
        assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
        return done.stdout
