"""What the queue keeps track of, and what follows when something comes, goes or changes."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Sequence

from pai_backend.model.errors import Fault, InvalidParameters, PaiError
from pai_backend.scheduling.core.cluster import Cluster
from pai_backend.scheduling.core.group import OPPORTUNISTIC, Group
from pai_backend.scheduling.core.request import check_group
from pai_backend.scheduling.queue.claims import Claim
from pai_backend.scheduling.queue.entry import Entry, Key, Ticket, kind_of, line_of
from pai_backend.scheduling.queue.failed import Failed
from pai_backend.scheduling.queue.gates import Gates
from pai_backend.scheduling.queue.holdback import Ends
from pai_backend.scheduling.queue.index import Index, Owner
from pai_backend.scheduling.queue.kind import Kind
from pai_backend.scheduling.queue.policy import Policy

Suggest = Callable[[Entry], Collection[str] | None]
"""The nodes that have what an entry needs besides cells; None is all. Equal needs must get equal answers."""


def anywhere(entry: Entry) -> None:
    """A :data:`Suggest` for when only cells count."""


class Books:
    """State of a queue; :class:`~pai_backend.scheduling.queue.queue.Queue` decides on top of it."""

    def __init__(self, cluster: Cluster, policy: Policy, suggest: Suggest, could_use: Suggest, ends: Ends) -> None:
        self.cluster = cluster
        self.policy = policy
        self.suggest = suggest
        self.could_use = could_use
        self.ends = ends
        self.waiting: dict[str, Ticket] = {}
        """Groups that wait and have nothing, by name."""
        self.claims: dict[str, Claim] = {}
        """Groups that wait and have cells kept for them, by name."""
        self.running: dict[str, Entry] = {}
        self.order: dict[str, list[Key]] = {}
        """Keys of those in :attr:`waiting`, sorted, by the queue they stand in: a virtual cluster's, or ""."""
        self.failed = Failed()
        self.index = Index(self.failed)
        self.gates = Gates(self.policy)
        self.stuck: list[Kind] = []
        self.displaced = _displaced(cluster)
        """Lazily preempted groups that run on."""
        self.version, self._chains = cluster.version, cluster.chains

    # -- entering and leaving --------------------------------------------------------------------------------------

    def add(self, entry: Entry) -> None:
        """The group waits from now on.

        Raises InvalidParameters or NoVirtualCluster when it can never be right, or its name is in use.
        """
        if self.entry(entry.group.name) is not None:
            message = f"there is a group {entry.group.name} already"
            raise InvalidParameters(message, errors=[Fault(path="$.name", message=message)], hint="Give another name.")
        check_group(self.cluster, entry.group)
        self.catch_up()
        self.enter(Ticket(entry, entry.key))

    def adopt(self, entry: Entry) -> None:
        """The group runs already: its place was restored into the cluster after a restart."""
        self.running[entry.group.name] = entry
        self.gates.usage.add(entry)

    def entry(self, name: str) -> Entry | None:
        """What is known of a group that waits or runs."""
        if name in self.waiting:
            return self.waiting[name].entry
        if name in self.claims:
            return self.claims[name].ticket.entry
        return self.running.get(name)

    def release(self, name: str) -> None:
        """All of a running group's tasks have ended, or a waiting one is given up. Idempotent."""
        self.catch_up()
        if name in self.waiting:
            self.leave(self.waiting[name])
        elif name in self.claims:
            self.drop(self.claims[name])
        else:
            self.ended(name)
            entry = self.running.pop(name, None)
            if entry is not None:
                self.gates.usage.add(entry, -1)
                self.open(entry)
        self.version = self.cluster.version

    def put_back(self, name: str) -> None:
        """A start could not be carried out: the group waits again, where it stood. Raises KeyError for others."""
        entry = self.running[name]
        self.release(name)
        self.enter(Ticket(entry, entry.key))

    def set_aside(self, name: str) -> None:
        """As :meth:`put_back`, and do not ask again before nodes or cells change: a node there lacks something else."""
        self.put_back(name)
        line = self.waiting[name].line
        if line is not None:
            self.index.answered_variant(line.variant)

    # -- what changed outside --------------------------------------------------------------------------------------

    def nodes_changed(self) -> None:
        """Some nodes have more to give besides cells: CPU, memory, a port, a label."""
        for chain in self.cluster.chains:
            self.index.nodes_changed(chain)

    def set_node_health(self, name: str, *, healthy: bool, bad_devices: Collection[int] = ()) -> None:
        """See :meth:`Cluster.set_node_health`."""
        self.catch_up()
        self.cluster.set_node_health(name, healthy=healthy, bad_devices=bad_devices)
        self.unstick()
        self.failed.clear()
        for claim in self.claims.values():
            claim.stirred = True
        for node in self.cluster.nodes.get(name, ()):
            self.index.chain_changed(node.chain.name)
        self.version = self.cluster.version

    def catch_up(self) -> None:
        """Nothing remembered is good when others changed the cluster; a new configuration has new chains, too."""
        if self._chains is not self.cluster.chains:
            self._rebuild()
        elif self.version != self.cluster.version:
            self.displaced = _displaced(self.cluster)
            self.unstick()
            self.failed.clear()
            for claim in [
                each for each in self.claims.values() if each.ticket.entry.group.name not in self.cluster.groups
            ]:
                self.lose(claim)
            for chain in self.cluster.chains:
                self.index.chain_changed(chain)
        self.version = self.cluster.version

    def _rebuild(self) -> None:
        """Another configuration: reservations are gone, and everybody is sorted in anew."""
        tickets = [*self.waiting.values(), *(claim.ticket for claim in self.claims.values())]
        for claim in self.claims.values():
            self.gates.usage.add(claim.ticket.entry, -1)
        self.index, usage = Index(self.failed), self.gates.usage
        self.gates = Gates(self.policy)
        self.gates.usage = usage
        self.failed.clear()
        self.order.clear()
        self.waiting, self.claims, self.stuck = {}, {}, []
        self._chains = self.cluster.chains
        self.displaced = _displaced(self.cluster)
        for ticket in sorted(tickets, key=lambda each: each.key):
            self.enter(ticket)

    def lose(self, claim: Claim) -> None:
        """A reservation is gone: the group waits like others again, where it stood."""
        name = claim.ticket.entry.group.name
        del self.claims[name]
        self.gates.usage.add(claim.ticket.entry, -1)
        self.unstick()
        self.enter(claim.ticket)
        self.open(claim.ticket.entry)
        self.freed(claim.ticket.entry.group, [option.chain.name for option in claim.options])

    def drop(self, claim: Claim) -> None:
        """Give a reservation up."""
        entry = claim.ticket.entry
        del self.claims[entry.group.name]
        self.gates.usage.add(entry, -1)
        self.unstick()
        self.cluster.release(entry.group.name)
        self.freed(entry.group, [option.chain.name for option in claim.options])
        self.open(entry)

    # -- the books -------------------------------------------------------------------------------------------------

    def enter(self, ticket: Ticket) -> None:
        """A group waits. One that a changed configuration has no place for has no line, and is not asked about."""
        group = ticket.entry.group
        self.waiting[group.name] = ticket
        insort(self.order.setdefault(line_of(group), []), ticket.key)
        ticket.line = None
        try:
            options = check_group(self.cluster, group)
        except PaiError:
            return
        self.index.add(ticket, kind_of(group), options)

    def leave(self, ticket: Ticket) -> None:
        """It waits no more."""
        del self.waiting[ticket.entry.group.name]
        keys = self.order[line_of(ticket.entry.group)]
        del keys[bisect_left(keys, ticket.key)]
        line = ticket.line
        if line is not None:
            self.index.remove(ticket)
            self.gates.changed(line)
            self.open(ticket.entry)

    def nodes_for(self, entry: Entry) -> Collection[str] | None:
        """The nodes that an entry may use now; None is all."""
        return None if entry.group.ignore_suggested else self.suggest(entry)

    def open(self, entry: Entry) -> None:
        """Let the first of those go on who wait for a cap that concerns this entry, if it has room."""
        for line in self.gates.opened(entry):
            self.index.unpark(line)

    def ended(self, name: str) -> None:
        """A running group has ended."""
        held = self.cluster.groups.get(name)
        if held is None:
            return
        chains = list(dict.fromkeys(spot.node.chain.name for spot in held.spots))
        self.cluster.release(name)
        self.displaced.pop(name, None)
        self.freed(held.group, chains)

    def freed(self, group: Group, chains: Sequence[str]) -> None:
        """Cells in these chains became free: wake who may profit.

        While all nodes are well, what a virtual cluster gives back helps no other: each has its own. On bad nodes that
        is not so, and neither for those who wait for something that a node has besides cells.
        """
        self.failed.clear()
        broken = any(self.cluster.chains[name].broken for name in chains)
        for claim in self.claims.values():
            claim.stirred = claim.stirred or broken or claim.lane.vc == group.vc
        for name in chains:
            if self.cluster.chains[name].broken:
                self.index.chain_changed(name)
                continue
            if group.priority != OPPORTUNISTIC:
                self.index.freed(Owner(group.vc, name, group.pinned_id))
            self.index.freed(Owner("", name, ""))
            self.index.nodes_changed(name)

    def unstick(self) -> None:
        """Cells can perhaps be kept for those again for whom it was not possible."""
        for kind in self.stuck:
            kind.stuck = False
            if self.index.kinds.get(kind.key) is kind:
                self.index.touch(kind)
        self.stuck.clear()


def _displaced(cluster: Cluster) -> dict[str, None]:
    return dict.fromkeys(held.group.name for held in cluster.groups.values() if held.displaced_by)
