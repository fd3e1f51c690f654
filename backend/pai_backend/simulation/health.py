"""What is broken in a simulation."""

from __future__ import annotations

from collections.abc import Collection

from pai_backend.scheduling.queue import Queue
from pai_backend.simulation.meter import Meter


class BrokenGpus:
    """Broken GPUs, node by node; they stay broken while the configuration does not have the node."""

    def __init__(self, queue: Queue, meter: Meter) -> None:
        self._queue = queue
        self._meter = meter
        self._bad: dict[str, set[int]] = {}

    def fail(self, node: str, devices: Collection[int]) -> frozenset[int]:
        """These GPUs of a node, or all of them, break; answers which."""
        failed = frozenset(devices) or self._known(node)
        self._bad.setdefault(node, set()).update(failed)
        self._tell(node)
        return failed

    def repair(self, node: str, devices: Collection[int]) -> None:
        """These GPUs of a node, or all of them, are well again."""
        self._bad.get(node, set()).difference_update(frozenset(devices) or self._known(node))
        self._tell(node)

    def tell_again(self) -> None:
        """The configuration is another one."""
        for node in self._bad:
            self._tell(node)
            self.count(node)

    def count(self, node: str) -> None:
        """Let the meter count what is broken; to be called when nothing runs there any more."""
        if node in self._queue.ledger.nodes:
            self._meter.broken(node, len(self._bad.get(node, set()) & self._known(node)))

    def _tell(self, node: str) -> None:
        bad = self._bad.get(node, set())
        self._queue.set_node_health(node, healthy=True, bad_devices=bad)

    def _known(self, node: str) -> frozenset[int]:
        nodes = self._queue.ledger.nodes.get(node, ())
        return frozenset(index for each in nodes for index in each.indexes)
