"""The placer's memory made anew from what is stored, for those who only look."""

from __future__ import annotations

from collections.abc import Iterable

from pai_backend.model.job import Job
from pai_backend.model.node import Node
from pai_backend.scheduling.config.model import ClusterConfig
from pai_backend.scheduling.jobs.placer import Placer
from pai_backend.scheduling.queue import Policy
from pai_backend.scheduling.terms import NodeRules


def rebuilt(
    config: ClusterConfig | None,
    nodes: Iterable[Node],
    jobs: Iterable[Job],
    *,
    cells_for_all: bool = False,
    rules: NodeRules | None = None,
    policy: Policy | None = None,
) -> Placer:
    """A placer that knows these nodes, and what these jobs hold. Costs what a restart of the controller costs."""
    placer = Placer(config, cells_for_all=cells_for_all, rules=rules, policy=policy)
    for node in nodes:
        placer.set_node(node)
    placer.recover(jobs)
    placer.catch_up()
    return placer
