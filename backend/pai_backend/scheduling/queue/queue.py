"""The queue: who is asked when something changes, in which order, and what becomes of the answer. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from pai_backend.scheduling.cells.tree import Held
from pai_backend.scheduling.core.decision import Bound, Decision, Enqueue, Keep, Preempt, Wait
from pai_backend.scheduling.core.ledger import Ledger, Outdated
from pai_backend.scheduling.core.place import Option, in_the_way
from pai_backend.scheduling.core.trees import check_group
from pai_backend.scheduling.queue.booked import Booked, RunSpan, Spans
from pai_backend.scheduling.queue.books import Books, lanes_of
from pai_backend.scheduling.queue.entry import (
    Asked,
    CellsOnly,
    Decider,
    Ends,
    Fronts,
    Lane,
    Parked,
    Pass,
    PassStep,
    Stuck,
    lane_of,
)
from pai_backend.scheduling.queue.holdback import fits_elsewhere, is_good, to_keep_for
from pai_backend.scheduling.queue.index import capacity, kind_at
from pai_backend.scheduling.queue.kind import Claim, Ticket
from pai_backend.scheduling.queue.policy import Policy
from pai_backend.scheduling.request import Entry, Key, Reason, WaitCode

MOST_ASKED = 64
"""How many groups one pass asks the cluster about at most; what is left is asked in the next pass."""
ABOUT_NODES = frozenset({WaitCode.NOT_SUGGESTED, WaitCode.BAD_NODES})
"""Reasons that hold for what this entry asks of nodes; entries of the same kind with other needs may still start."""


class Queue(Books):
    """Waiting groups in front of a cluster. Once there is a queue, all changes to the cluster go through it.

    Without a ``decider`` only cells count. ``ends`` tells when a running group is expected to end, where known, and
    ``spans`` when one began and is stopped at the latest.
    """

    def __init__(
        self,
        ledger: Ledger,
        policy: Policy | None = None,
        ends: Ends = lambda _: None,
        decider: Decider | None = None,
        spans: Spans = lambda _: RunSpan(),
    ) -> None:
        super().__init__(ledger, policy or Policy(), decider or CellsOnly(ledger), ends, spans)

    def advance(self, now: datetime) -> Pass:
        """Start whatever can start, by priority, then by order of submission: decide, and apply it.

        A group that cannot start now is passed over; later ones may start meanwhile, until it has been overtaken long
        enough (:class:`Patience`). Carry out what is decided, or put it back.
        """
        self.turn_to(now)
        upgraded = self.upgrade()
        answer = self.decide(now)
        answer.upgraded = upgraded
        self.apply(answer)
        return answer

    def set_bookings(self, bookings: Sequence[Booked]) -> None:
        """These hold from now on, and no others: who waits is asked again. None is ended."""
        self.catch_up()
        self.bookings.all = tuple(bookings)
        self.forget()

    def turn_to(self, now: datetime) -> bool:
        """A pass begins now: if a booking has begun or ended since the last one, who waits is asked again.

        Whether that is so.
        """
        changed = self.bookings.begins_or_ends(now)
        if changed:
            self.forget()
        return changed

    def decide_entry(self, entry: Entry, now: datetime) -> Decision:
        """A place for the entry that leaves room for what is booked, or why there is none. Changes nothing."""
        decision = self.decider.decide(entry)
        if not self.bookings or isinstance(decision, Wait):
            return decision
        short = self.bookings.in_the_way_of(entry, [decision], now)
        if short is not None and (nodes := self.bookings.nodes_for(entry, now)):
            with self.decider.without(nodes):
                beside = self.decider.decide(entry)
            if not isinstance(beside, Wait) and self.bookings.in_the_way_of(entry, [beside], now) is None:
                decision, short = beside, None
        if short is None:
            return replace(decision, stops_by=self.bookings.stops_by(entry, now))
        most = max((member.leaves for group in entry.groups for member in group.members), default=0)
        reason = Reason(WaitCode.BOOKED, entry.vc, entry.leaves, most, booking=short.booking)
        return Wait(entry.group.name, reason, version=self.ledger.version)

    @property
    def state(self) -> tuple[int, int]:
        """Another one after every change that a decision may depend on."""
        return self.ledger.last, self.changes

    def decide(self, now: datetime) -> Pass:
        """What one pass decides. Changes nothing."""
        self.catch_up()
        answer = Pass(self.state)
        with self.ledger.trial():
            self._go_through(answer, now)
        return answer

    def apply(self, answer: Pass) -> None:
        """Carry out what was decided. Raises Outdated, and changes nothing, when anything has changed since."""
        if answer.made_on != self.state:
            raise Outdated("something has changed since the pass was decided")
        for step in answer.steps:
            self._write(step, Pass())
        self.changes += 1
        self.version = self.ledger.version
        # What a walk has passed and what heaps drop is put back at the end of a trial: do both for good here, as well.
        self.index.next()
        self.gates.ready()
        self._lanes_in_order()

    def _go_through(self, answer: Pass, now: datetime) -> None:
        """Ask for one after the other, as far as a pass goes."""
        claims = sorted(self.claims.values(), key=lambda claim: claim.ticket.key, reverse=True)
        while True:
            ticket = self.next(answer)
            if claims and (ticket is None or claims[-1].ticket.key < ticket.key):
                self._serve(claims.pop(), answer, now)
            elif ticket is None:
                break
            elif answer.asked >= MOST_ASKED:
                answer.more = True
                break
            else:
                self._consider(ticket, answer, now)
        self._look(answer, now)
        moments = (answer.look_again, self.bookings.next_moment(now))
        answer.look_again = min((moment for moment in moments if moment is not None), default=None)

    def would_start(self, entry: Entry, now: datetime) -> bool:
        """Whether the entry, were it to wait in place of what has its name, would start at once and at no one's cost.

        Asks the ledger once; changes nothing. Only when nothing is left to be asked (:attr:`Pass.more`).
        """
        if self.gates.blocking(entry) is not None:
            return False
        ticket = self.waiting.get(entry.group.name)
        if ticket is not None and ticket.key < entry.key and self.gates.lets_go_on(ticket):
            return False  # who waits behind it for a cap would be asked before it, and may take the cells
        decision = self.decide_entry(entry, now)
        if not isinstance(decision, Bound) or decision.displaced or decision.cancelled:
            return False
        before = self._overtaken_by(entry.key, lane_of(entry.group), decision.placement.chain)
        return not any(self._is_due(front, now) for front in before)

    def would_be_asked(self, entry: Entry) -> bool:
        """Whether the entry, were it to wait, would be asked about: not if nodes refused its like, and none changed."""
        kind = self.index.kinds.get(self.kind_of(entry))
        return kind is None or not kind.sleeps(entry)

    @property
    def is_settled(self) -> bool:
        """Whether everybody who might start has been asked."""
        return self.index.next() is None and self.gates.ready() is None and self.version == self.ledger.version

    def next(self, answer: Pass) -> Ticket | None:
        """The first in the order of the queue that is to be asked; again and again until it is answered.

        An entry that waits for a cap with room is asked in its turn, whatever another entry is answered.
        """
        while True:
            ticket, line = self.index.next(), self.gates.ready()
            if line is None or (ticket is not None and ticket.key < line.tickets[0].key):
                return ticket
            self._carry(Parked(line.tickets[0].entry.group.name, None), answer)

    def _consider(self, ticket: Ticket, answer: Pass, now: datetime) -> None:
        """Ask for one group, unless it is known what would be answered."""
        kind, name = kind_at(ticket), ticket.entry.group.name
        room = any(kind.least <= capacity(option, kind.key.priority) for option in kind.options)
        if kind.key.shape and (not room or self.failed.covers(kind.key)):
            self._carry(Asked(name), answer)
            return
        scope = self.gates.blocking(ticket.entry)
        if scope is not None:
            self._carry(Parked(name, scope), answer)
            return
        if self._was_taken(ticket):
            self._carry(Asked(name, by_nodes=True), answer)
            return
        answer.asked += 1
        decision = self.decide_entry(ticket.entry, now)
        if isinstance(decision, Wait):
            self._carry(Asked(name, decision, self._is_about_this(ticket.entry, decision)), answer)
        elif not self._keep_before(ticket, decision.placement.chain, answer, now):
            self._carry(replace(decision, entry=ticket.entry), answer)

    def _was_taken(self, ticket: Ticket) -> bool:
        """Whether others were given what woke its variant."""
        assert ticket.line is not None
        woken_by = ticket.line.variant.woken_by
        return woken_by is not None and not self.decider.may_profit(ticket.entry, woken_by)

    def _is_about_this(self, entry: Entry, decision: Wait) -> bool:
        """Whether entries of the same kind that ask for something else of nodes may start all the same."""
        if decision.group != entry.group.name:
            return True
        if decision.reason.code is WaitCode.BOOKED:
            return True
        return decision.reason.code in ABOUT_NODES and self.decider.suggest(entry) is not None

    # -- writing ---------------------------------------------------------------------------------------------------

    def _carry(self, step: PassStep, answer: Pass) -> None:
        """One more step, on which those that follow rest."""
        self._write(step, answer)
        answer.steps.append(step)

    def _write(self, step: PassStep, answer: Pass) -> None:
        """Apply a step; the answer tells what it means."""
        match step:
            case Bound() | Preempt():
                self._place(step, answer)
            case Keep():
                self.ledger.settle(check_group(self.ledger, step.placement.group))
                self.ledger.apply(replace(step, version=self.ledger.version), final=True)
            case Wait():
                self.ledger.apply(replace(step, version=self.ledger.version), final=True)
            case Enqueue():
                claim = self.claims[step.entry.group.name]
                self.lose(claim)
                if claim.held_back:
                    # It is asked like all others from here on, and its turn comes before that of any later group.
                    self.journal.set(self, "first", {**self.first, claim.lanes[0]: claim.ticket})
                else:
                    answer.returned.append(step.entry.group.name)
            case Asked():
                self._note_answer(step)
            case Parked(name, scope):
                line = self.waiting[name].line
                assert line is not None
                if scope is None:
                    self.index.unpark(line)
                else:
                    self.gates.park(line, scope)
                    self.index.touch(line.variant.kind)
            case Stuck(name):
                kind = kind_at(self.waiting[name])
                self.journal.set(kind, "stuck", True)
                self.journal.set(self, "stuck", [*self.stuck, kind])
            case Fronts(first, seen, at):
                self.journal.set(self, "first", {lane: self.waiting[name] for lane, name in first})
                for name in seen:
                    ticket = self.claims[name].ticket if name in self.claims else self.waiting[name]
                    self.journal.set(ticket, "first_since", ticket.first_since or at)

    def _place(self, decision: Bound | Preempt, answer: Pass) -> None:
        """An entry gets its place, or has it kept; others may lose theirs to it."""
        entry, placement = decision.entry, decision.placement
        assert entry is not None
        claim, ticket = self.claims.get(entry.group.name), self.waiting.get(entry.group.name)
        kind = None
        if claim is not None:
            self.ledger.settle(claim.options)
        elif ticket is not None:
            kind = kind_at(ticket)
            self.ledger.settle(kind.options)
            for front in self._overtaken_by(ticket.key, kind.key.lane, placement.chain):
                self.journal.set(front, "overtaken", front.overtaken + 1)
        self.ledger.apply(replace(decision, version=self.ledger.version), final=True)
        if decision.stops_by is not None and isinstance(decision, Bound):
            self.journal.put(self.promised, entry.group.name, decision.stops_by)
        if claim is not None:
            self.unstick()
        following = None if kind is None else kind.first()
        if following is not None:
            answer.moved_up[following.entry.group.name] = None
        for name in decision.displaced:
            self.journal.put(self.displaced, name, None)
            self.freed(self.ledger.groups[name].group, [placement.chain])
        for name in decision.cancelled:
            lost = self.claim_of(name)
            if lost is not None:
                self.lose(lost)
                answer.returned.append(lost.ticket.entry.group.name)

    def _note_answer(self, asked: Asked) -> None:
        """Do not ask for this again before something is freed that may help."""
        claim = self.claims.get(asked.name)
        if claim is not None:
            self.ledger.settle(claim.options)
            self.journal.set(claim, "may_fit_elsewhere", False)
            return
        ticket = self.waiting[asked.name]
        kind = kind_at(ticket)
        if asked.wait is not None:
            self.ledger.settle(kind.options)
        if asked.by_nodes:
            assert ticket.line is not None
            self.index.answered_variant(ticket.line.variant)
            return
        self.index.answered(kind)
        if asked.wait is not None:
            self.failed.add(kind.key)

    # -- groups that have cells kept for them ----------------------------------------------------------------------

    def _serve(self, claim: Claim, answer: Pass, now: datetime) -> None:
        """Start the group if its cells, or others, are free now."""
        entry = claim.ticket.entry
        if self.claims.get(entry.group.name) is not claim:
            return
        kept = self.held_by(entry)
        good = all(is_good(held) for held in kept)
        if claim.held_back:
            booked = bool(self.bookings) and self.bookings.in_the_way_of(entry, (), now) is not None
            if not good or booked or self._is_clear(claim, kept, answer) or self._fits_elsewhere(claim, kept, answer):
                self._carry(Enqueue(entry), answer)
        elif not good or not any(other.group.name in claim.victims for other in self.in_the_way(entry)):
            # Its victims are gone, or its cells are not good any more.
            answer.asked += 1
            decision = self.decide_entry(entry, now)
            if isinstance(decision, Wait):
                self._carry(decision, answer)
                self._carry(Enqueue(entry), answer)
            else:
                self._carry(replace(decision, entry=entry), answer)

    def _is_clear(self, claim: Claim, kept: list[Held], answer: Pass) -> bool:
        """Whether it may end all groups on the kept cells, and their nodes have what else it needs."""
        if any(other.priority >= held.group.priority for held in kept for other in in_the_way(held)):
            return False
        answer.asked += 1
        return not isinstance(self.decider.decide(claim.ticket.entry), Wait)

    def _fits_elsewhere(self, claim: Claim, kept_cells: list[Held], answer: Pass) -> bool:
        """Whether a group that cells are kept for could start on others, if some were freed since the last look.

        Of several groups that start together this is not asked: they start where cells are kept for them.
        """
        if not claim.may_fit_elsewhere or len(kept_cells) != 1:
            return False
        (held,) = kept_cells
        limits = self.ledger.limits(self.decider.suggest(claim.ticket.entry))
        kept = sum((spot.mask & ~(spot.node.guaranteed | spot.node.oppo)).bit_count() for spot in held.spots)
        enough = any(_idle(option) + kept >= claim.least for option in claim.options)
        fits = enough and fits_elsewhere(self.ledger, held, claim.options, limits)
        self._carry(Asked(claim.ticket.entry.group.name), answer)
        return fits

    # -- the first of each lane ------------------------------------------------------------------------------------

    def _overtaken_by(self, key: Key, lane: Lane, chain: str) -> Iterator[Ticket]:
        """The first of each lane that competes for cells of this chain, where it stands before this key."""
        if chain not in self.ledger.chains:
            return  # it needs no cells
        types = ("", self.ledger.chains[chain].leaf_type)
        for other, front in self.first.items():
            same = other.vc == lane.vc and other.pinned_id == lane.pinned_id
            competes = same and (bool(lane.pinned_id) or other.leaf_type in types)
            if competes and front.line is not None and front.key < key:
                yield front

    def _keep_before(self, ticket: Ticket, chain: str, answer: Pass, now: datetime) -> bool:
        """Whether cells had to be kept for another before this group may start; then it has to be asked again."""
        fronts = list(self._overtaken_by(ticket.key, kind_at(ticket).key.lane, chain))
        return any(self._is_due(front, now) and self._hold_back(front, answer, now) for front in fronts)

    def _look(self, answer: Pass, now: datetime) -> None:
        """Who is first in each lane now, and whether that has been so for too long.

        In the order of the queue: who needs cells of several lanes has its turn in each of them before later ones.
        """
        first: dict[Lane, str] = {}
        seen: dict[str, None] = {}
        kept = {lane for claim in self.claims.values() if claim.held_back for lane in claim.lanes}
        for lane in self._lanes_in_order():
            kinds = self.index.lanes[lane]
            while lane not in kept and (kind := kinds.first()) is not None and self.index.is_answered(kind):
                front = kind.front()
                assert front is not None
                name, since = front.entry.group.name, front.first_since or now
                seen[name] = None
                if not self._is_due(front, now):
                    due = since + self.policy.patience.first_for
                    answer.look_again = min(due, answer.look_again or due)
                    first[lane] = name
                    break
                lanes = lanes_of(front.entry)
                if not kept.isdisjoint(lanes):
                    first[lane] = name
                    kept.update(lanes)
                elif self._hold_back(front, answer, now):
                    kept.update(lanes)
        if first or seen or self.first:
            self._carry(Fronts(tuple(first.items()), tuple(seen), now), answer)

    def _lanes_in_order(self) -> list[Lane]:
        """Lanes by their first group."""
        found = []
        for lane, kinds in self.index.lanes.items():
            kind = kinds.first()
            key = None if kind is None else kind.front_key()
            if key is not None:
                found.append((key, lane))
        return [lane for _, lane in sorted(found)]

    def _is_due(self, front: Ticket, now: datetime) -> bool:
        patience = self.policy.patience
        waited = now - (front.first_since or now) >= patience.first_for
        return waited or front.overtaken >= patience.overtaken

    def _hold_back(self, front: Ticket, answer: Pass, now: datetime) -> bool:
        """Keep cells for the first of a lane, one group a lane; False when that is not possible.

        It counts under its caps from now on, so that no other entry takes its turn there either.
        """
        kind, entry = kind_at(front), front.entry
        lanes = (lane for claim in self.claims.values() if claim.held_back for lane in claim.lanes)
        if kind.stuck or not set(lanes_of(entry)).isdisjoint(lanes):
            return False
        scope = self.gates.blocking(entry)
        if scope is not None:
            self._carry(Parked(entry.group.name, scope), answer)
            return False
        keeps = to_keep_for(self, entry)
        if keeps and self.bookings and self.bookings.in_the_way_of(entry, keeps, now) is not None:
            keeps = None
        for step in [Stuck(entry.group.name)] if keeps is None else keeps:
            self._carry(step, answer)
        return keeps is not None


def _idle(option: Option) -> int:
    """Leaves of a quota that no group uses or reserves."""
    if option.quotas is None:
        return 0
    option.quotas.ranking.settle()
    return sum(free * count for free, count in enumerate(option.quotas.ranking.count))
