"""Kernel specs of jobs: their names, what is in them, and writing one for programs that use no Jupyter server."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

PREFIX = "pai:"
"""Behind it: the name or alias of a job, or a task's alias."""

_NAME = re.compile(r"[A-Za-z0-9._~-]{1,255}", re.ASCII)


def is_job_name(name: str) -> bool:
    """Whether this can stand behind the prefix."""
    return _NAME.fullmatch(name) is not None and not name.startswith(".")


def spec(job: str, display_name: str, python: str = "") -> dict[str, Any]:
    """The kernel spec of a job, as in ``kernel.json``."""
    config = {"job": job, **({"python": python} if python else {})}
    return {
        "argv": [],
        "display_name": display_name,
        "language": "python",
        "interrupt_mode": "signal",
        "env": {},
        "metadata": {"debugger": True, "kernel_provisioner": {"provisioner_name": "pai", "config": config}},
    }


def install(job: str, python: str = "", kernels: Path | None = None) -> Path:
    """Write the kernel spec ``pai:JOB`` for this user, and return its file.

    ``jupyter_client`` reads files only; no entry point of its provides kernel specs.
    """
    if kernels is None:
        from jupyter_core.paths import jupyter_data_dir

        kernels = Path(jupyter_data_dir()) / "kernels"
    directory = kernels / f"{PREFIX}{job.lower()}"
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / "kernel.json"
    file.write_text(json.dumps(spec(job, f"Python on {job}", python), indent=1) + "\n", encoding="utf-8")
    return file
