"""Which kinds of hardware a job may name, and what one unit of each has."""

from __future__ import annotations

from collections.abc import Iterable

from pai_backend.model.node import Node
from pai_backend.scheduling.config.derive import derive
from pai_backend.scheduling.config.model import ClusterConfig, Sku

CPU = "CPU"
"""What the share of a CPU is called where no configuration has a name for it. Tasks without GPUs may name it."""


def named_kinds(config: ClusterConfig | None, nodes: Iterable[Node], vc: str = "") -> dict[str, Sku]:
    """Kind to what a unit of it has: those of a virtual cluster, or all, with ``vc`` empty.

    As a written configuration says, or else as the nodes have it: a unit of the smallest. Every kind told here is one
    that a document may name, so GPUs whose type nobody knows are left out. Raises KeyError for an unknown ``vc``.
    """
    if config is None:
        nodes = list(nodes)
        found = {kind: sku for kind, sku in derive(nodes).skus.items() if kind}
        plain = [node for node in nodes if not node.gpus and node.cpus]
        if plain:
            found.setdefault(CPU, Sku(0, 1, f"{min(node.memory_mb // node.cpus for node in plain)}Mi"))
        return found
    chains = list(config.chains())
    if vc:
        owned = {quota.chain for quota in config.virtual_clusters[vc].quotas if quota.number}
        chains = [chain for chain in chains if chain in owned]  # pinned cells are named by themselves, not by a kind
    return {kind: config.skus.get(kind, Sku()) for kind in (config.levels(chain)[0] for chain in chains)}
