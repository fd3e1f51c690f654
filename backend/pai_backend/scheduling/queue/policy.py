"""What an administrator decides: how much may run at once, and how long a group may be overtaken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import NamedTuple

from pai_backend.scheduling.queue.entry import Entry
from pai_backend.scheduling.request import OPPORTUNISTIC


@dataclass(frozen=True, slots=True)
class Cap:
    """The most that may run at once; None is no limit. ``gpus`` counts leaf cells."""

    tasks: int | None = None
    gpus: int | None = None


@dataclass(frozen=True, slots=True)
class VcCaps:
    """Caps inside one virtual cluster: of all together, of each user, and of users for whom another cap holds."""

    total: Cap = Cap()
    user: Cap = Cap()
    users: Mapping[str, Cap] = field(default_factory=dict)


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

    Caps are for groups that use quota: opportunistic groups are exempt, since they take from nobody.
    """

    user: Cap = Cap()
    users: Mapping[str, Cap] = field(default_factory=dict)
    vc: VcCaps = VcCaps()
    """For virtual clusters that are not in ``vcs``."""
    vcs: Mapping[str, VcCaps] = field(default_factory=dict)
    patience: Patience = Patience()


class Scope(NamedTuple):
    """For whom a cap holds: ``user`` or ``vc`` may be empty, for all."""

    vc: str
    user: str


def scopes(policy: Policy, vc: str, user: str) -> Iterator[tuple[Scope, Cap]]:
    """The caps that a user's groups in a virtual cluster have to keep."""
    inside = policy.vcs.get(vc, policy.vc)
    yield Scope(vc, ""), inside.total
    yield Scope(vc, user), inside.users.get(user, inside.user)
    yield Scope("", user), policy.users.get(user, policy.user)


@dataclass(slots=True)
class _Used:
    tasks: int = 0
    gpus: int = 0


class Excess(NamedTuple):
    """A cap that a group would exceed."""

    scope: Scope
    cap: Cap
    tasks: int
    """Tasks that run in the scope."""
    gpus: int

    def alone(self, entry: Entry) -> bool:
        """Whether the group exceeds the cap even when nothing runs."""
        cap = self.cap
        return (cap.tasks is not None and entry.pods > cap.tasks) or (cap.gpus is not None and entry.leaves > cap.gpus)


class Usage:
    """What runs, by scope. An elastic group counts as fully grown, so that growing cannot exceed a cap."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._used: dict[Scope, _Used] = {}

    def add(self, entry: Entry, sign: int = 1) -> None:
        """The entry starts (1) or has ended (-1)."""
        if entry.group.priority == OPPORTUNISTIC:
            return
        for scope, _ in scopes(self.policy, entry.vc, entry.user):
            used = self._used.setdefault(scope, _Used())
            used.tasks += sign * entry.pods
            used.gpus += sign * entry.leaves
            if not used.tasks:
                del self._used[scope]

    def excess(self, entry: Entry) -> Excess | None:
        """The cap that would be exceeded if the entry started: one that it exceeds all by itself, else the first."""
        if entry.group.priority == OPPORTUNISTIC:
            return None
        found = None
        for scope, cap in scopes(self.policy, entry.vc, entry.user):
            used = self._used.get(scope, _Used())
            tasks, gpus = used.tasks + entry.pods, used.gpus + entry.leaves
            if (cap.tasks is not None and tasks > cap.tasks) or (cap.gpus is not None and gpus > cap.gpus):
                excess = Excess(scope, cap, used.tasks, used.gpus)
                if excess.alone(entry):
                    return excess
                found = found or excess
        return found
