"""``simulate``: how a trace of arrivals would go on a cluster configuration. Needs no backend that runs.

The scheduler is the backend's, so a process of it does the work; this module asks it and shows the answer.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import TypedDict, cast

from jupyter_pai import render
from jupyter_pai.commands.output import Output
from jupyter_pai.errors import OK, USAGE, ClientError, from_wire

HEAD = (
    "VC",
    "GROUPS",
    "WAIT MEAN",
    "P50",
    "P95",
    "MAX",
    "GPU HOURS",
    "PREEMPTED",
    "LOST GPU HOURS",
    "DISPLACED",
)
MOST_REFUSED = 20
"""Refused groups that are listed in text; JSON has all."""


class Waits(TypedDict):
    """Seconds."""

    mean_s: float
    p50_s: float
    p95_s: float
    max_s: float


class Share(TypedDict):
    """The figures of one virtual cluster, or of all."""

    vc: str
    groups: int
    waits: Waits
    gpu_hours: float
    preempted: int
    displaced: int
    lost_gpu_hours: float


class Refused(TypedDict):
    """A group that could not start in an empty cluster."""

    group: str
    texts: dict[str, dict[str, str]]


class Report(TypedDict):
    """What is shown of a report; docs/scheduling.md describes all of it."""

    gpus: int
    span_s: float
    utilisation: float
    fragmentation: float
    idle_while_wanted: float
    total: Share
    vcs: list[Share]
    refused: list[Refused]


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser], common: argparse.ArgumentParser) -> None:
    """Add the verb."""
    verb = verbs.add_parser(
        "simulate", parents=[common], help="replay a trace of arrivals on a cluster configuration; changes nothing"
    )
    verb.add_argument("config", help="cluster configuration in HiveD's schema")
    verb.add_argument("trace", help="arrivals, one JSON object a line: docs/scheduling.md")
    verb.add_argument(
        "--grace",
        type=_seconds,
        default=0.0,
        metavar="SECONDS",
        help="how long evicted groups keep their place; default: 0",
    )
    verb.add_argument("--picture", metavar="OUT", help="write an SVG of the course too")
    verb.set_defaults(run=simulate)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= 86_400:
        raise argparse.ArgumentTypeError(f"{text} is no number of seconds from 0 to 86400")
    return seconds


def simulate(args: argparse.Namespace, out: Output) -> int:
    """Replay, and show the figures; exit code 2 when a file is wrong."""
    command = [sys.executable, "-P", "-m", "pai_backend", "simulate", f"--grace={args.grace}"]
    command += [f"--picture={args.picture}"] if args.picture else []
    done = subprocess.run([*command, "--", args.config, args.trace], stdout=subprocess.PIPE, check=False)
    if done.returncode not in (OK, USAGE):
        raise ClientError(f"The simulation ended with exit code {done.returncode}.", hint="Its own words are above.")
    answer = json.loads(done.stdout)
    if done.returncode == USAGE:
        error = from_wire(400, answer["error"])
        out.error(error, source=_source(error, answer["file"]), name=answer["file"])
        return USAGE
    out.result(answer, text(cast(Report, answer)))
    return OK


def _source(error: ClientError, file: str) -> str:
    """The text to show places in, when the error has any."""
    if not any(fault.line for fault in error.faults):
        return ""
    return Path(file).read_text(encoding="utf-8-sig", errors="replace")


def text(report: Report) -> str:
    """The figures for people."""
    total = report["total"]
    rows = [_row(share["vc"], share) for share in report["vcs"]] + [_row("all", total)]
    lines = [
        f"{total['groups']} groups on {report['gpus']} GPUs in {_clock(report['span_s'])}",
        f"{_percent(report['utilisation'])} of the GPU time was used; "
        f"{_percent(report['idle_while_wanted'])} was idle while groups waited for as much.",
        f"{_percent(report['fragmentation'])} of the idle GPU time was on machines partly in use.",
        "",
        render.table(HEAD, rows),
    ]
    refused = report["refused"]
    for each in refused[:MOST_REFUSED]:
        told = each["texts"]["en"]
        lines.append(f"! {render.safe(each['group'])} is refused: {told['sentence']} {told['remedy']}")
    if len(refused) > MOST_REFUSED:
        lines.append(f"! and {len(refused) - MOST_REFUSED} more are refused")
    return "\n".join(lines)


def _row(name: str, share: Share) -> tuple[object, ...]:
    waits = share["waits"]
    times = [_clock(waits["mean_s"]), _clock(waits["p50_s"]), _clock(waits["p95_s"]), _clock(waits["max_s"])]
    hours, lost = f"{share['gpu_hours']:.1f}", f"{share['lost_gpu_hours']:.1f}"
    return (name, share["groups"], *times, hours, share["preempted"], lost, share["displaced"])


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


def _percent(part: float) -> str:
    return f"{100 * part:.1f} %"
