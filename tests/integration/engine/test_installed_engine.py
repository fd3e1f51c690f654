"""An engine that an installed package brings: a wheel with one module and one entry point."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.backend_process import backend, until

ROOT = Path(__file__).parents[3]
MODULE = ROOT / "tests" / "data" / "engines" / "nap_engine.py"
DIST = "nap_engine-1.0.dist-info"
FILES = {
    "nap_engine.py": MODULE.read_text(encoding="utf-8"),
    f"{DIST}/METADATA": "Metadata-Version: 2.1\nName: nap-engine\nVersion: 1.0\n",
    f"{DIST}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    f"{DIST}/entry_points.txt": (
        "[jupyter_pai.engines]\nnap = nap_engine:NapProvider\nbroken = nap_engine:Missing\nodd = pathlib:Path\n"
    ),
}
DOCUMENT = {
    "jobName": "nap",
    "image": "ubuntu",
    "taskRoles": [
        {"name": "main", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 128, "gpuNumber": 0, "command": "true"}
    ],
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment in which the package is found."""
    place = tmp_path_factory.mktemp("nap")
    wheel = place / "nap_engine-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in FILES.items():
            archive.writestr(name, text)
        archive.writestr(f"{DIST}/RECORD", "".join(f"{name},,\n" for name in [*FILES, f"{DIST}/RECORD"]))
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
    subprocess.run([*install, "--no-deps", "--target", str(place / "site"), str(wheel)], check=True, timeout=300)
    paths = [str(place / "site"), str(ROOT), str(ROOT / "backend")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def test_its_tasks_run(installed: dict[str, str], tmp_path: Path) -> None:
    arguments = ["--engine-kind", "nap", "--engine-options", '{"nodes": ["erin"], "status": 3}']
    with backend(tmp_path, arguments, env=installed) as running, running.client() as client:
        assert client.get("/api/v2/info").json()["engine"] == "nap"
        submitted = client.post("/api/v2/jobs", json=DOCUMENT)
        assert submitted.status_code == 202, submitted.text
        until(lambda: client.get("/api/v2/jobs/nap").json()["state"] == "FAILED")
        (role,) = client.get("/api/v2/jobs/nap").json()["taskRoles"]
        (task,) = role["taskStatuses"]
        assert (task["node"], task["exit"]["status"]) == ("erin", 3)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--engine-kind", "nap"], "engine.options.nodes: name at least one node"),
        (
            ["--engine-kind", "none"],
            "no engine none; installed: local, containers, kubernetes, broken, nap, odd",
        ),
        (["--engine-kind", "broken"], "the engine broken (nap_engine:Missing) cannot be loaded: AttributeError("),
        (["--engine-kind", "odd"], "the engine odd (pathlib:Path) is not an EngineProvider"),
    ],
)
def test_a_fault_is_named(installed: dict[str, str], tmp_path: Path, arguments: list[str], said: str) -> None:
    command = [sys.executable, "-P", "-m", "pai_backend", "serve", "--data-dir", str(tmp_path), *arguments]
    done = subprocess.run(command, env=installed, capture_output=True, text=True, timeout=180)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
