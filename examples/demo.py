"""The main job: runs ``quickstart.ipynb`` from submit to SSH, in a fresh place, and says how it went.

Usage: ``python examples/demo.py [NOTEBOOK]``. Exit code 0, or 1 with one line that says what failed.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

from jupyter_pai.embedded import Embedded
from jupyter_pai.errors import ClientError
from jupyter_pai.render import table
from jupyter_pai.sync import Client
from jupyter_pai.wire import ACTIVE_STATES
from jupyter_pai.wire_types import JobDetail

EXAMPLES = Path(__file__).resolve().parent
LOCAL = EXAMPLES / "backend.yaml"
CELL_TIMEOUT_S = 80
END_TIMEOUT_S = 60


class DemoFailed(Exception):
    """Something did not work; the message is one line."""


def isolate(place: Path, config: Path) -> None:
    """Let the backend, the kernel and OpenSSH of this run use nothing of the user's but this configuration."""
    for name in [name for name in os.environ if name.startswith("PAI_")]:
        del os.environ[name]
    os.environ["PAI_DATA_DIR"] = str(place / "data")
    os.environ["PAI_BACKEND_CONFIG"] = str(config)
    os.environ["PAI_SSH_DIR"] = str(place / "ssh")
    os.environ["IPYTHONDIR"] = str(place / "ipython")
    os.environ["JUPYTER_RUNTIME_DIR"] = str(place / "runtime")


class Progress:
    """Prints each cell's first line when it begins, and its time when it has ended."""

    def __init__(self) -> None:
        self.line = ""
        self._began = 0.0

    def begin(self, cell: nbformat.NotebookNode, cell_index: int) -> None:
        """Called by nbclient before a cell."""
        self.line = cell.source.splitlines()[0].lstrip("# ") if cell.cell_type == "code" and cell.source else ""
        self._began = time.monotonic()

    def end(self, cell: nbformat.NotebookNode, cell_index: int, execute_reply: object) -> None:
        """Called by nbclient after a cell."""
        print(f"  {time.monotonic() - self._began:5.1f} s  {self.line}", flush=True)


def run_notebook(path: Path) -> None:
    """Execute a notebook. Raises DemoFailed with the cell and its error."""
    notebook = nbformat.read(path, as_version=4)
    progress = Progress()
    client = NotebookClient(
        notebook,
        timeout=CELL_TIMEOUT_S,
        kernel_name="python3",
        extra_arguments=["--log-level=ERROR"],  # ipykernel warns that loopback is not encrypted
        resources={"metadata": {"path": str(EXAMPLES)}},
        on_cell_start=progress.begin,
        on_cell_executed=progress.end,
    )
    try:
        client.execute()
    except CellExecutionError as error:
        reason = " ".join(error.evalue.split())
        raise DemoFailed(f"the cell `{progress.line}` failed: {error.ename}: {reason}") from error
    except CellTimeoutError as error:
        raise DemoFailed(f"the cell `{progress.line}` took longer than {CELL_TIMEOUT_S} s") from error
    except DeadKernelError as error:
        raise DemoFailed(f"the kernel died in the cell `{progress.line}`") from error


def summary(jobs: list[JobDetail]) -> str:
    """Addresses of all jobs."""
    rows = [(job["name"], job["state"], "ssh", job["sshCommand"]) for job in jobs]
    for job in jobs:
        rows += [(job["name"], job["state"], service["label"], service["url"]) for service in job["services"]]
    return table(("JOB", "STATE", "WHAT", "ADDRESS"), sorted(rows))


def stop_everything(private: Embedded) -> None:
    """Stop jobs that still run (after a failure), wait for their end, and end the backend."""
    endpoint = private.find()
    if endpoint is not None:
        with Client(endpoint) as client:
            for job in client.jobs(state=",".join(ACTIVE_STATES)):
                client.stop(job["uid"])
            deadline = time.monotonic() + END_TIMEOUT_S
            while client.active_count() and time.monotonic() < deadline:
                time.sleep(0.1)
    private.stop()


def demo(place: Path, notebook: Path, config: Path = LOCAL, nodes: str = "two simulated nodes") -> None:
    """Run it all with a backend of this configuration, and print the summary. Raises DemoFailed, ClientError."""
    isolate(place, config)
    private = Embedded(place / "data", config)
    began = time.monotonic()
    try:
        endpoint = private.ensure()
        print(f"  {time.monotonic() - began:5.1f} s  backend at {endpoint.url}, {nodes}", flush=True)
        run_notebook(notebook)
        with Client(endpoint) as client:
            jobs = [client.job(job["uid"]) for job in client.jobs()]
        print(f"\n{summary(jobs)}\n\nAll of it took {time.monotonic() - began:.1f} s.")
    finally:
        stop_everything(private)


def main() -> int:
    """The exit code."""
    with tempfile.TemporaryDirectory(prefix="pai-demo-", ignore_cleanup_errors=True) as place:
        try:
            demo(Path(place), Path(sys.argv[1]) if len(sys.argv) > 1 else EXAMPLES / "quickstart.ipynb")
        except (DemoFailed, ClientError) as error:
            print(f"The demo failed: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("The demo was interrupted.", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
