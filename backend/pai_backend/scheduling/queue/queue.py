"""The queue: who is asked when something changes, in which order, and what becomes of the answer. Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from pai_backend.scheduling.cells.tree import Held
from pai_backend.scheduling.core.decision import Bound, Preempt, Wait
from pai_backend.scheduling.core.ledger import Ledger
from pai_backend.scheduling.core.place import Option, in_the_way
from pai_backend.scheduling.queue.books import Books
from pai_backend.scheduling.queue.entry import (
    CellsOnly,
    Decider,
    Ends,
    Pass,
    Preempting,
    Started,
    Suggest,
    anywhere,
    kind_of,
    lane_of,
    never_known,
)
from pai_backend.scheduling.queue.holdback import Fronts, fits_elsewhere, is_good
from pai_backend.scheduling.queue.index import capacity, kind_at
from pai_backend.scheduling.queue.kind import Claim, Ticket
from pai_backend.scheduling.queue.policy import Policy
from pai_backend.scheduling.request import Entry, WaitCode

MOST_ASKED = 64
"""How many groups one pass asks the cluster about at most; what is left is asked in the next pass."""
ABOUT_NODES = frozenset({WaitCode.NOT_SUGGESTED, WaitCode.BAD_NODES})
"""Reasons that hold for what this entry asks of nodes; entries of the same kind with other needs may still start."""


class Queue(Books):
    """Waiting groups in front of a cluster. Once there is a queue, all changes to the cluster go through it.

    ``suggest`` filters nodes by what is not a cell and is free now, ``could_use`` by what would be if nothing ran
    there; or a ``decider`` knows all that and decides. ``ends`` tells when a running group is expected to end, where
    known.
    """

    def __init__(
        self,
        ledger: Ledger,
        policy: Policy | None = None,
        suggest: Suggest = anywhere,
        could_use: Suggest = anywhere,
        ends: Ends = never_known,
        decider: Decider | None = None,
    ) -> None:
        super().__init__(ledger, policy or Policy(), decider or CellsOnly(ledger, suggest, could_use), ends)
        self._fronts = Fronts(self)

    def advance(self, now: datetime) -> Pass:
        """Start whatever can start, by priority, then by order of submission.

        A group that cannot start now is passed over; later ones may start meanwhile, until it has been overtaken long
        enough (:class:`Patience`). What is decided is applied to the ledger: carry it out, or put it back.
        """
        answer = Pass(upgraded=self.upgrade())
        claims = sorted(self.claims.values(), key=lambda claim: claim.ticket.key, reverse=True)
        while True:
            ticket = self.next()
            if claims and (ticket is None or claims[-1].ticket.key < ticket.key):
                self._serve(claims.pop(), answer)
            elif ticket is None:
                break
            elif answer.asked >= MOST_ASKED:
                answer.more = True
                break
            else:
                self._consider(ticket, answer, now)
        self._fronts.look(answer, now)
        self.version = self.ledger.version
        return answer

    def would_start(self, entry: Entry, now: datetime) -> bool:
        """Whether the entry, were it to wait in place of what has its name, would start at once and at no one's cost.

        Asks the ledger once; changes nothing. Only when nothing is left to be asked (:attr:`Pass.more`).
        """
        if self.gates.blocking(entry) is not None:
            return False
        ticket = self.waiting.get(entry.group.name)
        if ticket is not None and ticket.key < entry.key and self.gates.lets_go_on(ticket):
            return False  # who waits behind it for a cap would be asked before it, and may take the cells
        decision = self.decider.decide(entry)
        if not isinstance(decision, Bound) or decision.displaced or decision.cancelled:
            return False
        return not self._fronts.must_wait(entry, lane_of(entry.group), decision.placement.chain, now)

    def would_be_asked(self, entry: Entry) -> bool:
        """Whether the entry, were it to wait, would be asked about: not if nodes refused its like, and none changed."""
        kind = self.index.kinds.get(kind_of(entry.group, entry.others))
        return kind is None or not kind.sleeps(entry)

    @property
    def is_settled(self) -> bool:
        """Whether everybody who might start has been asked."""
        return self.index.next() is None and self.gates.ready() is None and self.version == self.ledger.version

    def _consider(self, ticket: Ticket, answer: Pass, now: datetime) -> None:
        """Ask for one group, unless it is known what would be answered."""
        kind = kind_at(ticket)
        room = any(kind.least <= capacity(option, kind.key.priority) for option in kind.options)
        if kind.key.shape and (not room or self.failed.covers(kind.key)):
            self.index.answered(kind)
            return
        if self.gates.stop(ticket):
            self.index.touch(kind)
            return
        answer.asked += 1
        decision = self.decider.decide(ticket.entry)
        if isinstance(decision, Wait):
            answer.refused[ticket.entry.group.name] = decision
            if self._is_about_this(ticket.entry, decision):
                assert ticket.line is not None
                self.index.answered_variant(ticket.line.variant)
            else:
                self.index.answered(kind)
                self.failed.add(kind.key)
        elif not self._fronts.keep_before(ticket, decision.placement.chain, answer, now):
            self._carry_out(ticket, decision, answer)

    def _is_about_this(self, entry: Entry, decision: Wait) -> bool:
        """Whether entries of the same kind that ask for something else of nodes may start all the same."""
        if decision.group != entry.group.name:
            return True
        return decision.reason.code in ABOUT_NODES and self.decider.suggest(entry) is not None

    def _carry_out(self, ticket: Ticket, decision: Bound | Preempt, answer: Pass) -> None:
        """Apply a decision for a group that waits."""
        for _, front in self._fronts.overtaken_by(ticket, decision.placement.chain):
            front.overtaken += 1
        kind = kind_at(ticket)
        self.ledger.apply(replace(decision, entry=ticket.entry), final=True)
        following = kind.first()
        if following is not None:
            answer.moved_up[following.entry.group.name] = None
        self._record(ticket.entry, decision, answer)

    def _record(self, entry: Entry, decision: Bound | Preempt, answer: Pass) -> None:
        """An entry has its place, or has it kept; others may have lost theirs to it."""
        placement = decision.placement
        if isinstance(decision, Bound):
            answer.decided.append(Started(entry, placement, decision.displaced))
        else:
            answer.decided.append(Preempting(entry, placement, decision.victims, decision.displaced))
        for name in decision.displaced:
            self.displaced[name] = None
            self.freed(self.ledger.groups[name].group, [placement.chain])
        for name in decision.cancelled:
            lost = self.claim_of(name)
            if lost is not None:
                self.lose(lost)
                answer.returned.append(lost.ticket.entry.group.name)

    # -- groups that have cells kept for them ----------------------------------------------------------------------

    def _serve(self, claim: Claim, answer: Pass) -> None:
        """Start the group if its cells, or others, are free now."""
        name = claim.ticket.entry.group.name
        if self.claims.get(name) is not claim:
            return
        kept = self.held_by(claim.ticket.entry)
        good = all(is_good(held) for held in kept)
        if claim.held_back:
            if not good or self._is_clear(claim, kept, answer) or self._fits_elsewhere(claim, kept):
                # It is asked like all others from here on, and its turn comes before that of any later group.
                self.lose(claim)
                self._fronts.put(claim.lanes[0], claim.ticket)
        elif not good or not any(other.group.name in claim.victims for held in kept for other in in_the_way(held)):
            self._serve_preemptor(claim, answer)

    def _is_clear(self, claim: Claim, kept: list[Held], answer: Pass) -> bool:
        """Whether it may end all groups on the kept cells, and their nodes have what else it needs."""
        if any(other.priority >= held.group.priority for held in kept for other in in_the_way(held)):
            return False
        answer.asked += 1
        return not isinstance(self.decider.decide(claim.ticket.entry), Wait)

    def _serve_preemptor(self, claim: Claim, answer: Pass) -> None:
        """Its victims are gone, or its cells are not good any more."""
        entry = claim.ticket.entry
        answer.asked += 1
        decision = self.decider.decide(entry)
        if isinstance(decision, Wait):
            self.ledger.apply(decision, final=True)
            self.lose(claim)
            answer.returned.append(entry.group.name)
        else:
            self.ledger.apply(replace(decision, entry=entry), final=True)
            self.unstick()
            self._record(entry, decision, answer)

    def _fits_elsewhere(self, claim: Claim, kept_cells: list[Held]) -> bool:
        """Whether a group that cells are kept for could start on others, if some were freed since the last look.

        Of several groups that start together this is not asked: they start where cells are kept for them.
        """
        if not claim.may_fit_elsewhere or len(kept_cells) != 1:
            return False
        claim.may_fit_elsewhere, held = False, kept_cells[0]
        limits = self.ledger.limits(self.decider.suggest(claim.ticket.entry))
        kept = sum((spot.mask & ~(spot.node.guaranteed | spot.node.oppo)).bit_count() for spot in held.spots)
        enough = any(_idle(option) + kept >= claim.least for option in claim.options)
        return enough and fits_elsewhere(self.ledger, held, claim.options, limits)


def _idle(option: Option) -> int:
    """Leaves of a quota that no group uses or reserves."""
    if option.quotas is None:
        return 0
    option.quotas.ranking.settle()
    return sum(free * count for free, count in enumerate(option.quotas.ranking.count))
