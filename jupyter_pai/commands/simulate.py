"""``simulate``: how a trace of arrivals would go on a cluster configuration. Needs no backend that runs.

The scheduler is the backend's, so a process of it does the work; this module asks it and shows the answer.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import cast

from jupyter_pai.commands.output import Output
from jupyter_pai.commands.simulated import compared, text
from jupyter_pai.errors import OK, USAGE, ClientError, from_wire
from jupyter_pai.language import tr
from jupyter_pai.verbs import argument, flag, verb
from jupyter_pai.wire_types import Comparison, Report
from pai_backend.model.text import Text


def _seconds(given: str) -> float:
    try:
        seconds = float(given)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= 86_400:
        raise argparse.ArgumentTypeError(tr("{given} is not a number of seconds from 0 to 86400", given=given))
    return seconds


@verb(
    "simulate",
    argument("config", type=Path, help="cluster configuration in HiveD's schema"),
    argument("trace", type=Path, help="what happens, one JSON object a line: docs/scheduling.md"),
    argument("--compare", type=Path, metavar="CONFIG", help="another configuration, to see both side by side"),
    argument("--settings", type=Path, metavar="FILE", help="settings of a backend, for its queue limits"),
    argument(
        "--queue", metavar="KEY=VALUE", action="append", default=[], help="one setting, e.g. user.gpus=8; repeatable"
    ),
    argument(
        "--grace",
        type=_seconds,
        default=0.0,
        metavar="SECONDS",
        help="how long evicted groups keep their place; default: 0",
    ),
    flag("--estimates", help="in JSON: the start times that waiting groups were shown"),
    argument("--picture", type=Path, metavar="OUT", help="also draw an SVG"),
)
def simulate(args: argparse.Namespace, out: Output) -> int:
    """Replay a trace of arrivals on a cluster configuration; changes nothing.

    The exit code is 2 when a file is wrong.
    """
    done = subprocess.run(_command(args), stdout=subprocess.PIPE, check=False)
    if done.returncode not in (OK, USAGE):
        raise ClientError(
            Text("The simulation ended with exit code {returncode}.", returncode=done.returncode),
            hint="Its output is above.",
        )
    answer = json.loads(done.stdout)
    if done.returncode == USAGE:
        error = from_wire(400, answer["error"])
        out.error(error, source=_source(error, answer["file"]), name=answer["file"])
        return USAGE
    out.result(answer, compared(cast(Comparison, answer)) if args.compare else text(cast(Report, answer)))
    return OK


def _command(args: argparse.Namespace) -> list[str]:
    command = [sys.executable, "-P", "-m", "pai_backend", "simulate", f"--grace={args.grace}"]
    for name in ("compare", "settings", "picture"):
        given = getattr(args, name)
        command += [f"--{name}={given}"] if given else []
    command += [f"--queue={option}" for option in args.queue]
    command += ["--estimates"] if args.estimates else []
    return [*command, "--", str(args.config), str(args.trace)]


def _source(error: ClientError, file: str) -> str:
    """The text to show places in, when the error has any."""
    if not any(fault.line for fault in error.faults):
        return ""
    return Path(file).read_text(encoding="utf-8-sig", errors="replace")
