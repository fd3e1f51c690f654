"""Programs in an interpreter of their own, in which nothing of a test is loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run_alone(program: str, limit_s: float = 100.0) -> subprocess.CompletedProcess[str]:
    """Run a text of Python that may import the backend, and what lies at the root of the repository, to its end."""
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT / "backend"), "PATH": "/usr/bin:/bin", "HOME": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=limit_s,
    )
