"""From free room to placements: try the tasks, choose their ports, make sure that they are free.

The placer and the set of leased ports are this controller's memory of what is stored; both are rebuilt from the store
by ``Tenure``.
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
from pai_backend.scheduling.core.reason import WaitCode
from pai_backend.scheduling.jobs.answers import Kept, Lack, Place, Waits
from pai_backend.scheduling.jobs.demand import Ask
from pai_backend.scheduling.jobs.linear import Allows
from pai_backend.scheduling.jobs.placer import Placer
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


@dataclass(frozen=True)
class Reservation:
    """Places that are kept for tasks of one job while others are stopped there; they have no ports yet."""

    placements: dict[TaskUid, Placement]
    message: str


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


class Placing:
    """Places tasks on the placer's nodes and leases their ports."""

    def __init__(self, placer: Placer, engine: Engine, within: PortRange, rng: random.Random) -> None:
        self.placer = placer
        self.ports = Ports()
        self._engine = engine
        self._within = within
        self._rng = rng

    async def decide(self, job: Job, tasks: Sequence[Task], last: LastPlaces) -> Decision | Reservation | Waits:
        """A place and ports for all of these tasks, held at once; places kept for them; or why not, holding nothing."""
        fixed = _FixedPorts(self.ports)
        found = self.placer.place(job, tasks, fixed.allow)
        if isinstance(found, Waits):
            return fixed.told(found)
        if isinstance(found, Kept):
            nodes = self.placer.room.nodes
            return Reservation(
                {uid: _placement(nodes[place.node], place, {}) for uid, place in found.places.items()}, found.message
            )
        try:
            decision = await self._with_ports(job, tasks, found.places, last)
        except NoPort as error:
            self.placer.give_back(job.uid, found.places.keys())
            return Waits(Lack.PORTS, str(error))
        self.ports.drop(decision.release)
        self.ports.add(decision.lease)
        return decision

    def allows_ports(self) -> Allows:
        """Whether a node's machine has the ports that a task fixes, as far as leases tell."""
        return _FixedPorts(self.ports).allow

    def undo(self, job: Job, decision: Decision | Reservation) -> None:
        """Give back what :meth:`decide` held; the decision could not be written."""
        self.placer.give_back(job.uid, decision.placements.keys())
        if isinstance(decision, Decision):
            self.ports.drop({lease.owner for lease in decision.lease})

    async def _with_ports(
        self, job: Job, tasks: Sequence[Task], places: Mapping[TaskUid, Place], last: LastPlaces
    ) -> Decision:
        busy: dict[str, set[int]] = {}
        for _ in range(PROBES):
            decision = self._choose(job, tasks, places, last, busy)
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
        places: Mapping[TaskUid, Place],
        last: LastPlaces,
        busy: dict[str, set[int]],
    ) -> Decision:
        placements: dict[TaskUid, Placement] = {}
        leases: list[PortLease] = []
        released: list[str] = []
        new: dict[str, set[int]] = {}
        for task in tasks:
            owner = slot_of(task.uid)
            node = self.placer.room.nodes[places[task.uid].node]
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
            placements[task.uid] = _placement(node, places[task.uid], ports)
        return Decision(placements, tuple(leases), tuple(released))


class _FixedPorts:
    """Keeps tasks away from machines where a port that they fix is leased to another one; remembers the last such."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._taken = ""

    def allow(self, node: Node, ask: Ask) -> bool:
        """Whether all fixed ports of the task can be had on the node's machine."""
        if not ask.fixed_ports:
            return True
        leases, owner = self._ports.taken(node.machine), slot_of(ask.uid)
        for port, label in ask.fixed_ports:
            if leases.get(port, owner) != owner:
                self._taken = f"port {port} ({label}) of {node.machine} is in use"
                return False
        return True

    def told(self, waits: Waits) -> Waits:
        """The reason to wait, which is the port when nothing else keeps the tasks from a node."""
        by_nodes = waits.reason is not None and waits.reason.code is WaitCode.NOT_SUGGESTED
        if self._taken and (waits.lack is Lack.LINEAR or by_nodes):
            return Waits(Lack.PORTS, self._taken)
        return waits


def _placement(node: Node, place: Place, ports: dict[str, tuple[int, ...]]) -> Placement:
    gpus = [gpu for gpu in node.gpus if gpu.index in place.gpus]
    return Placement(
        node=node.name,
        address=node.address,
        machine=node.machine,
        gpus=place.gpus,
        gpu_type=gpus[0].type if gpus else "",
        simulated_gpu=any(gpu.simulated for gpu in gpus),
        ports=ports,
        cells=place.cells,
        chain=place.chain,
        owned=place.owned,
    )
