"""What is in use, as text for people. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jupyter_pai import render
from jupyter_pai.language import tr

if TYPE_CHECKING:
    from jupyter_pai.wire_types import ClusterUseWire, NodeUseWire, TaskUseRow, UsePoint, VirtualClusterUse

BARS = "▁▂▃▄▅▆▇█"
"""A share of the whole, in eighths."""


def top_text(rows: Sequence[TaskUseRow], sample_s: float) -> str:
    """Running tasks, a task a line."""
    if not rows:
        return tr("No task runs.")
    table = render.table(
        ("JOB", "TASK", "NODE", "GPUS", "GPU %", "GPU MEMORY", "CPUS", "MEMORY", "LAST HOUR"), map(_top_row, rows)
    )
    waiting = sum(row["now"] is None for row in rows)
    if not waiting:
        return table
    terms = {"waiting": waiting, "number": len(rows), "seconds": f"{sample_s:g}"}
    note = tr("{waiting} of {number} tasks were not looked at yet; it is done every {seconds} s.", **terms)
    return f"{table}\n{note}"


def _top_row(row: TaskUseRow) -> tuple[object, ...]:
    now, gpus = row["now"], row["gpus"]
    task = f"{row['role']}-{row['index']}"
    if now is None:
        return row["job"], task, row["node"], gpus or "-", "", "", "", "", ""
    return (
        row["job"],
        task,
        row["node"],
        gpus or "-",
        _known(now["gpuPercent"], "{:.0f}"),
        _mib(now["gpuMemoryMb"]),
        f"{_known(now['cpus'], '{:.1f}')}/{row['cpus']}",
        f"{_mib(now['memoryMb'])}/{_mib(row['memoryMb'])}",
        curve(row["trend"], row["cpus"], gpus=gpus > 0),
    )


def curve(points: Sequence[UsePoint], cpus: int, *, gpus: bool) -> str:
    """The share of its GPUs that worked, else of its CPUs; a blank where it is not known."""
    shares = [
        (None if each["gpuPercent"] is None else each["gpuPercent"] / 100)
        if gpus
        else (None if each["cpus"] is None else each["cpus"] / max(cpus, 1))
        for each in points
    ]
    return "".join(" " if share is None else BARS[min(7, max(0, int(share * 8)))] for share in shares)


def _known(value: float | None, form: str) -> str:
    return "?" if value is None else form.format(value)


def _mib(value: int | None) -> str:
    if value is None:
        return "?"
    return f"{value / 1024:.1f} GiB" if value >= 1024 else f"{value} MiB"


def nodes_text(nodes: Sequence[NodeUseWire]) -> str:
    """Nodes, a node a line."""
    if not nodes:
        return tr("There are no nodes.")
    rows = [
        (
            node["name"],
            _state(node),
            ", ".join(node["gpuTypes"]) or "-",
            f"{node['usedGpus']}/{node['gpus']}{_beside(node)}",
            f"{node['usedCpus'] + node['otherCpus']}/{node['cpus']}",
            f"{_mib(node['usedMemoryMb'] + node['otherMemoryMb'])}/{_mib(node['memoryMb'])}",
            node["reason"],
        )
        for node in nodes
    ]
    return render.table(("NODE", "STATE", "GPU TYPE", "GPUS", "CPUS", "MEMORY", "REASON"), rows)


def _beside(node: NodeUseWire) -> str:
    """GPUs that neither are in use here nor can be."""
    found = [
        f"{count} {word}"
        for count, word in ((node["badGpus"], tr("bad")), (node["otherGpus"], tr("of others")))
        if count
    ]
    return f" ({', '.join(found)})" if found else ""


def _state(node: NodeUseWire) -> str:
    if not node["ready"]:
        return tr("not ready")
    return tr("ready") if node["schedulable"] else tr("cordoned")


def status_text(use: ClusterUseWire) -> str:
    """Virtual clusters, then the sums of all nodes."""
    rows = [_cluster_row(each) for each in use["virtualClusters"]]
    table = render.table(("VC", "GPUS", "USED", "FREE", "BAD", "RUNNING", "WAITING"), rows)
    nodes = use["nodes"]
    down = [node["name"] for node in nodes if not node["ready"]]
    lines = [
        table,
        "",
        tr(
            "{ready} of {nodes} nodes ready; {used_gpus} of {gpus} GPUs, {used_cpus} of {cpus} CPUs in use.",
            ready=len(nodes) - len(down),
            nodes=len(nodes),
            used_gpus=sum(node["usedGpus"] for node in nodes),
            gpus=sum(node["gpus"] for node in nodes),
            used_cpus=sum(node["usedCpus"] for node in nodes),
            cpus=sum(node["cpus"] for node in nodes),
        ),
    ]
    if down:
        lines.append(tr("Not ready: {nodes}. `pai nodes` tells why.", nodes=", ".join(map(render.safe, down))))
    if use["shared"]:
        lines.append(tr("No cells are configured: every virtual cluster may use all nodes."))
    return "\n".join(lines)


def _cluster_row(use: VirtualClusterUse) -> tuple[object, ...]:
    cells = use["cells"]
    return (
        use["name"],
        sum(each["owned"] for each in cells),
        sum(each["guaranteed"] + each["opportunistic"] for each in cells),
        sum(each["free"] for each in cells),
        sum(each["bad"] for each in cells),
        len(use["running"]) + use["unlistedJobs"],
        use["waiting"],
    )
