"""Why what is shown of a job cannot be relied on now, in words; empty when it can."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pai_backend.api.context import ApiContext
from pai_backend.model.job import Job
from pai_backend.model.node import Node
from pai_backend.model.text import NO_TEXT, Text, in_clauses, listed

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
        return Text("What is shown may be out of date: {why}.", why=in_clauses(troubles))
    known = {node.name: node for node in nodes}
    said = [words for name in nodes_of(job) if (words := _of_node(name, known.get(name), silent.get(name)))]
    more = len(said) - MOST_NODES
    said = said[:MOST_NODES] + ([Text("the same for {number} more nodes", number=more)] if more > 0 else [])
    return Text("What is shown of its tasks may be out of date: {why}.", why=listed(said)) if said else NO_TEXT


def _of_node(name: str, node: Node | None, silent_s: float | None) -> Text:
    """What is wrong with it; empty when nothing is."""
    seconds = f"{silent_s:.0f}" if silent_s else ""
    if node is None or node.ready:
        heard = Text("node {node} has not reported for {seconds} s", node=name, seconds=seconds)
        return heard if silent_s else NO_TEXT
    reason = node.reason or Text("no reason is given")
    if not silent_s:
        return Text("node {node} is not ready ({reason})", node=name, reason=reason)
    return Text(
        "node {node} has not reported for {seconds} s and is not ready ({reason})",
        node=name,
        seconds=seconds,
        reason=reason,
    )
