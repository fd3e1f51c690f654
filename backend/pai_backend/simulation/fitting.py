"""Does a trace fit the configurations it is played on? And which of its groups would be refused on submission?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pai_backend.model.errors import Fault, NoVirtualCluster, PaiError
from pai_backend.model.waiting import Waiting
from pai_backend.scheduling.config.model import ClusterConfig
from pai_backend.scheduling.core.ledger import Ledger
from pai_backend.scheduling.core.trees import check_group
from pai_backend.scheduling.explain import explain
from pai_backend.scheduling.queue import Entry, Policy, Queue
from pai_backend.scheduling.queue.booked import Booked
from pai_backend.scheduling.queue.policy import Usage
from pai_backend.scheduling.request import Group
from pai_backend.simulation.moments import BEGINNING
from pai_backend.simulation.reading import raise_faults
from pai_backend.simulation.reserving import booked
from pai_backend.simulation.trace import Arrival, Failure, NewConfig, Repair, Reservation, Trace, TraceLine


def check_nodes(trace: Trace, configs: Iterable[ClusterConfig]) -> None:
    """Nodes and GPUs that fail or are repaired must be in one of these configurations.

    Raises DocumentError with the place of each that is in none.
    """
    if not any(isinstance(line.event, Failure | Repair) for line in trace.lines):
        return
    known: dict[str, set[int]] = {}
    for config in configs:
        for name, nodes in Ledger(config).nodes.items():
            known.setdefault(name, set()).update(*(node.indexes for node in nodes))
    faults: list[Fault] = []
    for event, source in trace.lines:
        if not isinstance(event, Failure | Repair):
            continue
        if event.node not in known:
            faults.append(source.fault("node", f"there is no node {event.node}", "Name one of the configuration."))
        for device in event.devices:
            if event.node in known and device not in known[event.node]:
                numbers = ", ".join(str(each) for each in sorted(known[event.node]))
                message = f"node {event.node} has no GPU {device}"
                faults.append(source.fault("devices", message, f"It has: {numbers}."))
    raise_faults("the trace", faults)


def refusals(
    config: ClusterConfig,
    trace: Trace,
    entries: Mapping[str, Entry],
    policy: Policy,
    later: Mapping[str, ClusterConfig],
) -> dict[str, Waiting]:
    """Groups for which the cluster, empty and well, has no place, and why: by the configuration when they arrive.

    ``later`` are the configurations that the trace goes over to. Raises DocumentError with the place of every group
    that names what the configuration does not have.
    """
    found: dict[str, Waiting] = {}
    faults: list[Fault] = []
    desk = _Desk(config, policy)
    for event, source in sorted(trace.lines, key=_config_first):
        if isinstance(event, NewConfig):
            desk = _Desk(later[event.file], policy)
        if isinstance(event, Reservation):
            try:
                desk.check(booked(event))
            except PaiError as error:
                faults.append(source.fault(_field(error), f"reservation {event.name}: {error.message}", error.hint))
        if not isinstance(event, Arrival):
            continue
        try:
            waiting = desk.refusal(entries[event.name])
        except PaiError as error:
            faults.append(source.fault(_field(error), f"group {event.name}: {error.message}", error.hint))
            continue
        if waiting is not None:
            found[event.name] = waiting.model_copy(update={"group": event.name})
    raise_faults("the trace, held against the configuration,", faults)
    return found


def _config_first(line: TraceLine) -> tuple[float, bool]:
    """What arrives with a configuration is held against the new one."""
    return line.event.at, not isinstance(line.event, NewConfig)


_FIELDS = {"leafCellType": "type", "pinnedCellId": "pinned", "withinOneCell": "within"}
"""The scheduler's names of fields, where a trace has others."""


def _field(error: PaiError) -> str:
    if isinstance(error, NoVirtualCluster):
        return "vc"
    path = error.errors[0].path.removeprefix("$.") if error.errors else ""
    return _FIELDS.get(path, path)


class _Desk:
    """Where groups are submitted to an empty cluster, one at a time; those that differ in their names only ask once."""

    def __init__(self, config: ClusterConfig, policy: Policy) -> None:
        self._free, self._capped = Queue(Ledger(config)), Queue(Ledger(config), policy)
        self._usage = Usage(policy)
        self._vcs = tuple(config.virtual_clusters)
        self._known: dict[tuple[Group, str], Waiting | None] = {}

    def check(self, reserved: Booked) -> None:
        """Raise NoVirtualCluster or InvalidParameters for a reservation of what does not exist."""
        check_group(self._free.ledger, reserved.group(reserved.leaves))

    def refusal(self, entry: Entry) -> Waiting | None:
        """Why it could never start. Raises NoVirtualCluster or InvalidParameters for names that do not exist."""
        excess = self._usage.excess(entry)
        shape = replace(entry.group, name=""), "" if excess is None else entry.user
        if shape not in self._known:
            self._known[shape] = self._ask(self._free if excess is None else self._capped, entry)
        return self._known[shape]

    def _ask(self, queue: Queue, entry: Entry) -> Waiting | None:
        name = entry.group.name
        queue.add(entry)
        started = queue.advance(BEGINNING).started
        waiting = None if started else explain(queue, name, BEGINNING, vcs=self._vcs)
        queue.release(name)
        return waiting
