"""``sweep``, and ``submit --sweep``: one document as many jobs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from jupyter_pai import render
from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import connected
from jupyter_pai.errors import JOB_FAILED, OK, ClientError
from jupyter_pai.language import tr
from jupyter_pai.verbs import argument, flag, one_of, verb
from jupyter_pai.wire import FINAL_STATES
from pai_backend.model.text import Text

if TYPE_CHECKING:
    from jupyter_pai.sweeps import SweptJob
    from jupyter_pai.sync import Client


def axis(text: str) -> tuple[str, tuple[str, ...]]:
    """``NAME=VALUE,…`` or ``NAME=FIRST..LAST``. Raises ArgumentTypeError."""
    from jupyter_pai import sweeps

    try:
        return sweeps.axis(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def parallel(text: str) -> int:
    """A whole number from 1. Raises ArgumentTypeError."""
    if not (text.isascii() and text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(tr("{text} is not a number from 1", text=f"{text!r}"))
    return int(text)


SWEEP = (
    argument(
        "--sweep",
        type=axis,
        action="append",
        default=[],
        metavar="NAME=VALUES",
        help="a job for each value, such as lr=0.1,0.01 or seed=1..5; repeatable, for all combinations",
    ),
    argument("--parallel", type=parallel, metavar="N", help="so many jobs of the sweep at once; default: no limit"),
)


def submit_sweep(client: Client, document: bytes, args: argparse.Namespace, out: Output) -> int:
    """Submit a job for each combination of values."""
    from jupyter_pai import sweeps

    for option in ("address", "wait", "fresh_name", "replace"):
        if getattr(args, option):
            raise ClientError(
                Text("--{value} is for a single job, not for a sweep.", value=option.replace("_", "-")),
                code="InvalidParametersError",
            )
    axes = dict(args.sweep)
    if len(axes) < len(args.sweep):
        raise ClientError("Two --sweep give the same name.", code="InvalidParametersError")
    members = sweeps.members(document, axes, args.name or "", args.parallel)
    name = members[0].name.rpartition("-")[0]
    jobs = client.thread.run(sweeps.submit(client.api, members, out.progress))
    out.result(
        {"sweep": name, "jobs": [job["name"] for job in jobs]},
        tr("Sweep {name}: {count} jobs are submitted. `pai sweep {name}` lists them.", name=name, count=len(jobs)),
    )
    return OK


@verb(
    "sweep",
    argument("name", help="name of the sweep"),
    one_of(
        flag("--stop", help="stop all its jobs"),
        flag("--retry", help="run its jobs again that failed or were stopped"),
        argument("--clone", metavar="NEW", help="submit all its jobs again, as a sweep of this name"),
    ),
)
def sweep(args: argparse.Namespace, out: Output) -> int:
    """List the jobs of a sweep with their values; stop them, run failed ones again, or submit all again.

    The exit code is 1 when one has failed.
    """
    from jupyter_pai import sweeps

    with connected() as client:
        jobs = client.thread.run(sweeps.find(client.api, args.name))
        if args.clone:
            made = client.thread.run(sweeps.submit(client.api, list(sweeps.cloned(jobs, args.clone)), out.progress))
            out.result(
                {"sweep": args.clone, "jobs": [job["name"] for job in made]},
                tr(
                    "Sweep {clone}: {count} jobs are submitted. `pai sweep {clone}` lists them.",
                    clone=args.clone,
                    count=len(made),
                ),
            )
            return OK
        if args.stop or args.retry:
            _change(client, jobs, stop=args.stop)
            jobs = client.thread.run(sweeps.find(client.api, args.name))
    rows = [(each.job["name"], *each.values.values(), render.state_words(each.job), _exit(each)) for each in jobs]
    head = ("NAME", *jobs[0].values, "STATE", "EXIT")
    value = [{"name": each.job["name"], "values": each.values, "state": each.job["state"]} for each in jobs]
    out.result(value, render.table(head, rows))
    return JOB_FAILED if any(each.job["state"] == "FAILED" for each in jobs) else OK


def _exit(each: SweptJob) -> str:
    status = each.job["exitStatus"]
    return "" if status is None else str(status)


def _change(client: Client, jobs: list[SweptJob], *, stop: bool) -> None:
    for each in jobs:
        state = each.job["state"]
        if stop and state not in FINAL_STATES:
            client.stop(each.job["uid"])
        elif not stop and state in ("FAILED", "STOPPED"):
            client.start(each.job["uid"])
