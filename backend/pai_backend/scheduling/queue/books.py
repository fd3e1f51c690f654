"""What the queue derives from the ledger, and what follows when something comes, goes or changes."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from pai_backend.model.errors import Fault, InvalidParameters, PaiError
from pai_backend.model.text import Text
from pai_backend.scheduling.cells.tree import Held
from pai_backend.scheduling.core.decision import Dequeue, Enqueue, EntryState, Stage
from pai_backend.scheduling.core.ledger import Ledger
from pai_backend.scheduling.core.place import Option, in_the_way
from pai_backend.scheduling.core.trees import check_group
from pai_backend.scheduling.queue.booked import QueueBookings, Spans
from pai_backend.scheduling.queue.entry import Decider, Ends, KindKey, Lane, kind_of, lane_of, line_of
from pai_backend.scheduling.queue.index import Failed, Index, Owner, kind_at
from pai_backend.scheduling.queue.kind import Claim, Kind, Ticket
from pai_backend.scheduling.queue.policy import Gates, Policy
from pai_backend.scheduling.request import OPPORTUNISTIC, Entry, Group, Key

ANY_NODE = ""
"""Stands among chains for nodes without cells."""


class Books:
    """Tables of a queue, all of which follow the entries of the ledger, which has one queue: the one made last.

    :class:`~pai_backend.scheduling.queue.queue.Queue` decides on top of it.
    """

    def __init__(self, ledger: Ledger, policy: Policy, decider: Decider, ends: Ends, spans: Spans) -> None:
        self.ledger = ledger
        self.journal = ledger.journal
        self.policy = policy
        self.decider = decider
        self.ends = ends
        self.bookings = QueueBookings(self, spans)
        self.promised: dict[str, datetime] = {}
        """When entries that run have to have ended, since they started only because GPUs are booked from then on."""
        self.waiting: dict[str, Ticket] = {}
        """Groups that wait and have nothing, by name."""
        self.claims: dict[str, Claim] = {}
        """Groups that wait and have cells kept for them, by name."""
        self.running: dict[str, Entry] = {}
        self.order: dict[str, list[Key]] = {}
        """Keys of those in :attr:`waiting`, sorted, by the queue they stand in: a virtual cluster's, or ""."""
        self.failed = Failed(self.journal)
        self.index = Index(self.failed, self.journal, self.decider.may_profit)
        self.gates = Gates(self.policy, self.journal)
        self.first: dict[Lane, Ticket] = {}
        """Who was first in each lane at the end of the last pass; opportunistic groups have none to be first in."""
        self.changes = 0
        """How often nodes have changed, or a pass was applied."""
        self.stuck: list[Kind] = []
        self.displaced = _displaced(ledger)
        """Lazily preempted groups that run on."""
        self.version, self._chains = ledger.version, ledger.chains
        ledger.entries.follower = self._follow
        for state in ledger.entries:
            self._follow(None, state)

    # -- entering and leaving --------------------------------------------------------------------------------------

    def add(self, entry: Entry) -> None:
        """The group waits from now on.

        Raises InvalidParameters or NoVirtualCluster when it can never be right, or its name is in use.
        """
        if self.entry(entry.group.name) is not None:
            message = Text("there is a group {group} already", group=entry.group.name)
            raise InvalidParameters(
                message, errors=[Fault(path="$.name", message=message)], hint=Text("Give another name.")
            )
        self.check(entry)
        self.line_up(entry)

    def check(self, entry: Entry) -> None:
        """Raise InvalidParameters or NoVirtualCluster when the entry can never start as the cluster is."""
        for group in entry.groups:
            check_group(self.ledger, group)

    def line_up(self, entry: Entry) -> None:
        """As :meth:`add`, also of an entry for which there is no place as the cluster is now: it waits for another."""
        self.catch_up()
        self.ledger.apply(Enqueue(entry), final=True)

    def adopt(self, entry: Entry) -> None:
        """The group runs already, as the store says; perhaps under another virtual cluster than before."""
        self.ledger.set_entry(EntryState(entry, Stage.RUNNING))

    def adopt_preemptor(self, entry: Entry) -> None:
        """The group has a place kept already, which was reserved again after a restart, and waits for its victims."""
        victims = frozenset(other.group.name for other in self.in_the_way(entry))
        self.ledger.set_entry(EntryState(entry, Stage.KEPT, victims))

    def entry(self, name: str) -> Entry | None:
        """What is known of a group that waits or runs."""
        state = self.ledger.entries.get(name)
        return None if state is None else state.entry

    def release(self, name: str) -> None:
        """All of a running group's tasks have ended, or a waiting one is given up. Idempotent."""
        self.catch_up()
        if name in self.claims:
            self._free_claim(self.claims[name])
        elif name not in self.waiting:
            self._free_running(name)
        self.ledger.apply(Dequeue(name), final=True)
        self.version = self.ledger.version

    def put_back(self, name: str) -> None:
        """A start could not be carried out: the group waits again, where it stood. Raises KeyError for others."""
        entry = self.running[name]
        self.catch_up()
        self._free_running(name)
        self.ledger.apply(Enqueue(entry), final=True)
        self.version = self.ledger.version

    def defer(self, name: str) -> None:
        """As :meth:`put_back`, and do not ask again before nodes or cells change: a node there lacks something else."""
        self.put_back(name)
        line = self.waiting[name].line
        if line is not None:
            self.index.answered_variant(line.variant)

    # -- what changed outside --------------------------------------------------------------------------------------

    def nodes_changed(self, names: Iterable[str] | None = None) -> None:
        """Some nodes, or these, have more to give besides cells: CPU, memory, a port, a label."""
        self.changes += 1
        changed = None if names is None else frozenset(names)
        if changed is None:
            chains = [*self.ledger.chains]
        else:
            chains = [node.chain.name for name in changed for node in self.ledger.nodes.get(name, ())]
        for chain in sorted({*chains, ANY_NODE}):
            # Where GPUs are booked, they may lie on these nodes from now on, and leave others to who waits.
            self.index.nodes_changed(chain, None if self.bookings else changed)

    def set_node_health(self, name: str, *, healthy: bool, bad_devices: Collection[int] = ()) -> None:
        """See :meth:`Cluster.set_node_health`."""
        self.catch_up()
        self.ledger.set_node_health(name, healthy=healthy, bad_devices=bad_devices)
        if self.version == self.ledger.version:
            return
        self.unstick()
        self.failed.clear()
        for claim in self.claims.values():
            self.journal.set(claim, "may_fit_elsewhere", True)
        for node in self.ledger.nodes.get(name, ()):
            self.index.chain_changed(node.chain.name)
        self.version = self.ledger.version

    def catch_up(self) -> None:
        """Nothing remembered is good when others changed the cluster; a new configuration has new chains, too."""
        if self._chains is not self.ledger.chains:
            self._rebuild()
        elif self.version != self.ledger.version:
            self.displaced = _displaced(self.ledger)
            self.unstick()
            self.failed.clear()
            for claim in [*self.claims.values()]:
                if any(group.name not in self.ledger.groups for group in claim.ticket.entry.groups):
                    self.lose(claim)
            for chain in self.ledger.chains:
                self.index.chain_changed(chain)
        self.version = self.ledger.version

    def _rebuild(self) -> None:
        """Another configuration: reservations are gone, and all entries are sorted in again."""
        self._chains = self.ledger.chains
        self.displaced = _displaced(self.ledger)
        self.forget()
        for claim in sorted(self.claims.values(), key=lambda each: each.ticket.key):
            self.ledger.apply(Enqueue(claim.ticket.entry), final=True)

    def forget(self) -> None:
        """Forget who has been asked: all are asked again, with the same result as long as nothing has changed."""
        tickets, usage = self.waiting.values(), self.gates.usage
        self.failed.clear()
        self.index, self.gates = (
            Index(self.failed, self.journal, self.decider.may_profit),
            Gates(self.policy, self.journal),
        )
        self.gates.usage = usage
        self.order, self.waiting, self.stuck = {}, {}, []
        for ticket in sorted(tickets, key=lambda each: each.key):
            self._enter(ticket)

    def set_policy(self, policy: Policy) -> None:
        """Other caps hold from now on: what runs is counted again, and who waits is asked again. None is ended."""
        self.policy = policy
        self.gates = Gates(policy, self.journal)
        for state in self.ledger.entries:
            if state.stage is not Stage.WAITING:
                self.gates.usage.add(state.entry)
        self.forget()

    def upgrade(self) -> tuple[str, ...]:
        """Give lazily preempted groups their quota back where there is room, and nothing is booked; answers which."""
        self.catch_up()
        names = self.ledger.upgrade(self.bookings.in_cells) if self.displaced else ()
        for name in names:
            self.displaced.pop(name, None)
        self.version = self.ledger.version
        return names

    def lose(self, claim: Claim) -> None:
        """A reservation is gone: the group waits like others again, where it stood."""
        self._free_claim(claim)
        self.ledger.apply(Enqueue(claim.ticket.entry), final=True)

    def _free_claim(self, claim: Claim) -> None:
        """Free kept cells, as far as they are still kept."""
        entry = claim.ticket.entry
        self.unstick()
        for group in entry.groups:
            self.ledger.release(group.name)
            self.freed(group, [option.chain.name for option in self._options(group)])
        self.gates.loosen(entry)

    def claim_of(self, group: str) -> Claim | None:
        """The claim that a group which has cells kept belongs to."""
        if group in self.claims:
            return self.claims[group]
        every = self.claims.values()
        return next((claim for claim in every if any(each.name == group for each in claim.ticket.entry.others)), None)

    def held_by(self, entry: Entry) -> list[Held]:
        """The cells of an entry's groups that have some."""
        return [self.ledger.groups[group.name] for group in entry.groups if group.name in self.ledger.groups]

    def in_the_way(self, entry: Entry) -> dict[Held, None]:
        """Who still runs on cells that are kept for an entry."""
        return {other: None for held in self.held_by(entry) for other in in_the_way(held)}

    def _free_running(self, name: str) -> None:
        """Free what a running entry holds."""
        entry = self.running.get(name)
        self._end([name] if entry is None else [group.name for group in entry.groups])
        if entry is not None:
            self.gates.loosen(entry)

    # -- the books -------------------------------------------------------------------------------------------------

    def _follow(self, before: EntryState | None, after: EntryState | None) -> None:
        """Update all tables after a change of an entry in the ledger."""
        state = after or before
        assert state is not None
        name = state.entry.group.name
        was, now = before and before.stage, after and after.stage
        ticket = self._ticket(name, state.entry)
        lasting = None if was is not now else self.claims.get(name)
        if after is not None and now is Stage.KEPT:
            claim = lasting or self._claim(ticket, held_back=after.held_back)
            self.journal.set(claim, "victims", after.victims)
        if was is Stage.WAITING:
            self._leave(ticket)
        elif was is Stage.KEPT and lasting is None:
            self.journal.set(self, "claims", {each: claim for each, claim in self.claims.items() if each != name})
        elif was is Stage.RUNNING and now is not was:
            self.journal.drop(self.running, name)
            self.journal.drop(self.promised, name)
        for each, sign in ((before, -1), (after, 1)):
            if each is not None and each.stage is not Stage.WAITING:
                self.gates.usage.add(each.entry, sign)
        if after is not None and now is Stage.RUNNING:
            self.journal.put(self.running, name, after.entry)
        elif now is Stage.KEPT:
            self.journal.set(self, "claims", {**self.claims, name: claim})
        elif now is Stage.WAITING:
            self._enter(ticket)

    def _ticket(self, name: str, entry: Entry) -> Ticket:
        """The ticket of an entry that waits, cells kept for it or not; a new one for others."""
        if name in self.claims:
            return self.claims[name].ticket
        return self.waiting.get(name) or Ticket(entry, entry.key)

    def _claim(self, ticket: Ticket, *, held_back: bool) -> Claim:
        """What is remembered of an entry from now on that has cells kept."""
        entry = ticket.entry
        kind = kind_at(ticket) if ticket.line else self._kind(entry)
        return Claim(ticket, lanes_of(entry), list(kind.options), kind.least, held_back)

    def _kind(self, entry: Entry) -> Kind:
        return Kind(self.kind_of(entry), self._options(entry.group), self.journal)

    def kind_of(self, entry: Entry) -> KindKey:
        """What entries have in common that are answered alike."""
        return kind_of(entry.group, entry.others, self.bookings.kind(entry) if self.bookings else ())

    def _enter(self, ticket: Ticket) -> None:
        """A group waits. One that a changed configuration has no place for has no line, and is not asked about."""
        entry, group = ticket.entry, ticket.entry.group
        self.journal.put(self.waiting, group.name, ticket)
        keys = self.order.setdefault(line_of(group), [])
        insort(keys, ticket.key)
        self.journal.note(_take_out, keys, ticket.key)
        self.journal.set(ticket, "line", None)
        try:
            options = {each.name: check_group(self.ledger, each) for each in entry.groups}
        except PaiError:
            return
        chains = dict.fromkeys(option.chain.name for each in options.values() for option in each)
        if entry.loose:
            chains[ANY_NODE] = None
        kind = self.kind_of(entry)
        line = self.index.add(ticket, kind, options[group.name] if group.members else [], tuple(chains))
        if line.parked is not None and line.tickets[0] is ticket:
            # It was parked for the one that was first, behind others who come after this one now.
            self.gates.loosen(entry)
            self.index.unpark(line)

    def _options(self, group: Group) -> list[Option]:
        """The chains that a group may use; none when the configuration has no place for it."""
        try:
            return check_group(self.ledger, group)
        except PaiError:
            return []

    def _leave(self, ticket: Ticket) -> None:
        """It no longer waits."""
        self.journal.drop(self.waiting, ticket.entry.group.name)
        keys = self.order[line_of(ticket.entry.group)]
        _take_out(keys, ticket.key)
        self.journal.note(insort, keys, ticket.key)
        line = ticket.line
        if line is not None:
            self.index.remove(ticket)
            self.gates.changed(line)
            self.gates.loosen(ticket.entry)

    def part_ended(self, group: str) -> None:
        """One group of an entry that runs on has ended."""
        self.catch_up()
        self._end([group])
        self.version = self.ledger.version

    def _end(self, groups: Iterable[str]) -> None:
        for name in groups:
            held = self.ledger.groups.get(name)
            if held is None:
                continue
            chains = list(dict.fromkeys(spot.node.chain.name for spot in held.spots))
            nodes = frozenset(spot.node.name for spot in held.spots)
            self.ledger.release(name)
            self.journal.drop(self.displaced, name)
            self.freed(held.group, chains, nodes)

    def freed(self, group: Group, chains: Sequence[str], nodes: frozenset[str] | None = None) -> None:
        """Cells in these chains, of these nodes if they are known, became free: wake who may profit.

        While all nodes are well, what a virtual cluster gives back helps no other: each has its own. On bad nodes that
        is not so, and neither for those who wait for something that a node has besides cells.
        """
        self.failed.clear()
        if self.bookings.in_cells(group.vc):
            nodes = None  # what is booked may move there, and another entry to where it was
        broken = any(self.ledger.chains[name].broken for name in chains)
        for claim in self.claims.values():
            if broken or claim.lanes[0].vc == group.vc:
                self.journal.set(claim, "may_fit_elsewhere", True)
        for name in chains:
            if self.ledger.chains[name].broken:
                self.index.chain_changed(name)
                continue
            if group.priority != OPPORTUNISTIC:
                self.index.freed(Owner(group.vc, name, group.pinned_id))
            self.index.freed(Owner("", name, ""))
            self.index.nodes_changed(name, nodes)
        self.index.nodes_changed(ANY_NODE, nodes)

    def unstick(self) -> None:
        """Cells can perhaps be kept for those again for whom it was not possible."""
        for kind in self.stuck:
            self.journal.set(kind, "stuck", False)
            if self.index.kinds.get(kind.key) is kind:
                self.index.touch(kind)
        self.journal.set(self, "stuck", [])


def lanes_of(entry: Entry) -> tuple[Lane, ...]:
    """The lanes in which an entry needs cells."""
    return tuple(dict.fromkeys(lane_of(group) for group in entry.groups))


def _take_out(keys: list[Key], key: Key) -> None:
    del keys[bisect_left(keys, key)]


def _displaced(ledger: Ledger) -> dict[str, None]:
    return dict.fromkeys(held.group.name for held in ledger.groups.values() if held.displaced_by)


def standing(books: Books, entry: Entry) -> tuple[int, int]:
    """Its place, from 1, and how many wait there, itself included."""
    line = line_of(entry.group)
    keys = books.order.get(line, [])
    claims = [claim.ticket.key for claim in books.claims.values() if line_of(claim.ticket.entry.group) == line]
    return bisect_left(keys, entry.key) + sum(key < entry.key for key in claims) + 1, len(keys) + len(claims)


def first_waiting(books: Books, entry: Entry, most: int) -> list[Ticket]:
    """Who of the first in the same queue waits for cells: not for a cap, and with none kept for them; in order."""
    tickets = [books.waiting[name] for *_, name in books.order.get(line_of(entry.group), [])[:most]]
    return [ticket for ticket in tickets if ticket.line is not None and ticket.line.parked is None]
