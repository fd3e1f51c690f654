"""Why what is shown of a job cannot be relied on now, in words; empty when it can."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pai_backend.api.context import ApiContext
from pai_backend.model.job import Job
from pai_backend.model.node import Node

MOST_NODES = 3
"""Nodes that are named; of more their number is told."""


async def staleness_of(job: Job, ctx: ApiContext) -> str:
    """Of what is known now; only the nodes of a job that holds any are asked about."""
    troubles, used = ctx.troubles(), nodes_of(job)
    silent = await ctx.silences(used) if used and not troubles else {}
    return staleness(job, ctx.nodes(), troubles, silent)


def nodes_of(job: Job) -> list[str]:
    """Nodes that its tasks are on."""
    used = dict.fromkeys(task.placement.node for task in job.tasks if task.placement is not None and task.holds_place)
    return [] if job.state.final else list(used)


def staleness(job: Job, nodes: Sequence[Node], troubles: Sequence[str], silent: Mapping[str, float]) -> str:
    """``troubles`` are the engine's own words on its knowledge; ``nodes`` those it knows, ``silent`` how long some were
    not heard of, in seconds, which are not called not ready yet.

    A job that is over is certain. The state of a task stays what it was last known to be: it is not certain that it is
    another one.
    """
    if job.state.final:
        return ""
    if troubles:
        return f"What is shown may be out of date: {'; '.join(troubles)}."
    known = {node.name: node for node in nodes}
    said = [words for name in nodes_of(job) if (words := _of_node(name, known.get(name), silent.get(name)))]
    more = len(said) - MOST_NODES
    said = said[:MOST_NODES] + ([f"the same for {more} more nodes"] if more > 0 else [])
    return f"What is shown of its tasks may be out of date: {', '.join(said)}." if said else ""


def _of_node(name: str, node: Node | None, silent_s: float | None) -> str:
    """What is wrong with it; empty when nothing is."""
    heard = f"node {name} has not reported for {silent_s:.0f} s" if silent_s else ""
    if node is None or node.ready:
        return heard
    why = f"is not ready ({node.reason or 'no reason is given'})"
    return f"{heard} and {why}" if heard else f"node {name} {why}"
