"""JupyterLab with the panel and the example notebook open, before a private backend with two simulated nodes.

Usage: ``python examples/lab.py [arguments of jupyter lab]``. The backend's data stay in ``.run/lab`` of the
project, so jobs are still there next time; end the backend with
``PAI_DATA_DIR=.run/lab .venv/bin/pai backend stop``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent


def main() -> None:
    """Become ``jupyter lab``."""
    os.environ.setdefault("PAI_DATA_DIR", str(EXAMPLES.parent / ".run" / "lab"))
    os.environ.setdefault("PAI_BACKEND_CONFIG", str(EXAMPLES / "backend.yaml"))
    root = ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    notebook = "--LabApp.default_url=/lab/tree/quickstart.ipynb"
    os.chdir(EXAMPLES)
    os.execv(sys.executable, [sys.executable, "-m", "jupyterlab", notebook, *root, *sys.argv[1:]])


if __name__ == "__main__":
    main()
