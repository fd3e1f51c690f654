"""What Binder does with this repository: its build step in a fresh environment, then a job on its server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest
import yaml

from tests.support.distributions import ROOT, copy_checkout

BUILD_TIMEOUT_S = 540
START_TIMEOUT_S = 90
END_TIMEOUT_S = 40
CHECK_INTERVAL_S = 0.1
HELLO = "examples/scm-helloworld.json"


class Built:
    """A copy of the checkout, a fresh environment, and a home of its own."""

    def __init__(self, root: Path) -> None:
        self.checkout = root / "checkout"
        self.home = root / "home"
        self.home.mkdir()
        copy_checkout(self.checkout)
        environment = root / "environment"
        subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True, timeout=120)
        kept = {
            key: value for key, value in os.environ.items() if not key.startswith(("PAI_", "JUPYTER", "VIRTUAL_ENV"))
        }
        path = [part for part in kept["PATH"].split(os.pathsep) if part != str(Path(sys.executable).parent)]
        own = {"HOME": str(self.home), "PATH": os.pathsep.join([str(environment / "bin"), *path])}
        # The caches of pip and yarn are no part of the environment; without them all would be fetched anew.
        caches = {"PIP_CACHE_DIR": pip_cache(), "YARN_GLOBAL_FOLDER": str(Path.home() / ".yarn" / "berry")}
        # Nor is all compiled that is installed: what runs here once compiles what it imports.
        self.environ = {**kept, **own, **caches, "PIP_NO_COMPILE": "1"}

    def run(self, *command: str, timeout: float) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=self.checkout, env=self.environ, capture_output=True, text=True, timeout=timeout, check=False
        )

    @contextmanager
    def server(self) -> Iterator[httpx.Client]:
        """The Jupyter server as Binder starts it, until the block ends."""
        options = ["--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1", "--ServerApp.port=0"]
        log = self.home / "server.log"
        with open(log, "wb") as output:
            process = subprocess.Popen(
                ["binder/start", "jupyter", "lab", *options],
                cwd=self.checkout,
                env={**self.environ, "JUPYTER_RUNTIME_DIR": str(self.home / "runtime")},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        try:
            record = self.home / "runtime" / f"jpserver-{process.pid}.json"
            found = wait_for(record, process, log)
            headers = {"Authorization": f"token {found['token']}"}
            with httpx.Client(base_url=found["url"], headers=headers, timeout=START_TIMEOUT_S) as client:
                yield client
        finally:
            process.terminate()
            process.wait(END_TIMEOUT_S)
            self.run("pai", "backend", "stop", timeout=END_TIMEOUT_S)


def pip_cache() -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pip", "cache", "dir"], check=True, capture_output=True, text=True, timeout=60
    )
    return done.stdout.strip()


def wait_for(record: Path, process: subprocess.Popen[bytes], log: Path) -> dict[str, str]:
    """The address and token of a server, once it listens."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(OSError, ValueError, httpx.TransportError):
            found: dict[str, str] = json.loads(record.read_text())
            if httpx.get(f"{found['url']}api/status?token={found['token']}", timeout=5).is_success:
                return found
        time.sleep(CHECK_INTERVAL_S)
    raise AssertionError(log.read_text(errors="replace")[-2000:])


@pytest.mark.packaging
@pytest.mark.timeout(BUILD_TIMEOUT_S + 2 * START_TIMEOUT_S)
def test_the_build_step_installs_all_and_the_hello_world_runs(tmp_path: Path) -> None:
    built = Built(tmp_path)
    done = built.run("binder/postBuild", timeout=BUILD_TIMEOUT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No broken requirements found." in done.stdout
    assert (tmp_path / "environment" / "share" / "jupyter" / "labextensions" / "jupyter-pai" / "package.json").is_file()
    with built.server() as client:
        submitted = client.post("pai/api/v2/jobs", content=(built.checkout / HELLO).read_bytes())
        assert submitted.status_code == 202, submitted.text
        nodes = client.get("pai/api/v2/cluster/nodes").json()["data"]
        assert [(node["name"], node["simulated"]) for node in nodes] == [("carol", True), ("dan", True)]
        waited = built.run("pai", "status", "helloworld_16be675e", "--watch", "--json", timeout=START_TIMEOUT_S)
        assert waited.returncode == 0, waited.stdout + waited.stderr
        assert json.loads(waited.stdout)["state"] == "SUCCEEDED"
        log = built.run("pai", "logs", "helloworld_16be675e", timeout=START_TIMEOUT_S)
        assert "TITANX (SIMULATED)" in log.stdout
        page = client.get("lab/tree/examples/quickstart.ipynb")
        assert page.status_code == 200


def test_a_build_step_whose_extension_is_missing_fails(tmp_path: Path) -> None:
    """The lists end with 0 whatever they list, so the step has to look."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("python", "jupyter"):
        (programs / name).write_text("#!/bin/sh\necho some_other_extension 1.0 OK\n")
        (programs / name).chmod(0o755)
    environ = {"PATH": f"{programs}:/usr/bin:/bin"}
    done = subprocess.run([ROOT / "binder" / "postBuild"], env=environ, capture_output=True, timeout=60, check=False)
    assert done.returncode != 0


def test_the_environment_brings_what_the_build_step_needs() -> None:
    environment = yaml.safe_load((ROOT / "binder" / "environment.yml").read_text())
    packages = environment["dependencies"]
    assert environment["channels"] == ["conda-forge"]
    assert {"pip", "nodejs>=22", "openssh"} <= set(packages)
    assert any(package.startswith("python=3.") for package in packages)
    assert all(os.access(ROOT / "binder" / name, os.X_OK) for name in ("postBuild", "start"))
