"""Nodes with labels and taints, and placers that know them, for tests of what keeps tasks off nodes."""

from __future__ import annotations

from pai_backend.model.labels import Effect, NodeRule, Operator, Taint, Toleration
from pai_backend.model.node import Gpu, Node
from pai_backend.scheduling.jobs.placer import Placer
from pai_backend.scheduling.terms import NodeRules


def taint(text: str) -> Taint:
    """As ``kubectl taint`` writes it: ``key=value:effect``."""
    marks, _, effect = text.partition(":")
    key, _, value = marks.partition("=")
    return Taint(key=key, value=value, effect=Effect(effect))


def node(name: str, *taints: str, gpus: int = 1, kind: str = "V100", cpus: int = 8, **labels: str) -> Node:
    """A node of 16 GiB with these taints and labels."""
    return Node(
        name=name,
        address="127.0.0.1",
        machine=name,
        cpus=cpus,
        memory_mb=16_384,
        gpus=tuple(Gpu(index=index, type=kind) for index in range(gpus)),
        labels=labels,
        taints=tuple(taint(text) for text in taints),
    )


def cordoned(of: Node) -> Node:
    """The node, closed for whatever is new."""
    return of.model_copy(update={"schedulable": False})


def tolerating(*keys: str, **selector: str) -> NodeRule:
    """A rule that tolerates all taints of these keys and asks for these labels."""
    return NodeRule(
        node_selector=selector, tolerations=tuple(Toleration(key=key, operator=Operator.EXISTS) for key in keys)
    )


def placer(*nodes: Node, without_cells: NodeRule | None = None, **by_type: NodeRule) -> Placer:
    """Without a configuration of cells, with the administrator's rules by GPU type."""
    made = Placer(rules=NodeRules(by_type, without_cells or NodeRule()))
    for each in nodes:
        made.set_node(each)
    made.catch_up()
    return made
