"""How groups take, reserve, extend and give up cells, as decided; nothing is searched here."""

from __future__ import annotations

from enum import Enum

from pai_backend.scheduling.cells.tree import Held, State
from pai_backend.scheduling.core.decision import Keep
from pai_backend.scheduling.core.place import displace
from pai_backend.scheduling.core.search import Plan
from pai_backend.scheduling.core.trees import Trees
from pai_backend.scheduling.request import GroupPlace


class Written(Enum):
    """What a decision has changed."""

    NOTHING = 0
    ROOM = 1
    """CPU, memory, ports, or who waits; but no cells."""
    CELLS = 2


class Places(Trees):
    """Writes places of groups to the trees; :class:`~pai_backend.scheduling.core.ledger.Ledger` decides which."""

    def _place(self, placement: GroupPlace, plan: Plan) -> None:
        held = self.groups.get(placement.group.name)
        if held is not None and held.state is State.PREEMPTING:
            if held.spots == [spot for _, spot in sorted(plan.spots.items())]:
                self._advance(held, plan)
                return
            self._cancel(held)
            held = None
        for other in plan.displaced:
            displace(self.holding, self.groups[other.group.name], placement.group.name)
        with self.health.later():
            for other in plan.cancelled:
                self._cancel(self.groups[other.group.name])
            if held is not None:
                self._extend(held, placement, plan)
            else:
                self._hold(placement, plan)

    def _hold(self, placement: GroupPlace, plan: Plan) -> None:
        """Take the plan's leaves: for good, or as a reservation."""
        ordinals = sorted(plan.spots)
        held = self.enroll(placement, [plan.spots[ordinal] for ordinal in ordinals], ordinals)
        if not plan.evicted:
            for spot in held.spots:
                self.holding.run(held, spot)
            return
        held.state = State.PREEMPTING
        for spot in held.spots:
            self.holding.reserve(held, spot)
        for victim in plan.evicted:
            self.pursue(held, self.groups[victim.group.name])

    def _keep(self, decision: Keep) -> None:
        """Reserve the leaves as a preemptor does, except that no group is asked to end."""
        group, plan = decision.placement.group, decision.plan
        held = self.groups.get(group.name)
        if held is not None:
            if held.stored is not None and held.stored.cells == decision.placement.cells:
                return
            self._release(group.name)
        ordinals = sorted(plan.spots)
        held = self.enroll(decision.placement, [plan.spots[ordinal] for ordinal in ordinals], ordinals)
        held.state = State.PREEMPTING
        for spot in held.spots:
            self.holding.reserve(held, spot)

    def _extend(self, held: Held, placement: GroupPlace, plan: Plan) -> None:
        """Give a running group the pods it did not have."""
        have = set(held.ordinals)
        new = {ordinal: spot for ordinal, spot in sorted(plan.spots.items()) if ordinal not in have}
        self.journal.set(held, "stored", placement)
        self.journal.set(held, "ordinals", [*held.ordinals, *new])
        self.journal.set(held, "spots", [*held.spots, *new.values()])
        for spot in new.values():
            self.holding.run(held, spot)

    def _advance(self, held: Held, plan: Plan) -> None:
        """A reservation whose victims are gone becomes a place."""
        if plan.evicted:
            return
        for spot in held.spots:
            self.holding.confirm(held, spot)
        self.journal.set(held, "state", State.ALLOCATED)

    def _cancel(self, held: Held) -> None:
        """Give up a reservation; victims without another preemptor are safe again."""
        for spot in held.spots:
            self.holding.cancel(held, spot)
        self.strike(held)
        for other in held.victims:
            if held in other.pursuers:
                self.journal.set(other, "pursuers", {each: None for each in other.pursuers if each is not held})
                if not other.pursuers:
                    self.journal.set(other, "state", State.ALLOCATED)

    def _release(self, name: str) -> Written:
        held = self.groups.get(name)
        if held is None:
            return Written.NOTHING
        if held.state is State.PREEMPTING:
            self._cancel(held)
            return Written.CELLS
        self.strike(held)
        for spot in held.spots:
            self.holding.stop(held, spot)
        return Written.CELLS
