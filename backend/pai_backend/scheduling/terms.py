"""Which nodes a task may use, whatever room they have: health, cordons, labels and taints.

An administrator says by SKU (leaf type), and for tasks that hold no cells, which labels a node must have and which
taints are tolerated. A document may ask for more labels, and tolerates nothing by itself: a user may narrow the choice,
and never widen it. A group that names no type may lie on cells of any, so the rule of the node's own SKU counts for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from pai_backend.model.labels import Effect, NodeRule
from pai_backend.model.node import Node, Placement
from pai_backend.model.waiting import LackOf
from pai_backend.scheduling.config.model import ClusterConfig

_PLAIN = NodeRule()


@dataclass(frozen=True)
class NodeRules:
    """What the administrator says: by leaf type, and of tasks without cells. A type that is not there has no rule."""

    by_type: Mapping[str, NodeRule] = field(default_factory=dict)
    without_cells: NodeRule = _PLAIN

    def of(self, leaf_type: str) -> NodeRule:
        """The rule of tasks on cells of this type."""
        return self.by_type.get(leaf_type, _PLAIN)

    def unused(self, config: ClusterConfig) -> list[str]:
        """Leaf types that have a rule, and of which the configuration has no cells."""
        types = {config.levels(chain)[0] for chain in config.chains()}
        return sorted(self.by_type.keys() - types)

    def of_placed(self, place: Placement, config: ClusterConfig | None) -> NodeRule:
        """The rule of a task that has its place: what an engine has to tell a cluster of its own.

        ``config`` is the written configuration; in chains that are not in it, as in derived ones, a leaf is a GPU.
        """
        if not place.cells:
            return self.without_cells
        if config is None or place.chain not in config.cell_types:
            return self.of(place.gpu_type)
        return self.of(config.levels(place.chain)[0])


@dataclass(frozen=True)
class Objection:
    """Why a node is not for a task. ``detail`` is the label asked for or the taint, as Kubernetes writes them."""

    what: LackOf
    detail: str = ""


@dataclass(frozen=True, eq=False)
class Terms:
    """What a task asks of a node besides room.

    Made by :class:`TermsOf`, one object for all tasks that ask for the same: so they are compared by identity, which is
    what makes it cheap to group thousands of waiting tasks by what they need.
    """

    selector: Mapping[str, str] = field(default_factory=dict)
    """Labels the document asks for."""
    rule: NodeRule | None = _PLAIN
    """The administrator's; None for that of the cells on each node."""
    by_type: Mapping[str, NodeRule] = field(default_factory=dict)
    types: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Node -> leaf types of its cells, where a written configuration says so; else they are the types of its GPUs."""

    def rules(self, node: Node) -> tuple[NodeRule, ...]:
        """The administrator's rules that count on the node.

        A machine with cells of two types has two, and a group that names no type keeps to both, because it is not known
        before which it would lie on.
        """
        if self.rule is not None:
            return (self.rule,)
        types = self.types.get(node.name) or dict.fromkeys(gpu.type for gpu in node.gpus)
        return tuple(self.by_type.get(each, _PLAIN) for each in types) or (_PLAIN,)

    def objection(self, node: Node) -> Objection | None:
        """Why the node is not for the task, the first that applies; None when it is. Its health is not looked at."""
        if not node.schedulable:
            return Objection(LackOf.CORDONED)
        rules = self.rules(node)
        for asked in (self.selector, *(rule.node_selector for rule in rules)):
            for key, value in asked.items():
                if node.labels.get(key) != value:
                    return Objection(LackOf.SELECTOR, f"{key}={value}")
        for rule in rules:
            for taint in rule.untolerated(node.taints):
                if taint.effect is not Effect.PREFER_NO_SCHEDULE:
                    return Objection(LackOf.TAINT, str(taint))
        return None

    def avoids(self, node: Node) -> bool:
        """Whether the node is to be taken last: it has a PreferNoSchedule taint that is not tolerated."""
        return bool(node.taints) and any(
            taint.effect is Effect.PREFER_NO_SCHEDULE
            for rule in self.rules(node)
            for taint in rule.untolerated(node.taints)
        )


ANY_NODE = Terms()
"""The terms of tasks without any wish: no labels, no taint tolerated."""


class TermsOf:
    """Makes terms, each once for as long as it is referred to."""

    def __init__(self, rules: NodeRules, types: Mapping[str, tuple[str, ...]]) -> None:
        self._rules = rules
        self._types = types
        self._made: WeakValueDictionary[object, Terms] = WeakValueDictionary()

    def without_cells(self, selector: Mapping[str, str]) -> Terms:
        """Of tasks that hold no cells."""
        return self._once(("no cells", ""), selector, self._rules.without_cells)

    def on_cells(self, selector: Mapping[str, str], leaf_type: str) -> Terms:
        """Of tasks on cells of this type; of any type when it is empty."""
        if not leaf_type and self._rules.by_type:
            return self._once(("any type", ""), selector, None)
        return self._once(("type", leaf_type), selector, self._rules.of(leaf_type))

    def _once(self, kind: tuple[str, str], selector: Mapping[str, str], rule: NodeRule | None) -> Terms:
        if not selector and rule == _PLAIN:
            return ANY_NODE
        key = (kind, tuple(sorted(selector.items())))
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = Terms(dict(selector), rule, self._rules.by_type, self._types)
        return made
