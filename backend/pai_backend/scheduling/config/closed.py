"""What the taints and cordons of nodes mean for a configuration made from them: notes for who goes on writing it.

A cell type says nothing of taints, so nodes of equal hardware are one chain although some may be meant for others.
"""

from __future__ import annotations

from collections.abc import Iterable

from pai_backend.model.labels import Effect, Taint
from pai_backend.model.node import Node

MOST_NAMED = 8
"""Nodes that a note names; it says how many more there are."""


def notes(nodes: Iterable[Node]) -> list[str]:
    """A sentence for each GPU type whose nodes have taints that keep tasks off, and one for cordoned nodes."""
    every = sorted(nodes, key=lambda node: node.name)
    types = sorted({gpu.type for node in every for gpu in node.gpus})
    found = [note for kind in types for note in _of_type(kind, [node for node in every if _has(node, kind)])]
    cordoned = [node.name for node in every if not node.schedulable]
    if cordoned:
        found.append(f"Cordoned, so that nothing starts there for now: {_named(cordoned)}.")
    return found


def _of_type(kind: str, nodes: list[Node]) -> Iterable[str]:
    by_taints: dict[tuple[Taint, ...], list[str]] = {}
    for node in nodes:
        taints = tuple(taint for taint in node.taints if taint.effect is not Effect.PREFER_NO_SCHEDULE)
        by_taints.setdefault(taints, []).append(node.name)
    if not any(by_taints):
        return
    said = "; ".join(f"{_taints(taints)} on {_named(names)}" for taints, names in by_taints.items())
    if len(by_taints) == 1:
        yield f"{kind}: {said}. Nothing starts there unless cluster.sku_scheduling.{kind} tolerates it."
    else:
        yield (
            f"{kind}: equal hardware with different taints is one type here: {said}. Jobs use the nodes whose taints "
            f"cluster.sku_scheduling.{kind} tolerates; nodes that are meant for others need a type of their own."
        )


def _has(node: Node, kind: str) -> bool:
    return any(gpu.type == kind for gpu in node.gpus)


def _taints(taints: tuple[Taint, ...]) -> str:
    return ", ".join(map(str, taints)) or "none"


def _named(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more
