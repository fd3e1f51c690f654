"""Parts of a group that must lie within one cell of a type: each such cell is tried as the only place there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pai_backend.scheduling.cells.holding import Holding
from pai_backend.scheduling.cells.tree import Chain, Held, Node, PhysicalCell, Spot, State
from pai_backend.scheduling.core.exact import find
from pai_backend.scheduling.core.search import Limits, Pod, Search
from pai_backend.scheduling.request import OPPORTUNISTIC, Group

MOST_SCOPES = 500
"""Cells tried for one group with constraints of its own, all parts together."""
MakeSearch = Callable[[Sequence[Pod], Limits | None], Search]


@dataclass(slots=True)
class Part:
    """Pods that share a constraint, sorted by size: one cell of type ``within``, or the leaves of ``inside``."""

    pods: list[Pod]
    within: str = ""
    inside: Limits | None = None


def parts_of(group: Group, counts: Sequence[int]) -> list[Part]:
    """A group's pods with ``counts[i]`` pods of member i; constrained members apart, the rest together at the end."""
    parts: list[Part] = []
    rest = Part([])
    first = 0
    for member, count in zip(group.members, counts, strict=True):
        pods = [Pod(first + index, member.leaves) for index in range(count)]
        first += member.pods
        if member.within:
            parts.append(Part(pods, member.within))
        else:
            rest.pods.extend(pods)
    rest.pods.sort(key=lambda pod: pod.leaves)
    parts.sort(key=lambda part: -sum(pod.leaves for pod in part.pods))
    return [part for part in [*parts, rest] if part.pods]


def find_parts(
    holding: Holding, group: Group, within: str, parts: Sequence[Part], search: MakeSearch, limits: Limits | None
) -> dict[int, Spot] | None:
    """Spots for all parts, each within one cell of its type, all in one of type ``within``; None when there is none."""
    if not within and len(parts) == 1 and not parts[0].within:
        return find(search(parts[0].pods, _meet(limits, parts[0].inside)))
    chain = search(parts[0].pods, limits).chain
    return _Scoped(holding, group, chain, search).find(within, parts, limits)


@dataclass(slots=True)
class _Scoped:
    """One search with constraints: a part at a time, the larger first; a choice is taken back when the rest fails."""

    holding: Holding
    group: Group
    chain: Chain
    search: MakeSearch
    tried: int = 0

    def find(self, within: str, parts: Sequence[Part], limits: Limits | None) -> dict[int, Spot] | None:
        """The first of the outer cells in which all parts find a place."""
        need = sum(pod.leaves for part in parts for pod in part.pods)
        for scope in self._scopes(within, limits, need):
            with self.holding.journal.trial(), self.holding.health.later(settle=False):
                spots = self._rest(parts, scope)
            if spots is not None:
                return spots
        return None

    def _rest(self, parts: Sequence[Part], limits: Limits | None) -> dict[int, Spot] | None:
        """Spots for these parts inside ``limits``; inside a trial."""
        if not parts:
            return {}
        part, journal = parts[0], self.holding.journal
        for scope in self._scopes(part.within, _meet(limits, part.inside), sum(pod.leaves for pod in part.pods)):
            spots = find(self.search(part.pods, scope))
            if spots is None:
                continue
            if len(parts) == 1:
                return spots
            mark = journal.mark()
            self._occupy(spots)
            rest = self._rest(parts[1:], limits)
            if rest is not None:
                return spots | rest
            journal.rewind(mark)
        return None

    def _occupy(self, spots: dict[int, Spot]) -> None:
        """Let the leaves look taken to the parts that follow."""
        stand_in = Held(self.group, list(spots.values()), State.PREEMPTING, 0)
        for spot in spots.values():
            if self.group.priority == OPPORTUNISTIC:
                self.holding.run(stand_in, spot)
            else:
                self.holding.reserve(stand_in, spot)

    def _scopes(self, kind: str, limits: Limits | None, need: int) -> Iterator[Limits | None]:
        """The cells of a type as limits, the tightest with enough leaves first; ``limits`` itself without a type."""
        if not kind:
            yield limits
            return
        level = self.chain.level_of.get(kind)
        if level is None:
            return
        rated = []
        for cell in self.chain.at_level(level):
            scope = scope_of(cell, limits)
            room = sum((mask & node.idle()).bit_count() for node, mask in scope.items())
            if sum(mask.bit_count() for mask in scope.values()) >= need:
                rated.append((room < need, room, cell.number, scope))
        rated.sort(key=lambda each: each[:3])
        for *_, scope in rated:
            self.tried += 1
            if self.tried > MOST_SCOPES:
                return
            yield scope


def _meet(limits: Limits | None, others: Limits | None) -> Limits | None:
    """What both allow."""
    if limits is None or others is None:
        return others if limits is None else limits
    return {node: mask & others[node] for node, mask in limits.items() if others.get(node, 0) & mask}


def scope_of(cell: PhysicalCell, limits: Limits | None) -> dict[Node, int]:
    """The nodes and leaves in a cell, as far as ``limits`` allow."""
    if cell.node is not None:
        found = {cell.node: cell.mask}
    else:
        found = {}
        stack = [cell]
        while stack:
            at = stack.pop()
            if isinstance(at, Node):
                found[at] = at.mask
            else:
                stack.extend(reversed(at.children))
    if limits is None:
        return found
    return {node: mask & limits[node] for node, mask in found.items() if limits.get(node, 0) & mask}
