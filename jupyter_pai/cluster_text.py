"""Plans and versions of the cluster configuration as text for people. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from jupyter_pai import render
from jupyter_pai.errors import Fault, InvalidDocument, worded
from jupyter_pai.language import tr
from jupyter_pai.wire_types import Fault as FaultWire
from pai_backend.model.text import Text

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
    return render.table(("VC", "CELLS", "BEFORE", "AFTER", ""), rows) if rows else tr("There are no virtual clusters.")


def _owned_rows(vc: VcChange) -> Iterator[tuple[object, ...]]:
    fate = "" if vc["existsBefore"] and vc["existsAfter"] else tr("goes") if vc["existsBefore"] else tr("is new")
    yield vc["vc"], tr("GPUs in all"), vc["gpusBefore"], vc["gpusAfter"], fate
    for each in vc["cells"]:
        yield "", each["cell"], each["before"], each["after"], "" if each["before"] == each["after"] else tr("changes")


def _node_lines(change: ClusterChange) -> list[str]:
    found = []
    for words, names in (
        (tr("Nodes newly configured"), change["addedNodes"]),
        (tr("Nodes no longer configured"), change["removedNodes"]),
    ):
        if names:
            listed = ", ".join(render.safe(name) for name in names[:MOST_JOBS])
            if len(names) > MOST_JOBS:
                listed = tr("{names} and {number} more", names=listed, number=len(names) - MOST_JOBS)
            found.append(f"{words}: {listed}")
    return found


def _jobs_text(change: ClusterChange) -> str:
    kinds: tuple[tuple[str, Sequence[JobEffect]], ...] = (
        (tr("keeps running outside its quota: it may be preempted"), change["lost"]),
        (tr("is within its quota again"), change["regained"]),
        (tr("loses its reservation and is scheduled again"), change["dropped"]),
        (tr("runs on cells that are no longer configured"), change["missing"]),
        (tr("waits, and can never start"), [each for each in change["impossible"] if not each["already"]]),
        (tr("waits, and would start now"), change["starts"]),
    )
    rows, notes = [], []
    for words, told in kinds:
        for each in told[:MOST_JOBS]:
            why = f": {tr(each['message'])}" if each["message"] else ""
            rows.append((each["job"], each["vc"], each["gpus"], f"{words}{why}"))
        if len(told) > MOST_JOBS:
            notes.append(tr("And {number} more of this kind: {words}.", number=len(told) - MOST_JOBS, words=words))
    stuck = sum(each["already"] for each in change["impossible"])
    if stuck == 1:
        notes.append(tr("1 waiting job can never start with this configuration, as with the present one."))
    elif stuck:
        notes.append(
            tr("{number} waiting jobs can never start with this configuration, as with the present one.", number=stuck)
        )
    if not rows:
        return "\n".join([tr("No job is affected."), *notes])
    return "\n".join([render.table(("JOB", "VC", "GPUS", "WHAT HAPPENS"), rows), *notes])


def warnings_text(warnings: Sequence[FaultWire]) -> str:
    """Warnings of a configuration, each with its place and remedy."""
    lines = []
    for each in warnings:
        where = f"{each['line']}:{each['column']}: " if each["line"] else ""
        lines.append(
            f"! {where}{render.safe(_said(each))} {render.safe(tr(worded(each, 'hint', 'hintWording')))}".rstrip()
        )
    return "\n".join(lines)


def _said(fault: FaultWire) -> str:
    return tr(worded(fault, "message", "wording"))


def faults_of(errors: Sequence[FaultWire]) -> InvalidDocument:
    """The faults of a plan as the error that they are."""
    faults = [
        Fault(
            worded(each, "message", "wording"),
            each["path"],
            each["line"],
            each["column"],
            worded(each, "hint", "hintWording"),
        )
        for each in errors
    ]
    if len(faults) == 1:
        return InvalidDocument("The cluster configuration has a fault; nothing was changed.", faults=faults)
    said = Text("The cluster configuration has {number} faults; nothing was changed.", number=len(faults))
    return InvalidDocument(said, faults=faults)


def shown_text(shown: ConfigShown) -> str:
    """A version's head and its text."""
    named = tr("version {number}, {state}", number=shown["version"], state=tr(shown["state"]))
    head = [f"# {named}{_when(shown)}"]
    if shown["newestVersion"] > shown["version"] and shown["state"] == "in force":
        head.append(
            "# " + tr("version {number} is recorded and waits for the controller", number=shown["newestVersion"])
        )
    head.append(f"# {render.safe(tr(shown['precedence']))}")
    return "\n".join([*head, shown["text"].rstrip("\n")])


def _when(version: ConfigVersionShown) -> str:
    if version["origin"] == "derived":
        return ": " + tr("derived from the nodes")
    source = "cluster.config"
    if version["origin"] != "setting":
        source = tr("applied by {user}", user=render.safe(version["by"]))
    if version["since"]:
        return " " + tr("since {time}: {source}", time=render.clock(version["since"]), source=source)
    return tr(", recorded {time}: {source}", time=render.clock(version["recordedAt"]), source=source)


def orphans_text(found: Sequence[OrphanShown]) -> str:
    """Running tasks that the database does not know, and why each was not taken back."""
    if not found:
        return tr("Every running task belongs to a job of the database.")
    rows = [
        (
            each["task"],
            render.state_name(each["state"]),
            render.clock(each["seenAt"]),
            each["endedBy"] or "-",
            tr(each["why"]),
        )
        for each in found
    ]
    return render.table(("TASK", "STATE", "SEEN", "ENDED BY", "WHY IT IS AN ORPHAN"), rows)


def history_text(versions: Sequence[ConfigVersionShown]) -> str:
    """Versions, the newest first, with how many jobs each concerned."""
    if not versions:
        return tr("There is no version yet: the configuration is derived from the nodes.")
    rows = [
        (
            each["version"],
            tr(each["state"]),
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
        (tr("{number} lost quota", number=len(change["lost"])), change["lost"]),
        (tr("{number} regained it", number=len(change["regained"])), change["regained"]),
        (tr("{number} reservation dropped", number=len(change["dropped"])), change["dropped"]),
        (tr("{number} on cells that are no longer configured", number=len(change["missing"])), change["missing"]),
    )
    return ", ".join(words for words, jobs in kinds if jobs) or tr("none")
