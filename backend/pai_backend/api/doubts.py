"""Why what is shown of a job cannot be relied on now, in words; empty when it can."""

from __future__ import annotations

from collections.abc import Sequence

from pai_backend.model.job import Job
from pai_backend.model.node import Node

MOST_NODES = 3
"""Nodes that are named; of more their number is told."""


def doubts(job: Job, nodes: Sequence[Node], troubles: Sequence[str]) -> str:
    """``troubles`` are the engine's own words on its knowledge; ``nodes`` those it knows.

    A job that is over is certain. The state of a task stays what it was last known to be: nobody can say that it is
    another one.
    """
    if job.state.final:
        return ""
    if troubles:
        return f"What is shown may be out of date: {'; '.join(troubles)}."
    used = dict.fromkeys(task.placement.node for task in job.tasks if task.placement is not None and task.holds_place)
    known = {node.name: node for node in nodes}
    away = [node for name in used if (node := known.get(name)) is not None and not node.ready]
    said = [f"node {node.name} is not ready ({node.reason or 'it does not say why'})" for node in away[:MOST_NODES]]
    if len(away) > MOST_NODES:
        said.append(f"{len(away) - MOST_NODES} more nodes are not ready")
    return f"What is shown of its tasks may be out of date: {', '.join(said)}." if said else ""
