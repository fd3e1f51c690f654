"""What a cluster's nodes are good for, and what an administrator should know or say of them.

For the author of the first configuration of cells; the watch goes by ``reported_nodes`` alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pai_backend.engine.kubernetes.access import Access
from pai_backend.engine.kubernetes.calls import Calls
from pai_backend.engine.kubernetes.client import connect
from pai_backend.engine.kubernetes.nodes import GPU_COUNT, GPU_TYPE, PRODUCTS, UNNAMED, node_of
from pai_backend.engine.kubernetes.objects import Object
from pai_backend.engine.kubernetes.places import NODES
from pai_backend.engine.kubernetes.quantities import quantity
from pai_backend.engine.kubernetes.status.view import part
from pai_backend.model.cluster_settings import NodeReading
from pai_backend.model.labels import Effect
from pai_backend.model.node import Node
from pai_backend.model.pod_settings import PodSettings

CONTROL_PLANE: Final = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
"""Taints, and labels, of nodes that the cluster itself is run on. Source: kubeadm; the latter before 1.24."""
GPU_RESOURCES: Final = ("nvidia.com/gpu", "amd.com/gpu", "intel.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe")
"""What device plugins call GPUs; looked for only to say that nothing counts them."""
MOST_NAMED: Final = 8
"""Nodes that a remark names; it says how many more there are."""


@dataclass(frozen=True)
class Survey:
    """Nodes that cells can be made of, and sentences about the others."""

    nodes: tuple[Node, ...]
    remarks: tuple[str, ...]


async def ask(access: Access, pods: PodSettings, reading: NodeReading) -> Survey:
    """The cluster's nodes as they are now. Raises AccessError, ClusterErrors, and Malformed as :func:`survey`."""
    client = await connect(access)
    try:
        found = [each async for each in Calls(client).list(NODES)]
    finally:
        await client.aclose()
    return survey(found, pods, reading)


def survey(found: Iterable[Object], pods: PodSettings, reading: NodeReading) -> Survey:
    """Read all nodes; a function of its arguments alone. Raises Malformed for one without a name.

    Left out are nodes that tasks are kept off because the cluster is run on them, those that cannot be read, and those
    whose GPUs have a type that no configuration can name. Each is told, with what to do where there is anything.
    """
    read = sorted(((node_of(each, pods.gpus, reading), each) for each in found), key=lambda pair: pair[0].name)
    usable: list[Node] = []
    groups: dict[str, list[str]] = {}
    for node, raw in read:
        why_not = _unusable(node, pods)
        if not why_not:
            usable.append(node)
        said = [why_not] if why_not else [*_doubts(node, raw, pods)]
        for sentence in said:
            groups.setdefault(sentence, []).append(node.name)
    return Survey(tuple(usable), tuple(_sentence(words, names) for words, names in groups.items()))


def _unusable(node: Node, pods: PodSettings) -> str:
    """Why no cells are made of a node, as the beginning of a sentence that ends with names; empty when they are."""
    for taint in node.taints:
        kept_off = taint.effect is not Effect.PREFER_NO_SCHEDULE
        if taint.key in CONTROL_PLANE and kept_off and not any(each.tolerates(taint) for each in pods.tolerations):
            return f"Left out, because the cluster itself is run there ({taint})"
    if not node.ready and "cannot be read" in node.reason:
        return f"Left out, because {node.reason}"
    dotted = sorted({gpu.type for gpu in node.gpus if "." in gpu.type})
    if dotted:
        return (
            f"Left out, because a type of cells cannot have a dot in it as {', '.join(dotted)} has; give the GPUs "
            f"another word with `kubectl label node NAME {GPU_TYPE}=WORD`, or for all of this product with "
            f"kubernetes.nodes.gpu_types"
        )
    return ""


def _doubts(node: Node, raw: Object, pods: PodSettings) -> Iterator[str]:
    """What is to be known of a node that is usable."""
    if not node.ready:
        yield f"Not ready now ({node.reason}), so that its cells wait for it"
    if not node.gpus:
        yield _why_without(node, raw, pods)
    elif any(gpu.type == UNNAMED for gpu in node.gpus):
        yield (
            f"The type of the GPUs is not known, so they are all {UNNAMED}; where documents ask for a type, "
            f"set `kubectl label node NAME {GPU_TYPE}=WORD` and make this file again"
        )


def _why_without(node: Node, raw: Object, pods: PodSettings) -> str:
    allocatable = part(part(raw, "status"), "allocatable")
    offered = [name for name in GPU_RESOURCES if _count(allocatable.get(name))]
    if pods.gpus.by == "visible-devices":
        if offered or any(label in node.labels for label in PRODUCTS):
            return f"Without cells until its number of GPUs is set: `kubectl label node NAME {GPU_COUNT}=N`"
    elif offered:
        return (
            f"Without cells, because GPUs are counted by {pods.gpus.resource} and these are {', '.join(offered)}; "
            "set kubernetes.pods.gpus.resource, or resources for their type"
        )
    elif any(label in node.labels for label in PRODUCTS):
        return f"Without cells, because its labels name GPUs and no device plugin offers {pods.gpus.resource} there"
    return "Without GPUs, hence without cells; tasks that ask for no GPU run there by CPU and memory"


def _count(value: object) -> int:
    try:
        return int(quantity(value))
    except ValueError:
        return 0


def _sentence(words: str, names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{words}: {', '.join(names[:MOST_NAMED])}{more}."
