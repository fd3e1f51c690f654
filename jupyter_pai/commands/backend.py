"""``backend start|stop|status|logs``: the private backend of this user."""

from __future__ import annotations

import argparse

from jupyter_pai.commands.output import Output
from jupyter_pai.embedded import Embedded
from jupyter_pai.endpoint import backend_config, data_dir
from jupyter_pai.errors import AWAY, OK

LOG_TAIL_BYTES = 8192


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser], common: argparse.ArgumentParser) -> None:
    """Add the verbs of this group."""
    group = verbs.add_parser("backend", help="start, stop or look at the private backend")
    actions = group.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, text, run in (
        ("start", "start it, unless it runs", start),
        ("stop", "stop it; running tasks keep running", stop),
        ("status", "show whether it runs, and where; exit code 3 if it does not", status),
        ("logs", "print the end of its logs", logs),
    ):
        actions.add_parser(name, parents=[common], help=text).set_defaults(run=run)


def _embedded() -> Embedded:
    return Embedded(data_dir(), backend_config())


def start(args: argparse.Namespace, out: Output) -> int:
    """Start it, or find that it runs."""
    endpoint = _embedded().ensure()
    out.result({"running": True, "url": endpoint.url}, f"The backend runs at {endpoint.url}")
    return OK


def stop(args: argparse.Namespace, out: Output) -> int:
    """End it."""
    stopped = _embedded().stop()
    out.result({"stopped": stopped}, "The backend has ended." if stopped else "No backend was running.")
    return OK


def status(args: argparse.Namespace, out: Output) -> int:
    """Whether it runs."""
    found = _embedded().status()
    value = {
        "running": found.running,
        "url": found.url,
        "pid": found.pid,
        "version": found.version,
        "started": found.started,
        "dataDir": str(found.data_dir),
    }
    text = f"runs at {found.url} (process {found.pid}, version {found.version})" if found.running else "does not run"
    out.result(value, f"The backend of {found.data_dir} {text}.")
    return OK if found.running else AWAY


def logs(args: argparse.Namespace, out: Output) -> int:
    """The end of each log file."""
    directory = _embedded().log_dir
    tails = {}
    for path in sorted(directory.glob("*.log")):
        with open(path, "rb") as file:
            file.seek(max(path.stat().st_size - LOG_TAIL_BYTES, 0))
            tails[str(path)] = file.read().decode(errors="replace")
    text = "\n".join(f"==> {path} <==\n{tail}" for path, tail in tails.items())
    out.result(tails, text or f"There are no logs in {directory}.")
    return OK
