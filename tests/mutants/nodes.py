"""Wrong memories of nodes, each missing something, that the laws must reject: (object, attribute, wrong function)."""

from __future__ import annotations

from collections.abc import Collection

from pai_backend.model.labels import Taint, Toleration
from pai_backend.scheduling.core.room import NodeSets


def _hears_nothing(self: NodeSets[object], name: str) -> None:
    """A node changed, and what was known of it stays."""


def _keeps_the_dead(self: NodeSets[object], name: str) -> None:
    """A node is gone, and is still named."""


def _only_adds(self: NodeSets[object], asked: object, known: object, nodes: Collection[str]) -> None:
    """Sees nodes that have come to suit, and none that no longer do."""
    new = {name for name in nodes if self._true_of(asked, name)}
    known.names = known.names | new  # type: ignore[attr-defined]


def _matches_any_effect(self: Toleration, taint: Taint) -> bool:
    """Looks at key and value alone."""
    return self.key in ("", taint.key) and (self.operator == "Exists" or self.value == taint.value)


MEMORIES: list[tuple[object, str, object]] = [
    (NodeSets, "changed", _hears_nothing),
    (NodeSets, "gone", _keeps_the_dead),
    (NodeSets, "_catch_up", _only_adds),
]
MATCHES: list[tuple[object, str, object]] = [(Toleration, "tolerates", _matches_any_effect)]
