"""What tasks use now, the nodes, and the cluster in a few lines."""

from __future__ import annotations

import argparse

from jupyter_pai.commands.arguments import job_names
from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import connected
from jupyter_pai.errors import OK
from jupyter_pai.use_text import nodes_text, status_text, top_text
from jupyter_pai.verbs import argument, verb

POINTS = 12
"""Samples of the last hour in a row of ``top``."""


@verb("top", argument("job", nargs="?", metavar="JOB", help="only this job; default: all", completer=job_names))
def top(args: argparse.Namespace, out: Output) -> int:
    """GPUs, CPUs and memory that running tasks use now.

    The tasks of your jobs; of everyone's for an administrator. A backend looks once a minute (``metrics.sample_s``).
    """
    with connected() as client:
        found = client.task_uses(points=POINTS)
        if args.job is not None:
            job = client.job(args.job)["id"]
            found = {**found, "data": [row for row in found["data"] if row["job"] == job]}
    out.result(found["data"], top_text(found["data"], found["sampleS"]))
    return OK


@verb("nodes")
def nodes(args: argparse.Namespace, out: Output) -> int:
    """Nodes, what of them is in use, and which are not ready."""
    with connected() as client:
        found = client.cluster_use()["nodes"]
    out.result(found, nodes_text(found))
    return OK


@verb("cluster status")
def status(args: argparse.Namespace, out: Output) -> int:
    """GPUs in use and free by virtual cluster, jobs that wait, and nodes that are not ready."""
    with connected() as client:
        found = client.cluster_use()
    out.result(found, status_text(found))
    return OK
