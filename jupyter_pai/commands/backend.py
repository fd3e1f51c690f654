"""``backend start|stop|status|logs``: the private backend of this user."""

from __future__ import annotations

import argparse

from jupyter_pai.commands.output import Output
from jupyter_pai.embedded import Embedded
from jupyter_pai.endpoint import backend_config, data_dir
from jupyter_pai.errors import AWAY, OK
from jupyter_pai.language import tr
from jupyter_pai.verbs import GROUPS, verb

LOG_TAIL_BYTES = 8192

GROUPS["backend"] = "Start, stop or look at the private backend"


def _embedded() -> Embedded:
    return Embedded(data_dir(), backend_config())


@verb("backend start")
def start(args: argparse.Namespace, out: Output) -> int:
    """Start it, unless it runs."""
    endpoint = _embedded().ensure()
    out.result({"running": True, "url": endpoint.url}, tr("The backend runs at {url}", url=endpoint.url))
    return OK


@verb("backend stop")
def stop(args: argparse.Namespace, out: Output) -> int:
    """Stop it; running tasks keep running."""
    stopped = _embedded().stop()
    out.result({"stopped": stopped}, tr("The backend has ended.") if stopped else tr("No backend was running."))
    return OK


@verb("backend status")
def status(args: argparse.Namespace, out: Output) -> int:
    """Show whether it runs, and where; exit code 3 if it does not."""
    found = _embedded().status()
    value = {
        "running": found.running,
        "url": found.url,
        "pid": found.pid,
        "version": found.version,
        "started": found.started,
        "dataDir": str(found.data_dir),
    }
    if found.running:
        known = {"url": found.url, "pid": found.pid, "version": found.version}
        text = tr(
            "The backend of {path} runs at {url} (process {pid}, version {version}).", path=found.data_dir, **known
        )
    else:
        text = tr("The backend of {path} does not run.", path=found.data_dir)
    out.result(value, text)
    return OK if found.running else AWAY


@verb("backend logs")
def logs(args: argparse.Namespace, out: Output) -> int:
    """Print the end of its logs."""
    directory = _embedded().log_dir
    tails = {}
    for path in sorted(directory.glob("*.log")):
        with open(path, "rb") as file:
            file.seek(max(path.stat().st_size - LOG_TAIL_BYTES, 0))
            tails[str(path)] = file.read().decode(errors="replace")
    text = "\n".join(f"==> {path} <==\n{tail}" for path, tail in tails.items())
    out.result(tails, text or tr("There are no logs in {directory}.", directory=directory))
    return OK
