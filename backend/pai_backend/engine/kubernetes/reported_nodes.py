"""Nodes of the cluster as they were told, and which of them are away."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal

from pai_backend.engine.base import EngineEvent, Listed, NodeGone, NodeSeen
from pai_backend.engine.kubernetes.calls import Calls
from pai_backend.engine.kubernetes.ending import find
from pai_backend.engine.kubernetes.handover import Change, ObjectGone
from pai_backend.engine.kubernetes.handover import ResourceListed as ResourceListed
from pai_backend.engine.kubernetes.nodes import away, node_of
from pai_backend.engine.kubernetes.objects import Object, name_of, uid_of
from pai_backend.engine.kubernetes.other_pods import note_other_pod
from pai_backend.engine.kubernetes.places import node
from pai_backend.engine.kubernetes.pod_requests import HELD, Requests, RequestsByNode
from pai_backend.engine.kubernetes.quantities import amount_of, quantity
from pai_backend.engine.kubernetes.status.task import NodeAway
from pai_backend.engine.kubernetes.status.view import part
from pai_backend.model.cluster_settings import NodeReading
from pai_backend.model.node import Node
from pai_backend.model.pod_settings import PodSettings


class ReportedNodes:
    """What was reported of nodes; a heartbeat that changes nothing for placement is not told."""

    def __init__(self, pods: PodSettings, reading: NodeReading) -> None:
        self._pods = pods
        self._reading = reading
        self._found: dict[str, Object] = {}
        self._others = RequestsByNode()
        self._tasks = RequestsByNode()
        self._told: dict[str, Node] = {}
        self._away: dict[str, NodeAway] = {}
        self._out: list[EngineEvent] = []

    def note(self, found: Object, *, gone: bool, now: datetime) -> set[str]:
        """Take a node over; its name, when it went away or came back."""
        name = name_of(found)
        before = self._away.get(name)
        if gone:
            self._told.pop(name, None)
            self._found.pop(name, None)
            self._out.append(NodeGone(name))
            self._away[name] = before or NodeAway(now, "it is no longer part of the cluster")
        else:
            self._found[name] = found
            self._tell(name)
            state = away(found)
            if state is None:
                self._away.pop(name, None)
            else:
                self._away[name] = state
        return {name} if self._away.get(name) != before else set()

    def note_other_pod(self, found: Object, *, gone: bool) -> None:
        """Take over what a pod holds that is no task of ours."""
        for name in note_other_pod(self._others, found, gone=gone):
            if name in self._found:
                self._tell(name)

    def note_task_pod(self, found: Object, *, gone: bool) -> None:
        """Take over what the pod of a task holds, slim: nothing before it has its node, nor once it has ended."""
        over = gone or part(found, "status").get("phase") in ("Failed", "Succeeded")
        place = "" if over else str(part(found, "spec").get("nodeName") or "")
        self._tasks.note(uid_of(found), place, found.get(HELD, {}))

    def lacks(self, name: str, wanted: Requests) -> str:
        """Why a node does not take pods that request so much together now, in words; empty when it does.

        As far as is known: where pods of others are not counted, what they hold is not.
        """
        found, told = self._found.get(name), self._told.get(name)
        if found is None or told is None:
            return f"its node {name} is no longer part of the cluster"
        if not told.ready or not told.schedulable:
            return f"its node {name} is {'cordoned' if told.ready else f'unavailable ({told.reason})'}"
        room, others, tasks = part(part(found, "status"), "allocatable"), self._others.on(name), self._tasks.on(name)
        for resource in sorted(wanted):
            held = others.get(resource, Decimal()) + tasks.get(resource, Decimal())
            try:
                whole = quantity(room.get(resource, "0"))
            except ValueError:
                continue
            if wanted[resource] and held + wanted[resource] > whole:
                amounts = [amount_of(resource, each) for each in (held, whole, wanted[resource])]
                return (
                    f"its node {name} has no room for its gang now: pods hold {amounts[0]} of {amounts[1]} {resource}, "
                    f"and the gang needs {amounts[2]} there"
                )
        return ""

    def _tell(self, name: str) -> None:
        held = self._others.on(name)
        read = node_of(self._found[name], self._pods.gpus, self._reading, self._pods.tolerations, held)
        if self._told.get(name) != read:
            self._told[name] = read
            self._out.append(NodeSeen(read))

    def of(self, changes: Iterable[Change], now: datetime) -> list[EngineEvent]:
        """What changes of nodes alone come to."""
        listed = False
        for change in changes:
            if isinstance(change, ResourceListed):
                listed = True
            else:
                gone = isinstance(change, ObjectGone)
                self.note(change.last if isinstance(change, ObjectGone) else change.object, gone=gone, now=now)
        return [*self.take(), *([Listed()] if listed else [])]

    def take(self) -> list[EngineEvent]:
        """What is to be told, once."""
        taken, self._out = self._out, []
        return taken

    def has(self, name: str) -> bool:
        """Whether a node is part of the cluster, as far as it was told."""
        return name in self._told

    def away(self, name: str) -> NodeAway | None:
        """Since when and why a node is away; None when it is there."""
        return self._away.get(name)

    async def confirm(self, calls: Calls, name: str) -> bool:
        """Whether the API server says of a node what we think of it: that it is away, or that it is there.

        Raises ClusterErrors.
        """
        if name not in self._away:
            return True
        found = await find(calls, node(name))
        return found is None or away(found) is not None
