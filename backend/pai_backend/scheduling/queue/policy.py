"""What an administrator decides: how much may run at once, and how long a group may be overtaken.

Caps are kept in order: while a group waits for a cap, later groups under the same cap wait behind it. So a large group
comes to its turn under a cap too. A group that exceeds the cap all by itself holds up no other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import NamedTuple

from pai_backend.model.order import Order
from pai_backend.model.vc_rules import KeptRules, LongestRun
from pai_backend.scheduling.cells.journal import Journal
from pai_backend.scheduling.queue.entry import Scope
from pai_backend.scheduling.queue.kind import LazyHeap, Line, Ticket
from pai_backend.scheduling.request import OPPORTUNISTIC, Entry, Key


@dataclass(frozen=True, slots=True)
class Cap:
    """The most that may run at once; None is no limit. ``gpus`` counts leaf cells, ``jobs`` those with a place."""

    tasks: int | None = None
    gpus: int | None = None
    jobs: int | None = None


@dataclass(frozen=True, slots=True)
class VcCaps:
    """Caps inside one virtual cluster: of all together, of each user, and of users for whom another cap holds."""

    total: Cap = Cap()
    user: Cap = Cap()
    users: Mapping[str, Cap] = field(default_factory=dict)
    longest_run: LongestRun | None = None
    """How long an attempt of a job may run; None: until it is done."""


@dataclass(frozen=True, slots=True)
class Patience:
    """When cells are kept for the first group of a lane: after either."""

    overtaken: int = 8
    """Later groups that start while it is first."""
    first_for: timedelta = timedelta(minutes=10)
    """Time for which it is first."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Rules of the queue. ``user`` and ``users`` are caps over all virtual clusters; ``vcs`` those inside one.

    Caps are for groups that use quota: opportunistic groups are exempt, since they use no quota. What a user limits a
    sweep to holds for all groups.
    """

    user: Cap = Cap()
    users: Mapping[str, Cap] = field(default_factory=dict)
    vc: VcCaps = VcCaps()
    """For virtual clusters that are not in ``vcs``."""
    vcs: Mapping[str, VcCaps] = field(default_factory=dict)
    patience: Patience = Patience()
    order: Order = Order.SUBMITTED
    """For virtual clusters that are not in ``orders``."""
    orders: Mapping[str, Order] = field(default_factory=dict)

    def longest_run(self, vc: str) -> LongestRun | None:
        """How long an attempt of a job may run in a virtual cluster; None: until it is done."""
        return self.vcs.get(vc, self.vc).longest_run

    def order_of(self, vc: str) -> Order:
        """The order in a virtual cluster."""
        return self.orders.get(vc, self.order)


def scopes(policy: Policy, entry: Entry) -> Iterator[tuple[Scope, Cap]]:
    """The caps that an entry has to keep."""
    vc, user = entry.vc, entry.user
    if entry.group.priority != OPPORTUNISTIC:
        inside = policy.vcs.get(vc, policy.vc)
        yield Scope(vc, ""), inside.total
        yield Scope(vc, user), inside.users.get(user, inside.user)
        yield Scope("", user), policy.users.get(user, policy.user)
    if entry.sweep and entry.sweep_tasks is not None:
        yield Scope("", user, entry.sweep), Cap(entry.sweep_tasks)


def most_gpus(policy: Policy, vc: str, user: str) -> int | None:
    """The most GPUs that a user may have at once in a virtual cluster, by all caps; None is no limit."""
    inside = policy.vcs.get(vc, policy.vc)
    caps = (inside.total, inside.users.get(user, inside.user), policy.users.get(user, policy.user))
    return min((cap.gpus for cap in caps if cap.gpus is not None), default=None)


def with_rules(policy: Policy, rules: Mapping[str, KeptRules]) -> Policy:
    """The policy of the settings, with the rules of virtual clusters where the settings limit nothing.

    A user for whom the settings have a cap of their own keeps that.
    """
    vcs = dict(policy.vcs)
    for vc, kept in rules.items():
        base, rule = policy.vcs.get(vc, policy.vc), kept.rules
        user = Cap(
            base.user.tasks,
            rule.most_gpus_per_user if base.user.gpus is None else base.user.gpus,
            rule.most_jobs_per_user if base.user.jobs is None else base.user.jobs,
        )
        longest = base.longest_run
        if longest is None and rule.longest_run_s is not None:
            longest = LongestRun(timedelta(seconds=rule.longest_run_s), kept.longest_run_at)
        vcs[vc] = replace(base, user=user, longest_run=longest)
    return replace(policy, vcs=vcs)


@dataclass(slots=True)
class _Used:
    tasks: int = 0
    gpus: int = 0
    parts: dict[str, int] = field(default_factory=dict)
    """By job, how many of its entries run."""


class Excess(NamedTuple):
    """A cap that a group would exceed."""

    scope: Scope
    cap: Cap
    tasks: int
    """Tasks that run in the scope."""
    gpus: int
    jobs: int

    def alone(self, entry: Entry) -> bool:
        """Whether the group exceeds the cap even when nothing runs."""
        cap = self.cap
        return (
            cap.jobs == 0
            or (cap.tasks is not None and entry.pods > cap.tasks)
            or (cap.gpus is not None and entry.leaves > cap.gpus)
        )


class Usage:
    """What runs, by scope. An elastic group counts as fully grown, so that growing cannot exceed a cap."""

    def __init__(self, policy: Policy, journal: Journal | None = None) -> None:
        self.policy = policy
        self._journal = journal or Journal()
        self._used: dict[Scope, _Used] = {}

    def add(self, entry: Entry, sign: int = 1) -> None:
        """The entry starts (1) or has ended (-1)."""
        self._journal.note(self.add, entry, -sign)
        for scope, _ in scopes(self.policy, entry):
            used = self._used.setdefault(scope, _Used())
            used.tasks += sign * entry.pods
            used.gpus += sign * entry.leaves
            used.parts[entry.job] = used.parts.get(entry.job, 0) + sign
            if not used.parts[entry.job]:
                del used.parts[entry.job]
            if not used.tasks:
                del self._used[scope]

    def excess(self, entry: Entry) -> Excess | None:
        """The cap that would be exceeded if the entry started: one that it exceeds all by itself, else the first."""
        found = None
        for scope, cap in scopes(self.policy, entry):
            used = self._used.get(scope, _Used())
            tasks, gpus = used.tasks + entry.pods, used.gpus + entry.leaves
            jobs = len(used.parts) + (entry.job not in used.parts)
            wanted = (tasks, cap.tasks), (gpus, cap.gpus), (jobs, cap.jobs)
            if any(most is not None and number > most for number, most in wanted):
                excess = Excess(scope, cap, used.tasks, used.gpus, len(used.parts))
                if excess.alone(entry):
                    return excess
                found = found or excess
        return found


class Gates:
    """Lines that wait for a cap, by cap."""

    def __init__(self, policy: Policy, journal: Journal) -> None:
        self.policy = policy
        self.usage = Usage(policy, journal)
        self._journal = journal
        self._parked: dict[Scope, LazyHeap[Line]] = {}
        self._loosened: dict[Scope, None] = {}
        """Caps that may have room for the first who waits for them."""
        self._in_order: LazyHeap[Scope] = LazyHeap(
            lambda scope: self._first(scope) if scope in self._loosened else None, journal
        )

    def park(self, line: Line, scope: Scope) -> None:
        """A cap, or an earlier group that waits for it, is in the way of the line."""
        self._journal.set(line, "parked", scope)
        self.changed(line)

    def blocking(self, entry: Entry) -> Scope | None:
        """Whose cap keeps an entry from starting now: it has no room, or an earlier group waits for that cap."""
        excess = self.usage.excess(entry)
        for scope, _ in scopes(self.policy, entry):
            before = self._first(scope)
            if (excess is not None and excess.scope == scope) or (before is not None and before < entry.key):
                return scope
        return None

    def changed(self, line: Line) -> None:
        """The first entry of a line was parked, or of a parked one is another now."""
        if line.parked is not None and line.tickets:
            entry = line.tickets[0].entry
            excess = self.usage.excess(entry)
            if excess is None or not excess.alone(entry):
                self._at(line.parked).push(line)
                self._in_order.push(line.parked)

    def loosen(self, entry: Entry) -> None:
        """An entry has left that ran or waited under its caps: others may go on."""
        for scope, _ in scopes(self.policy, entry):
            if self._first(scope) is None:
                self._journal.drop(self._parked, scope)
                self._journal.drop(self._loosened, scope)
            else:
                self._journal.put(self._loosened, scope, None)
                self._in_order.push(scope)

    def ready(self) -> Line | None:
        """The first line of all that no cap it is parked at keeps from going on; the same until it does.

        Those behind it follow, whatever becomes of it, for as long as their cap has room.
        """
        while (scope := self._in_order.first()) is not None:
            line = self._parked[scope].first()
            assert line is not None
            excess = self.usage.excess(line.tickets[0].entry)
            if excess is None or excess.scope != scope:
                return line
            self._journal.drop(self._loosened, scope)
        return None

    def lets_go_on(self, ticket: Ticket) -> bool:
        """Whether another who waits for the same cap may go on when this one no longer waits."""
        line = ticket.line
        scope = None if line is None else line.parked
        if line is None or scope is None or line.tickets[0] is not ticket or self._first(scope) != ticket.key:
            return False
        behind = line.tickets[1].entry if len(line.tickets) > 1 else None
        line.parked = None
        other = self._parked[scope].first()
        line.parked = scope
        self._parked[scope].push(line)
        if other is not None and (behind is None or other.tickets[0].key < behind.key):
            behind = other.tickets[0].entry
        excess = None if behind is None else self.usage.excess(behind)
        return behind is not None and (excess is None or excess.scope != scope)

    def _at(self, scope: Scope) -> LazyHeap[Line]:
        if scope not in self._parked:
            heap = LazyHeap[Line](lambda line: line.head if line.parked == scope else None, self._journal)
            self._journal.put(self._parked, scope, heap)
        return self._parked[scope]

    def _first(self, scope: Scope) -> Key | None:
        heap = self._parked.get(scope)
        line = heap.first() if heap is not None else None
        return None if line is None else line.head
