"""Plans and versions of the cluster configuration as text for people. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from jupyter_pai import render
from jupyter_pai.errors import Fault, InvalidDocument
from jupyter_pai.wire_types import Fault as FaultWire

if TYPE_CHECKING:
    from jupyter_pai.wire_types import (
        ClusterChange,
        ClusterPlan,
        ConfigShown,
        ConfigVersionShown,
        JobEffect,
        OrphanShown,
        VcChange,
    )

MOST_JOBS = 50
"""Jobs of one kind that are listed in text; JSON has all."""


def plan_text(plan: ClusterPlan) -> str:
    """What a valid configuration does to virtual clusters, nodes and jobs, and its warnings."""
    change = plan["change"]
    assert change is not None
    warned = warnings_text(plan["warnings"])
    return f"{differences_text(change)}\n\n{_jobs_text(change)}" + (f"\n{warned}" if warned else "")


def differences_text(change: ClusterChange) -> str:
    """What a change does to virtual clusters and nodes."""
    return "\n".join([_owned_text(change["virtualClusters"]), *_node_lines(change)])


def _owned_text(clusters: Sequence[VcChange]) -> str:
    rows = [row for each in clusters for row in _owned_rows(each)]
    return render.table(("VC", "CELLS", "BEFORE", "AFTER", ""), rows) if rows else "There are no virtual clusters."


def _owned_rows(vc: VcChange) -> Iterator[tuple[object, ...]]:
    fate = "" if vc["existsBefore"] and vc["existsAfter"] else "goes" if vc["existsBefore"] else "is new"
    yield vc["vc"], "GPUs in all", vc["gpusBefore"], vc["gpusAfter"], fate
    for each in vc["cells"]:
        yield "", each["cell"], each["before"], each["after"], "" if each["before"] == each["after"] else "changes"


def _node_lines(change: ClusterChange) -> list[str]:
    found = []
    for words, names in (
        ("newly configured", change["addedNodes"]),
        ("no longer configured", change["removedNodes"]),
    ):
        if names:
            more = f" and {len(names) - MOST_JOBS} more" if len(names) > MOST_JOBS else ""
            found.append(f"Nodes {words}: {', '.join(render.safe(name) for name in names[:MOST_JOBS])}{more}")
    return found


def _jobs_text(change: ClusterChange) -> str:
    kinds: tuple[tuple[str, Sequence[JobEffect]], ...] = (
        ("keeps running outside its quota: it may be preempted", change["lost"]),
        ("is within its quota again", change["regained"]),
        ("loses its reservation and is scheduled again", change["dropped"]),
        ("runs on cells that are no longer configured", change["missing"]),
        ("waits, and can never start", [each for each in change["impossible"] if not each["already"]]),
        ("waits, and would start now", change["starts"]),
    )
    rows, notes = [], []
    for words, told in kinds:
        for each in told[:MOST_JOBS]:
            why = f": {each['message']}" if each["message"] else ""
            rows.append((each["job"], each["vc"], each["gpus"], f"{words}{why}"))
        if len(told) > MOST_JOBS:
            notes.append(f"And {len(told) - MOST_JOBS} more of this kind: {words}.")
    stuck = sum(each["already"] for each in change["impossible"])
    if stuck:
        jobs = "job" if stuck == 1 else "jobs"
        notes.append(f"{stuck} waiting {jobs} can never start with this configuration, as with the present one.")
    if not rows:
        return "\n".join(["No job is affected.", *notes])
    return "\n".join([render.table(("JOB", "VC", "GPUS", "WHAT HAPPENS"), rows), *notes])


def warnings_text(warnings: Sequence[FaultWire]) -> str:
    """Warnings of a configuration, each with its place and remedy."""
    lines = []
    for each in warnings:
        where = f"{each['line']}:{each['column']}: " if each["line"] else ""
        lines.append(f"! {where}{render.safe(each['message'])} {render.safe(each['hint'])}".rstrip())
    return "\n".join(lines)


def faults_of(errors: Sequence[FaultWire]) -> InvalidDocument:
    """The faults of a plan as the error that they are."""
    faults = [Fault(each["message"], each["path"], each["line"], each["column"], each["hint"]) for each in errors]
    many = f"{len(faults)} faults" if len(faults) > 1 else "a fault"
    return InvalidDocument(f"The cluster configuration has {many}; nothing was changed.", faults=faults)


def shown_text(shown: ConfigShown) -> str:
    """A version's head and its text."""
    head = [f"# version {shown['version']}, {shown['state']}{_when(shown)}"]
    if shown["newestVersion"] > shown["version"] and shown["state"] == "in force":
        head.append(f"# version {shown['newestVersion']} is recorded and waits for the controller")
    head.append(f"# {render.safe(shown['precedence'])}")
    return "\n".join([*head, shown["text"].rstrip("\n")])


def _when(version: ConfigVersionShown) -> str:
    if version["origin"] == "derived":
        return ": derived from the nodes"
    source = "cluster.config" if version["origin"] == "setting" else f"applied by {render.safe(version['by'])}"
    at = render.clock(version["since"]) or f"recorded {render.clock(version['recordedAt'])}"
    return f" since {at}: {source}" if version["since"] else f", {at}: {source}"


def orphans_text(found: Sequence[OrphanShown]) -> str:
    """Running tasks that the database does not know, and why each was not taken back."""
    if not found:
        return "Every running task belongs to a job of the database."
    rows = [
        (each["task"], each["state"], render.clock(each["seenAt"]), each["endedBy"] or "-", each["why"])
        for each in found
    ]
    return render.table(("TASK", "STATE", "SEEN", "ENDED BY", "WHY IT IS AN ORPHAN"), rows)


def history_text(versions: Sequence[ConfigVersionShown]) -> str:
    """Versions, the newest first, with how many jobs each concerned."""
    if not versions:
        return "There is no version yet: the configuration is derived from the nodes."
    rows = [
        (
            each["version"],
            each["state"],
            each["by"] or "cluster.config",
            render.clock(each["recordedAt"]),
            render.clock(each["since"]),
            _counts(each["change"]),
        )
        for each in versions
    ]
    return render.table(("VERSION", "STATE", "BY", "RECORDED", "IN FORCE", "JOBS CONCERNED"), rows)


def _counts(change: ClusterChange | None) -> str:
    if change is None:
        return ""
    kinds = (
        ("lost quota", change["lost"]),
        ("regained it", change["regained"]),
        ("reservation dropped", change["dropped"]),
        ("on cells that are no longer configured", change["missing"]),
    )
    return ", ".join(f"{len(jobs)} {words}" for words, jobs in kinds if jobs) or "none"
