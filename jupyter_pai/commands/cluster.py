"""``cluster show|plan|apply|history|orphans``: the cluster configuration of a backend, for administrators.

``plan`` exits with 0 when no job is affected, 1 when the configuration is invalid, 2 when jobs are affected.
With two files it compares them, and needs no backend: 0 when virtual clusters and nodes are the same, 2 when they
differ.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from jupyter_pai.cluster_text import (
    differences_text,
    faults_of,
    history_text,
    orphans_text,
    plan_text,
    shown_text,
    warnings_text,
)
from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import DocumentFile, connected, read_document
from jupyter_pai.errors import AWAY, OK, USAGE, ClientError, from_wire
from jupyter_pai.language import tr
from jupyter_pai.verbs import GROUPS, argument, flag, verb
from pai_backend.model.text import Text

if TYPE_CHECKING:
    from jupyter_pai.wire_types import ClusterPlan

NOT_TAKEN, CONCERNS = 1, 2
"""Exit codes of ``plan`` besides 0."""

GROUPS["cluster"] = "Look at, plan and change the cluster configuration"


@verb(
    "cluster show",
    argument("--version", type=int, help="an earlier version"),
    flag("--derived", help="what would be derived from the nodes, instead"),
)
def show(args: argparse.Namespace, out: Output) -> int:
    """Print the configuration in force."""
    from jupyter_pai import cluster

    with connected() as client:
        shown = client.thread.run(cluster.show(client.api, args.version))
    out.result(shown, shown["derived"].rstrip("\n") if args.derived else shown_text(shown))
    return OK


@verb("cluster history", argument("--limit", type=int, default=20, help="at most this many; default: 20"))
def history(args: argparse.Namespace, out: Output) -> int:
    """The last versions, and what they did."""
    from jupyter_pai import cluster

    with connected() as client:
        versions = client.thread.run(cluster.history(client.api, args.limit))
    out.result(versions, history_text(versions))
    return OK


@verb("cluster orphans", argument("--end", metavar="TASK", help="end this one"))
def orphans(args: argparse.Namespace, out: Output) -> int:
    """Running tasks that are not in the database."""
    from jupyter_pai import cluster

    with connected() as client:
        if args.end is not None:
            client.thread.run(cluster.end_orphan(client.api, args.end))
            out.result({"task": args.end}, tr("The end of {end} was requested.", end=args.end))
            return OK
        found = client.thread.run(cluster.orphans(client.api))
    out.result(found, orphans_text(found))
    return OK


@verb(
    "cluster plan",
    argument("new", document=True, help="the configuration, in HiveD's schema; - reads it from stdin"),
    argument("other", nargs="?", files=True, help="compare the first file with this newer one; needs no backend"),
)
def plan(args: argparse.Namespace, out: Output) -> int:
    """Show the effect of a configuration; exit code 0: no job is affected, 1: it is invalid, 2: jobs are affected."""
    from jupyter_pai import cluster

    if args.other is not None:
        return _compare(str(args.new), args.other, out)
    document = DocumentFile(b"", str(args.new), None)
    try:
        document = read_document(args.new)
        with connected() as client:
            found = client.thread.run(cluster.plan(client.api, document.data))
    except ClientError as error:
        # Not the error's own exit code: 2 would say that the plan affects jobs.
        out.error(error, source=document.text, name=document.name)
        return AWAY if error.exit_code == AWAY else NOT_TAKEN
    if not found["valid"]:
        _say_faults(found, document, out)
        return NOT_TAKEN
    out.result(found, plan_text(found))
    return CONCERNS if found["concerns"] else OK


@verb(
    "cluster apply",
    argument("new", document=True, help="the configuration, in HiveD's schema"),
    flag("--yes", help="do not ask"),
)
def apply(args: argparse.Namespace, out: Output) -> int:
    """Plan a configuration, ask, and apply it.

    It ends when the configuration is in force.
    """
    from jupyter_pai import cluster

    document = read_document(args.new)
    with connected() as client:
        planned = client.thread.run(cluster.plan(client.api, document.data))
        if not planned["valid"]:
            _say_faults(planned, document, out)
            return NOT_TAKEN
        if not out.as_json:
            out.result(planned, plan_text(planned))
        if not args.yes and not out.agreed(tr("apply it"), tr("Nothing was changed.")):
            return NOT_TAKEN
        done = client.thread.run(cluster.apply(client.api, document.data, planned["newestVersion"]))
    out.result(done, tr("Version {applied_version} is in force.", applied_version=done["appliedVersion"]))
    return OK


def _say_faults(found: ClusterPlan, document: DocumentFile, out: Output) -> None:
    if out.as_json:
        out.json_line(found, indent=2)
    else:
        out.error(faults_of(found["errors"]), source=document.text, name=document.name)


def _compare(old: str, new: str, out: Output) -> int:
    command = [sys.executable, "-P", "-m", "pai_backend", "cluster", "compare", old, new]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode not in (OK, USAGE) or not done.stdout:
        raise ClientError(
            Text("The comparison ended with exit code {returncode}.", returncode=done.returncode),
            hint="Its output is above.",
        )
    answer = json.loads(done.stdout)
    if done.returncode == USAGE:
        error = from_wire(400, answer["error"])
        out.error(error, source=_source(error, answer["file"]), name=answer["file"])
        return NOT_TAKEN
    warned = warnings_text(answer["warnings"])
    text = differences_text(answer["change"])
    out.result(answer, text + (f"\n{warned}" if warned else ""))
    return CONCERNS if answer["differs"] else OK


def _source(error: ClientError, file: str) -> str:
    """The text to show places in, when the error has any."""
    if not any(fault.line for fault in error.faults):
        return ""
    return Path(file).read_text(encoding="utf-8-sig", errors="replace")
