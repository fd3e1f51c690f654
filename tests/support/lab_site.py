"""A real JupyterLab with a private backend of its own, for tests that drive it with a browser."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from jupyter_pai.client import MEDIA_TYPE

ROOT = Path(__file__).resolve().parents[2]
PANEL = ROOT / "jupyter_pai" / "labextension"

START_TIMEOUT_S = 180.0
END_TIMEOUT_S = 60.0
CHECK_INTERVAL_S = 0.05

NODES = """
engine:
  grace_s: 1
  nodes:
    - {name: carol, simulated: true, gpus: {type: TITANX, count: 1}, cpus: 8, memory_mb: 32768}
    - {name: dan, simulated: true, gpus: {type: TITANX, count: 1}, cpus: 8, memory_mb: 32768}
"""

# No news, no update questions: they would lie over what a test clicks on.
OVERRIDES = {"@jupyterlab/apputils-extension:notification": {"checkForUpdates": False, "fetchNews": "false"}}


class LabDidNotStart(Exception):
    """JupyterLab ended or did not answer in time; the message holds its last words."""


@dataclass
class LabSite:
    """Where the running Lab is, and how to ask its backend without a browser."""

    root: Path
    url: str
    token: str = field(repr=False)

    @property
    def page(self) -> str:
        """The address of the interface, signed in; a fresh workspace."""
        return f"{self.url}lab/workspaces/test?reset&token={self.token}"

    def get(self, path: str) -> object:
        """The JSON answer of the API below the Jupyter server, in our own shape."""
        headers = {**self._headers, "Accept": MEDIA_TYPE}
        answer = httpx.get(f"{self.url}pai/api/v2/{path}", headers=headers, timeout=60, verify=False)
        answer.raise_for_status()
        return answer.json()

    def stop(self, job: str) -> None:
        """Ask a job to stop."""
        with httpx.Client(base_url=self.url, headers=self._headers, timeout=60, verify=False) as client:
            ask_to_stop(client, job)

    def end_jobs(self) -> None:
        """Stop what a test left running: jobs outlive the backend, but must not outlive the test."""
        with httpx.Client(base_url=self.url, headers=self._headers, timeout=60, verify=False) as client:
            end_jobs(client)

    @property
    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"token {self.token}"}


def ask_to_stop(client: httpx.Client, job: str) -> None:
    """Ask a job to stop."""
    client.put(f"pai/api/v2/jobs/{job}/executionType", json={"value": "STOP"}).raise_for_status()


def end_jobs(client: httpx.Client) -> None:
    """Stop all jobs of a Jupyter server's user, and wait for their end. ``client`` asks at the server's base URL."""

    def active() -> list[dict[str, str]]:
        url = "pai/api/v2/jobs?state=WAITING,RUNNING,STOPPING"
        rows: list[dict[str, str]] = client.get(url, headers={"Accept": MEDIA_TYPE}).raise_for_status().json()
        return rows

    for row in active():
        ask_to_stop(client, row["id"])
    deadline = time.monotonic() + END_TIMEOUT_S
    while active():
        if time.monotonic() > deadline:
            raise TimeoutError(f"jobs did not stop within {END_TIMEOUT_S} s")
        time.sleep(CHECK_INTERVAL_S)


def lab_environment(root: Path) -> dict[str, str]:
    """Variables that keep all that is ours in `root`: neither the user's settings nor another test is touched."""
    settings = root / "app" / "settings"
    settings.mkdir(parents=True)
    (settings / "overrides.json").write_text(json.dumps(OVERRIDES))
    (root / "backend.yaml").write_text(NODES)
    (root / "files").mkdir()
    (root / "labextensions").mkdir()
    (root / "labextensions" / "jupyter-pai").symlink_to(PANEL)
    return {
        # Searched before the environment's own directories, where an older build may lie.
        "JUPYTER_PATH": str(root),
        "HOME": str(root / "home"),
        "JUPYTER_CONFIG_DIR": str(root / "config"),
        "JUPYTER_DATA_DIR": str(root / "share"),
        "JUPYTER_RUNTIME_DIR": str(root / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(root / "user-settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(root / "workspaces"),
        "IPYTHONDIR": str(root / "ipython"),
        "PAI_DATA_DIR": str(root / "backend"),
        "PAI_BACKEND_CONFIG": str(root / "backend.yaml"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }


def _environment(root: Path, extra: Mapping[str, str]) -> dict[str, str]:
    own = lab_environment(root)
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("PAI_", "JUPYTER"))}
    return {**inherited, **own, **extra}


def _command(root: Path, options: Sequence[str]) -> list[str]:
    return [
        sys.executable,
        "-m",
        "jupyterlab",
        "--no-browser",
        "--allow-root",
        "--ServerApp.ip=127.0.0.1",
        "--ServerApp.port=0",
        f"--ServerApp.root_dir={root / 'files'}",
        f"--LabApp.app_settings_dir={root / 'app' / 'settings'}",
        "--LabApp.expose_app_in_browser=True",
        "--JupyterNotebookApp.expose_app_in_browser=True",
        "--LabApp.news_url=None",
        *options,
    ]


def _wait_until_up(process: subprocess.Popen[bytes], root: Path, log: Path) -> LabSite:
    deadline = time.monotonic() + START_TIMEOUT_S
    record = root / "runtime" / f"jpserver-{process.pid}.json"
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(OSError, ValueError, KeyError, httpx.TransportError):
            found = json.loads(record.read_text())
            site = LabSite(root, found["url"], found["token"])
            if httpx.get(f"{site.url}api/status?token={site.token}", timeout=5, verify=False).is_success:
                return site
        time.sleep(CHECK_INTERVAL_S)
    raise LabDidNotStart(log.read_text(errors="replace")[-2000:])


@contextmanager
def running_lab(
    root: Path,
    extra_environment: Mapping[str, str] | None = None,
    options: Sequence[str] = (),
    *,
    host_names: Sequence[str] = (),
) -> Iterator[LabSite]:
    """JupyterLab in `root` until the block ends; then its jobs, itself and its backend are ended.

    A backend elsewhere, which ``PAI_URL`` names, is left alone with its jobs. `options` are more of its command line.
    `host_names` lead to 127.0.0.1 for it alone, which takes root.

    Raises LabDidNotStart. `root` must be empty.
    """
    environment = _environment(root, extra_environment or {})
    is_own = "PAI_URL" not in environment
    command = _command(root, options)
    if host_names:
        (root / "hosts").write_text(f"127.0.0.1 localhost {' '.join(host_names)}\n")
        script = 'mount --bind "$0" /etc/hosts && exec "$@"'
        command = ["unshare", "--mount", "sh", "-c", script, str(root / "hosts"), *command]
    log = root / "lab.log"
    with open(log, "wb") as output:
        process = subprocess.Popen(
            command, env=environment, cwd=root, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        site = _wait_until_up(process, root, log)
        try:
            yield site
        finally:
            if is_own:
                site.end_jobs()
    finally:
        process.terminate()
        try:
            process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if is_own:
            subprocess.run(
                [sys.executable, "-m", "jupyter_pai.cli", "backend", "stop"],
                env=environment,
                cwd=root,
                check=False,
                timeout=END_TIMEOUT_S,
                capture_output=True,
            )
