"""What every start of a task with inputs waits for: the staging program's imports."""

from __future__ import annotations

import subprocess
import sys


def test_staging_a_path_of_this_machine_loads_no_heavy_library() -> None:
    code = "import sys; import pai_backend.storage.stage; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=60, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & {
        "dataclasses",
        "fsspec",
        "pathlib",
        "pydantic",
        "asyncio",
        "tornado",
        "hdfs_native",
        "sqlalchemy",
    }
    assert "pai_backend.model" not in done.stdout.split()
