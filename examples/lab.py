"""JupyterLab with the panel and the example notebook open, before a private backend with two simulated nodes.

Usage: ``python examples/lab.py [arguments of jupyter lab]``. The backend's data stay in ``.run/lab`` of the
project, so jobs are still there next time; end the backend with
``PAI_DATA_DIR=.run/lab .venv/bin/pai backend stop``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent


def options(environ: Mapping[str, str], platform: str, is_root: bool) -> list[str]:
    """What this machine needs: root must ask for it, and without a display no browser can open.

    Then the address with its token, which JupyterLab prints, is there to be opened elsewhere.
    """
    needed = ["--LabApp.default_url=/lab/tree/quickstart.ipynb"]
    if is_root:
        needed.append("--allow-root")
    if platform == "linux" and not (environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY")):
        needed.append("--no-browser")
    return needed


def main(arguments: Sequence[str]) -> None:
    """Become ``jupyter lab``."""
    os.environ.setdefault("PAI_DATA_DIR", str(EXAMPLES.parent / ".run" / "lab"))
    os.environ.setdefault("PAI_BACKEND_CONFIG", str(EXAMPLES / "backend.yaml"))
    os.chdir(EXAMPLES)
    needed = options(os.environ, sys.platform, hasattr(os, "geteuid") and os.geteuid() == 0)
    os.execv(sys.executable, [sys.executable, "-m", "jupyterlab", *needed, *arguments])


if __name__ == "__main__":
    main(sys.argv[1:])
