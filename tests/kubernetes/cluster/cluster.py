"""A whole cluster: control plane and nodes, in a slot of this machine. Everything about it is on disk, so that another
process can use it, and a later one can remove what a killed one has left."""

from __future__ import annotations

import asyncio
import contextlib
import json
import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from pathlib import Path

from tests.kubernetes.cluster import cgroups, disk, images, network, processes, programs, slots
from tests.kubernetes.cluster.addresses import MOST_NODES
from tests.kubernetes.cluster.commands import until
from tests.kubernetes.cluster.control_plane import USUAL, ControlPlane, Timing
from tests.kubernetes.cluster.kubectl import Kubectl
from tests.kubernetes.cluster.node import Node, NodePlan
from tests.kubernetes.cluster.slots import Slot

_PLAN = "cluster.json"
_INSTANCES = Path("/proc/sys/fs/inotify/max_user_instances")
FOLLOWED = 1024
"""inotify instances of a user: a kubelet takes one for each log that is followed, and Linux gives 128 for all nodes."""
READY_S = 90.0


class Cluster:
    """A running cluster that this process uses."""

    def __init__(self, slot: Slot, timing: Timing, place: Path) -> None:
        self.slot, self.directory, self.programs = slot, slot.directory, place
        self.plane = ControlPlane(slot.directory, place, slot.addresses, timing)
        self.kubectl = Kubectl(place / "kubectl", self.plane.kubeconfig)
        self.nodes: dict[str, Node] = {}
        self._timing = timing
        self._name = ""

    @property
    def name(self) -> str:
        """Tells it from every other that was or will be in its slot."""
        return self._name

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.plane.kubeconfig

    async def add_node(
        self, name: str, gpus: int = 0, labels: dict[str, str] | None = None, taints: Sequence[str] = ()
    ) -> Node:
        """Start a node, wait until it is Ready, and give it GPUs that do not exist."""
        return (await self.add_nodes([name], gpus, labels, taints))[0]

    async def add_nodes(
        self, names: Sequence[str], gpus: int = 0, labels: dict[str, str] | None = None, taints: Sequence[str] = ()
    ) -> list[Node]:
        """Start several at once."""
        archives = await asyncio.to_thread(images.ensure, programs.images())
        if self._last_number() + len(names) > MOST_NODES:
            raise ValueError(f"a cluster has addresses for {MOST_NODES} nodes")
        plans = [
            NodePlan(name, number, labels or {}, tuple(taints))
            for number, name in enumerate(names, start=self._last_number() + 1)
        ]
        nodes = [self._node(plan) for plan in plans]
        self._write()
        await asyncio.gather(*(node.start(archives) for node in nodes))
        await self._until_ready(nodes)
        for node in nodes:
            if gpus:
                await self.give_gpus(node.name, gpus)
        return nodes

    async def give_gpus(self, node: str, count: int) -> None:
        """Let a node count GPUs. Scheduler and kubelet then hold pods to the number; there is no device behind it."""
        where = ("/status/capacity/nvidia.com~1gpu", "/status/allocatable/nvidia.com~1gpu")
        patch = json.dumps([{"op": "add", "path": path, "value": str(count)} for path in where])
        await self.kubectl("patch", "node", node, "--subresource=status", "--type=json", "-p", patch)

    async def power_on(self, name: str) -> None:
        """Start a node again after a power cut, and wait until it is Ready."""
        archives = await asyncio.to_thread(images.ensure, programs.images())
        await self.nodes[name].start(archives)
        await self._until_ready([self.nodes[name]])

    def logs(self) -> list[Path]:
        """Logs of all parts."""
        return sorted(self.directory.glob("*.log")) + [log for node in self.nodes.values() for log in node.logs()]

    def _node(self, plan: NodePlan) -> Node:
        home = self.directory / "nodes" / plan.name
        node = Node(home, plan, self.plane, self.slot.addresses, self._timing)
        self.nodes[plan.name] = node
        return node

    def _last_number(self) -> int:
        return max((node.plan.number for node in self.nodes.values()), default=0)

    async def _until_ready(self, nodes: Sequence[Node]) -> None:
        """Wait until each has registered and is Ready since it was started."""
        for node in nodes:
            await self.kubectl("wait", "--for=create", f"--timeout={READY_S:.0f}s", f"node/{node.name}")
        await self.kubectl.until_ready(*(node.name for node in nodes), limit_s=READY_S)

    def _write(self) -> None:
        plan = {
            "name": self._name,
            "timing": asdict(self._timing),
            "nodes": [asdict(node.plan) for node in self.nodes.values()],
        }
        draft = self.directory / f"{_PLAN}.draft"
        draft.write_text(json.dumps(plan))
        draft.replace(self.directory / _PLAN)

    async def create(self) -> None:
        """Make network and control plane."""
        self._name = uuid.uuid4().hex
        _let_logs_be_followed()
        await disk.create(self.directory)
        self._write()
        await network.create(self.slot.addresses)
        await self.plane.create()

    def read(self) -> None:
        """Learn what another process has written down of it."""
        plan = json.loads((self.directory / _PLAN).read_text())
        self._name = plan["name"]
        for row in plan["nodes"]:
            if row["name"] not in self.nodes:
                self._node(NodePlan(**row))


def _let_logs_be_followed() -> None:
    if int(_INSTANCES.read_text()) < FOLLOWED:
        _INSTANCES.write_text(str(FOLLOWED))


async def sweep(slot: Slot) -> None:
    """Kill and remove all that a slot holds, whoever started it."""
    if not slot.directory.exists():
        return
    processes.kill_all(slot.directory)

    async def ended() -> bool:
        return not processes.running(slot.directory)

    await until(ended, f"the end of all processes below {slot.directory}", 30, 0.02)
    plan = slot.directory / _PLAN
    rows = json.loads(plan.read_text())["nodes"] if plan.exists() else []
    for row in rows:
        await cgroups.remove(slot.addresses.cgroup(row["name"]))
    await network.remove(slot.addresses)
    await disk.remove(slot.directory)


@contextlib.asynccontextmanager
async def started(nodes: Sequence[str] = (), timing: Timing = USUAL, root: Path = slots.ROOT) -> AsyncIterator[Cluster]:
    """A cluster of one's own, with these nodes; stopped by the last process that uses it."""
    names = programs.CONTROL_PLANE + (programs.NODE if nodes else ())
    place = await asyncio.to_thread(programs.build, *names)
    slot = await slots.claim(sweep, root)
    cluster = Cluster(slot, timing, place)
    try:
        await cluster.create()
        if nodes:
            await cluster.add_nodes(nodes)
        yield cluster
    finally:
        await slots.leave(slot, sweep)


class NotThere(Exception):
    """The slot holds no cluster."""


@contextlib.asynccontextmanager
async def joined(number: int, root: Path = slots.ROOT) -> AsyncIterator[Cluster]:
    """A cluster that another process has started. Raises NotThere."""
    place = await asyncio.to_thread(programs.build, *programs.CONTROL_PLANE)
    slot = await slots.join(number, root)
    try:
        if not (slot.directory / _PLAN).exists():
            raise NotThere(f"no cluster is in slot {number}")
        timing = Timing(**json.loads((slot.directory / _PLAN).read_text())["timing"])
        cluster = Cluster(slot, timing, place)
        cluster.read()
        yield cluster
    finally:
        await slots.leave(slot, sweep)
