"""What the placer answers, as values: where tasks are, who must end, and who lost a claim."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Generic, TypeVar

from pai_backend.model.ids import JobUid, TaskUid, job_of
from pai_backend.model.node import Node, Placement
from pai_backend.scheduling.core.ledger import Ledger
from pai_backend.scheduling.jobs.demand import Party, Sizing
from pai_backend.scheduling.jobs.unit import Unit, Units
from pai_backend.scheduling.queue import Queue
from pai_backend.scheduling.request import Reason, on_cells

Named = TypeVar("Named", bound=str)


class Noted(Generic[Named]):
    """What has changed and is to be told, each once."""

    def __init__(self) -> None:
        self._names: dict[Named, None] = {}

    def note(self, *names: Named) -> None:
        """These may be other ones now."""
        self._names.update(dict.fromkeys(names))

    def take(self) -> list[Named]:
        """All that were noted since the last call."""
        names, self._names = list(self._names), {}
        return names


@dataclass(frozen=True)
class Round:
    """What one pass decided, held from now on: ``started`` have their places, ``kept`` wait for others to end there.

    ``more``: there is more to ask. ``look_again``: when, if nothing happens, cells have to be kept for a group.
    """

    started: tuple[Unit, ...] = ()
    kept: tuple[Unit, ...] = ()
    more: bool = False
    look_again: datetime | None = None


class Lack(StrEnum):
    """Why there is no place. ``kept``: there is one, which is not free yet. ``turn``: it has not been asked yet."""

    CAP = "cap"
    CELLS = "cells"
    KEPT = "kept"
    LINEAR = "linear"
    NEVER = "never"
    PORTS = "ports"
    TURN = "turn"


@dataclass(frozen=True)
class Waits:
    """Not now, and why, in one sentence. ``reason`` has the numbers when it is a matter of cells."""

    lack: Lack
    message: str
    reason: Reason | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Preemption:
    """Running tasks that must make way, and for whom."""

    job: JobUid
    uids: tuple[TaskUid, ...]
    by: str
    priority: int


@dataclass(frozen=True)
class QuotaClaim:
    """A group whose claim on its quota changed: without it, it runs on opportunistically."""

    job: JobUid
    uids: tuple[TaskUid, ...]
    displaced: bool


def places_of(unit: Unit, ledger: Ledger, sizing: Sizing) -> dict[TaskUid, Placement]:
    """Where the unit's tasks are or will be, without ports: those without cells only once all others have theirs.

    Tasks on nodes that are gone are left out.
    """
    found = {uid: place for party in unit.parties for uid, place in _of_party(party, ledger, sizing)}
    for need in unit.loose:
        node = ledger.room.nodes.get(ledger.room.node_of(need.uid) or "")
        if node is not None:
            found[need.uid] = _on(node, on_cells(node.name, (), ""))
    return found


def _of_party(party: Party, ledger: Ledger, sizing: Sizing) -> Iterator[tuple[TaskUid, Placement]]:
    held = ledger.groups[party.name].stored
    assert held is not None
    for ordinal, pod in held.pods.items():
        chain = _chain_of(pod, ledger)
        sku = sizing.skus.get(ledger.chains[chain].leaf_type)
        each = 1 if sku is None else sku.gpu
        need, node = party.needs[ordinal], ledger.room.nodes.get(pod.node)
        devices = [leaf * each + step for leaf in pod.cells for step in range(each)]
        if node is not None:
            yield need.uid, _on(node, pod, chain, tuple(devices[: need.gpus]))


def _on(node: Node, place: Placement, chain: str = "", gpus: tuple[int, ...] = ()) -> Placement:
    """The placement on its node as it is; ports, and an address of its own, are given to it by the controller."""
    given = [gpu for gpu in node.gpus if gpu.index in gpus]
    more = {
        "address": node.address,
        "machine": node.machine,
        "chain": chain,
        "gpus": gpus,
        "gpu_type": given[0].type if given else "",
        "simulated_gpu": any(gpu.simulated for gpu in given),
    }
    return place.model_copy(update=more)


def _chain_of(pod: Placement, ledger: Ledger) -> str:
    """The chain that a pod lies in; another one than was stored when the configuration has changed since."""
    nodes = [node for node in ledger.nodes.get(pod.node, ()) if node.place.keys() >= set(pod.cells)]
    return pod.chain if not nodes or any(node.chain.name == pod.chain for node in nodes) else nodes[0].chain.name


def preemptions_of(queue: Queue, units: Units) -> Iterator[Preemption]:
    """Every running group that must end now for one that keeps its cells; the same until it has ended."""
    for claim in queue.claims.values():
        if claim.held_back:
            continue
        entry = claim.ticket.entry
        for held in sorted(queue.in_the_way(entry), key=lambda other: other.serial):
            uids = units.party(held.group.name).uids
            yield Preemption(job_of(uids[0]), uids, entry.group.name.rpartition("/")[0], entry.group.priority)


def claims_of(groups: Iterable[str], ledger: Ledger, units: Units) -> Iterator[QuotaClaim]:
    """How these groups stand to their quota, as far as they hold cells."""
    for name in groups:
        held = ledger.groups.get(name)
        if held is not None:
            uids = units.party(name).uids
            yield QuotaClaim(job_of(uids[0]), uids, bool(held.displaced_by))
