"""From free room to placements: try the tasks, choose their ports, make sure that they are free.

The placer and the set of leased ports are this controller's memory of what is stored; both are rebuilt
from the store by ``recovery``.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pai_backend.access.ports import NoPort, PortRange, choose, fits
from pai_backend.engine.base import Engine
from pai_backend.model.ids import TaskUid
from pai_backend.model.job import Job, Task
from pai_backend.model.node import Node, Placement
from pai_backend.scheduling.base import Ask, Assignment, Placer, Wait, WaitCode
from pai_backend.store.base import PortLease, slot_of

PROBES = 8
"""How often ports found busy by the probe are chosen anew before the job waits for the next round."""


LastPlaces = Mapping[str, Placement | None]
"""Slot -> where its last run was, whose ports are used again on the same machine; None when they must not be."""


@dataclass(frozen=True)
class Decision:
    """Placements of tasks of one job with the ports that must be leased and given back for them."""

    placements: dict[TaskUid, Placement]
    lease: tuple[PortLease, ...] = ()
    release: tuple[str, ...] = ()


@dataclass
class Ports:
    """What is leased, by machine and by owner."""

    by_machine: dict[str, dict[int, str]] = field(default_factory=dict)

    def reset(self, leases: Iterable[PortLease]) -> None:
        """Take over what the store says."""
        self.by_machine.clear()
        self.add(leases)

    def add(self, leases: Iterable[PortLease]) -> None:
        """Remember leases."""
        for lease in leases:
            self.by_machine.setdefault(lease.machine, {})[lease.port] = lease.owner

    def drop(self, owners: Iterable[str]) -> None:
        """Forget all leases of these owners."""
        gone = set(owners)
        for machine, ports in self.by_machine.items():
            self.by_machine[machine] = {port: owner for port, owner in ports.items() if owner not in gone}

    def taken(self, machine: str) -> dict[int, str]:
        """Port -> owner on that machine."""
        return self.by_machine.get(machine, {})


def asks_of(job: Job, tasks: Iterable[Task]) -> list[Ask]:
    """What these tasks of the job need."""
    return [_ask(job, task) for task in tasks]


def hold_of(job: Job) -> list[tuple[Ask, Assignment]]:
    """What the job's tasks hold by their stored placements; a kept task holds its place too."""
    return [
        (_ask(job, task), Assignment(task.placement.node, task.placement.gpus))
        for task in job.tasks
        if task.placement is not None and task.holds_place
    ]


def _ask(job: Job, task: Task) -> Ask:
    need = job.spec.role(task.role).resources
    return Ask(task.uid, need.cpus, need.memory_mb, need.gpus, job.spec.gpu_type)


class Placing:
    """Places tasks on the placer's nodes and leases their ports."""

    def __init__(self, placer: Placer, engine: Engine, within: PortRange, rng: random.Random) -> None:
        self.placer = placer
        self.ports = Ports()
        self._engine = engine
        self._within = within
        self._rng = rng

    async def decide(self, job: Job, tasks: Sequence[Task], last: LastPlaces) -> Decision | Wait:
        """A place and ports for all of these tasks, held at once; or why not, holding nothing."""
        asks = asks_of(job, tasks)
        found = self.placer.try_place(asks)
        if isinstance(found, Wait):
            return found
        for ask in asks:
            self.placer.hold(ask, found.assignments[ask.uid])
        try:
            decision = await self._with_ports(job, tasks, dict(found.assignments), last)
        except NoPort as error:
            for ask in asks:
                self.placer.release(ask.uid)
            return Wait(WaitCode.PORTS, str(error))
        self.ports.drop(decision.release)
        self.ports.add(decision.lease)
        return decision

    def undo(self, decision: Decision) -> None:
        """Give back what :meth:`decide` held; the decision could not be written."""
        for uid in decision.placements:
            self.placer.release(uid)
        self.ports.drop({lease.owner for lease in decision.lease})

    async def _with_ports(
        self, job: Job, tasks: Sequence[Task], assignments: dict[TaskUid, Assignment], last: LastPlaces
    ) -> Decision:
        busy: dict[str, set[int]] = {}
        for _ in range(PROBES):
            decision = self._choose(job, tasks, assignments, last, busy)
            clashes = await self._probe(decision)
            if not clashes:
                return decision
            for machine, ports in clashes.items():
                busy.setdefault(machine, set()).update(ports)
        machines = ", ".join(sorted(busy))
        raise NoPort(f"ports chosen on {machines} keep being taken by other programs")

    async def _probe(self, decision: Decision) -> dict[str, set[int]]:
        wanted: dict[str, list[int]] = {}
        for lease in decision.lease:
            wanted.setdefault(lease.machine, []).append(lease.port)
        found = {machine: await self._engine.busy_ports(machine, ports) for machine, ports in wanted.items()}
        return {machine: ports for machine, ports in found.items() if ports}

    def _choose(
        self,
        job: Job,
        tasks: Sequence[Task],
        assignments: dict[TaskUid, Assignment],
        last: LastPlaces,
        busy: dict[str, set[int]],
    ) -> Decision:
        placements: dict[TaskUid, Placement] = {}
        leases: list[PortLease] = []
        released: list[str] = []
        new: dict[str, set[int]] = {}
        for task in tasks:
            owner = slot_of(task.uid)
            node = self.placer.nodes()[assignments[task.uid].node]
            wanted = job.spec.role(task.role).ports
            old = last.get(owner)
            if old is not None and old.machine == node.machine and fits(old.ports, wanted):
                ports = old.ports
            else:
                if owner in last:
                    released.append(owner)
                mine = new.setdefault(node.machine, set())
                taken = {p for p, who in self.ports.taken(node.machine).items() if who != owner}
                ports = choose(
                    wanted,
                    within=self._within,
                    taken=taken | mine | busy.get(node.machine, set()),
                    machine=node.machine,
                    rng=self._rng,
                )
                mine.update(port for group in ports.values() for port in group)
                leases.extend(PortLease(node.machine, port, owner) for group in ports.values() for port in group)
            placements[task.uid] = _placement(node, assignments[task.uid], ports)
        return Decision(placements, tuple(leases), tuple(released))


def _placement(node: Node, assignment: Assignment, ports: dict[str, tuple[int, ...]]) -> Placement:
    gpus = [gpu for gpu in node.gpus if gpu.index in assignment.gpus]
    return Placement(
        node=node.name,
        address=node.address,
        machine=node.machine,
        gpus=assignment.gpus,
        gpu_type=gpus[0].type if gpus else "",
        simulated_gpu=any(gpu.simulated for gpu in gpus),
        ports=ports,
    )
