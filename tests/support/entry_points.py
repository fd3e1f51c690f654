"""The entry points that ``pyproject.toml`` declares, for a checkout that was installed before it declared them."""

from __future__ import annotations

import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"


def declared_entry_points(directory: Path) -> Path:
    """A directory for ``sys.path`` or PYTHONPATH, below which a distribution has them."""
    groups = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]["entry-points"]
    information = directory / "jupyter_pai_declared-0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: jupyter-pai-declared\nVersion: 0\n")
    lines = [
        line for group, names in groups.items() for line in (f"[{group}]", *(f"{k} = {v}" for k, v in names.items()))
    ]
    (information / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return directory
