"""``make lab``: JupyterLab on the example notebook, before a backend with the nodes of the examples."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import httpx
import pytest

from jupyter_pai.embedded import Embedded
from tests.support.backend_process import until

ROOT = Path(__file__).resolve().parents[3]
LAB = ROOT / "examples" / "lab.py"
START_TIMEOUT_S = 60
END_TIMEOUT_S = 60
CHECK_INTERVAL_S = 0.1


@pytest.fixture
def lab() -> ModuleType:
    """examples/lab.py as a module."""
    spec = importlib.util.spec_from_file_location("example_lab", LAB)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple[str, str, Path]]:
    """Address, token and output of the program, which is stopped with its backend."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PAI_", "JUPYTER", "DISPLAY"))}
    runtime = tmp_path / "runtime"
    own = {"HOME": str(tmp_path), "PAI_DATA_DIR": str(tmp_path / "backend"), "JUPYTER_RUNTIME_DIR": str(runtime)}
    output = tmp_path / "output"
    with open(output, "wb") as file:
        process = subprocess.Popen(
            [sys.executable, str(LAB), "--ServerApp.ip=127.0.0.1", "--ServerApp.port=0", "--no-browser"],
            env={**kept, **own},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
        )
    try:
        # The program becomes Jupyter, so that its process id is the server's.
        yield *wait_for(runtime / f"jpserver-{process.pid}.json", process, output), output
    finally:
        process.terminate()
        process.wait(END_TIMEOUT_S)
        Embedded(tmp_path / "backend").stop()


def wait_for(record: Path, process: subprocess.Popen[bytes], output: Path) -> tuple[str, str]:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(OSError, ValueError, httpx.TransportError):
            found = json.loads(record.read_text())
            if httpx.get(f"{found['url']}api/status?token={found['token']}", timeout=5).is_success:
                return found["url"], found["token"]
        time.sleep(CHECK_INTERVAL_S)
    raise AssertionError(output.read_text(errors="replace")[-2000:])


def test_the_notebook_is_open_and_the_nodes_are_those_of_the_examples(running: tuple[str, str, Path]) -> None:
    url, token, output = running
    headers = {"Authorization": f"token {token}"}
    with httpx.Client(base_url=url, headers=headers, timeout=START_TIMEOUT_S, follow_redirects=True) as client:
        assert client.get("").url.path == "/lab/tree/quickstart.ipynb"
        assert client.get("api/contents/quickstart.ipynb?content=0").json()["type"] == "notebook"
        until(lambda: client.get("pai/api/v2/cluster/nodes").json()["data"] != [])  # the backend has listed them
        nodes = client.get("pai/api/v2/cluster/nodes").json()["data"]
    assert [(node["name"], node["simulated"]) for node in nodes] == [("carol", True), ("dan", True)]
    assert f"/lab/tree/quickstart.ipynb?token={token}" in output.read_text()


@pytest.mark.parametrize(
    ("environ", "platform", "no_browser"),
    [
        ({}, "linux", True),
        ({"DISPLAY": ""}, "linux", True),
        ({"DISPLAY": ":0"}, "linux", False),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", False),
        ({}, "darwin", False),
    ],
)
def test_a_browser_is_opened_only_where_one_can_show(
    lab: ModuleType, environ: dict[str, str], platform: str, no_browser: bool
) -> None:
    assert ("--no-browser" in lab.options(environ, platform, is_root=False)) is no_browser


def test_root_says_so(lab: ModuleType) -> None:
    assert "--allow-root" in lab.options({}, "linux", is_root=True)
    assert "--allow-root" not in lab.options({}, "linux", is_root=False)
