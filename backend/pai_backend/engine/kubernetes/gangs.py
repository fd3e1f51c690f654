"""Gangs start whole: their pods are made with a gate, which is taken off all of them at once (ADR 0057).

A gated pod holds nothing of any node, and the cluster's scheduler leaves it alone. Rules:

1. A gang is whole when all of its pods are there and none of them is asked to end. One whose pod is gone counts if its
   command has run: then the gang had begun.
2. The gates of a whole gang are taken off once every node has room for what the gang is to have there. Until then its
   pods wait, and after a while those whose node has no room are refused, which gives the gang back to the queue.
3. Nothing is written down: pods say of what gang they are and whether they have their gates, and taking one off twice
   is once. So a process that comes after a crash goes on where the last one was.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.calls import Calls, Patch
from pai_backend.engine.kubernetes.failures import ApiNotFound
from pai_backend.engine.kubernetes.marks import Marks
from pai_backend.engine.kubernetes.objects import Object, metadata, name_of, namespace_of, uid_of
from pai_backend.engine.kubernetes.places import ResourceKind, places_of
from pai_backend.engine.kubernetes.pod_events import EventReason, Tell
from pai_backend.engine.kubernetes.pod_requests import HELD, Requests, total
from pai_backend.engine.kubernetes.status.view import items, part, words
from pai_backend.engine.kubernetes.status.waits import GateTrouble, GateWait
from pai_backend.model.ids import TaskUid

_log = logging.getLogger(__name__)

AGAIN_S: Final = 1.0  # before gates are tried again that the cluster did not take off
LONG_S: Final = 5.0  # a gang that waits longer than that for its pods says so in Events of them
TAKEN_OFF: Final = {"spec": {"schedulingGates": [{"name": naming.GATE, "$patch": "delete"}]}}
"""A strategic merge patch: gates of other programs stay. Source: Kubernetes API reference, PodSpec (merge key)."""

GangKey: TypeAlias = tuple[str, str]  # namespace and name of the attempt's ConfigMap
Lacks: TypeAlias = Callable[[str, Requests], str]
"""Why a node has no room for so much now, in words; empty when it has, as far as is known."""


@dataclass
class _Gang:
    """The pods of an attempt; without a size none of them has a gate."""

    size: int = 0
    pods: dict[TaskUid, Object] = field(default_factory=dict)
    gated: set[TaskUid] = field(default_factory=set)
    leaving: set[TaskUid] = field(default_factory=set)  # of the gated ones
    opened: set[str] = field(default_factory=set)  # uids of pods; the mirror may not say so yet
    ran: set[TaskUid] = field(default_factory=set)  # whose pods are gone
    opening: asyncio.Task[None] | None = None
    given_up: bool = False  # one of its pods is being refused
    short: dict[str, str] = field(default_factory=dict)  # nodes without room, and why
    fault: str = ""  # why the cluster does not take its gates off
    told: tuple[dict[str, str], str] = field(default_factory=lambda: ({}, ""))  # the last two, as they were told
    late: asyncio.TimerHandle | None = None  # when it has waited long for its pods

    @property
    def is_whole(self) -> bool:
        return not self.leaving and len(self.pods) + len(self.ran - self.pods.keys()) >= self.size

    @property
    def has_begun(self) -> bool:
        """Whether some of its pods have no gate any longer."""
        return bool(self.ran) or len(self.gated) < len(self.pods)


class Gangs:
    """Knows the gangs of one watch, and takes their gates off. ``wake`` is called when :meth:`advance` has work."""

    def __init__(
        self, calls: Calls, lacks: Lacks, wake: Callable[[], None], tell: Tell = lambda pod, reason, note: None
    ) -> None:
        self._calls = calls
        self._lacks = lacks
        self._wake = wake
        self._tell = tell
        self._gangs: dict[GangKey, _Gang] = {}
        self._waiting: set[GangKey] = set()  # those with gated pods

    def note(self, uid: TaskUid, pod: Object, *, gone: bool) -> None:
        """Take a pod of a task over, slim.

        One that was made without a gate counts too: an earlier version made it, or the setting was another one.
        """
        key = _key_of(pod)
        if key is None:
            return
        gang = self._gangs.setdefault(key, _Gang())
        gang.size = max(gang.size, _size_of(pod))
        gang.gated.discard(uid)
        gang.leaving.discard(uid)
        if gone:
            gang.pods.pop(uid, None)
            if not _has_gate(pod):
                gang.ran.add(uid)
        else:
            gang.pods[uid] = pod
            if _has_gate(pod) and uid_of(pod) not in gang.opened:
                gang.gated.add(uid)
                gang.leaving |= {uid} if _is_leaving(pod) else set()
        self._keep(key, gang)

    def _keep(self, key: GangKey, gang: _Gang) -> None:
        if self._gangs.get(key) is not gang:
            return
        if gang.gated:
            self._waiting.add(key)
            gang.late = gang.late or asyncio.get_running_loop().call_later(LONG_S, self._tell_waiting, gang)
        else:
            self._waiting.discard(key)
            _cancel(gang)
        if not gang.pods:
            self._gangs.pop(key, None)

    def settle(self, secrets: Iterable[Marks]) -> None:
        """Know which tasks have run and are forgotten, at the first listing: their pods are gone."""
        for marks in secrets:
            gang = self._gangs.get((marks.namespace, marks.owner[0])) if marks.owner is not None else None
            ended = marks.exit
            if gang is not None and ended is not None and (ended.code is not None or ended.signal is not None):
                gang.ran.add(marks.uid)

    def advance(self) -> set[TaskUid]:
        """Begin to open what is whole and has room; the tasks that wait for something else than before."""
        changed: set[TaskUid] = set()
        for key in tuple(self._waiting):
            gang = self._gangs[key]
            self._step(key, gang)
            if (gang.short, gang.fault) != gang.told:
                gang.told = (gang.short, gang.fault)
                changed |= gang.gated
                if gang.short or gang.fault:
                    self._tell_waiting(gang)
        return changed

    def _step(self, key: GangKey, gang: _Gang) -> None:
        if gang.opening is not None or gang.given_up:
            return
        if not gang.is_whole:
            gang.short = {}
            return
        gang.short = self._short(gang)
        if not gang.short:
            gang.opening = asyncio.create_task(self._open(key, gang))

    def _short(self, gang: _Gang) -> dict[str, str]:
        wanted: defaultdict[str, list[Requests]] = defaultdict(list)
        for uid in gang.gated:
            wanted[_node_of(gang.pods[uid])].append(gang.pods[uid].get(HELD, {}))
        told = ((node, self._lacks(node, total(requests))) for node, requests in wanted.items())
        return {node: why for node, why in told if why}

    async def _open(self, key: GangKey, gang: _Gang) -> None:
        """Take off all gates. What fails is tried again after a pause, once there is room, as all is."""
        try:
            pods = [(uid, gang.pods[uid]) for uid in sorted(gang.gated)]
            answers = await asyncio.gather(*(self._take_off(pod) for _, pod in pods), return_exceptions=True)
            faults = []
            for (uid, pod), answer in zip(pods, answers, strict=True):
                if isinstance(answer, Exception):
                    faults.append(words(str(answer)))
                elif isinstance(answer, BaseException):
                    raise answer
                else:
                    gang.opened.add(uid_of(pod))
                    self._tell(pod, EventReason.GANG_OPENED, f"the pods of all {gang.size} tasks may go to their nodes")
                    gang.gated.discard(uid)
                    gang.leaving.discard(uid)
            gang.fault = faults[0] if faults else ""
            self._keep(key, gang)
            if faults:
                _log.warning(
                    "%d pods of the gang %s keep their gates, will try again: %s", len(faults), key[1], faults[0]
                )
                self._wake()
                await asyncio.sleep(AGAIN_S)
        finally:
            gang.opening = None
            self._wake()

    async def _take_off(self, pod: Object) -> None:
        """Let the scheduler have the pod; of one that is gone there is nothing to do.

        Raises other ClusterErrors: ApiConflict where another pod has the name by now, or one that keeps changing.
        """
        path = places_of(pod).one(ResourceKind.POD, name_of(pod))
        with contextlib.suppress(ApiNotFound):
            await self._calls.patch(path, {"metadata": {"uid": uid_of(pod)}, **TAKEN_OFF}, Patch.STRATEGIC)

    def wait_of(self, uid: TaskUid, pod: Object) -> GateWait | None:
        """What a gated pod waits for; None for another pod."""
        key = _key_of(pod)
        gang = self._gangs.get(key) if key is not None else None
        if gang is None or uid not in gang.gated:
            return None
        if not gang.is_whole:
            return GateWait(f"waits until the pods of all {gang.size} tasks that start with it are made")
        if (why := gang.short.get(_node_of(pod))) is not None:
            return GateWait(why, GateTrouble.HALF if gang.has_begun else GateTrouble.ROOM)
        if gang.fault and not gang.short:
            kept = f"the cluster does not take its scheduling gate off ({gang.fault})"
            return GateWait(kept, GateTrouble.SPLIT if gang.has_begun else GateTrouble.KEPT)
        return GateWait("waits for the tasks that start with it")

    def _tell_waiting(self, gang: _Gang) -> None:
        for uid in sorted(gang.gated):
            if (wait := self.wait_of(uid, gang.pods[uid])) is not None:
                self._tell(gang.pods[uid], EventReason.GANG_WAITING, wait.message)

    def give_up(self, pod: Object) -> None:
        """A pod that has its gate is about to be refused: its gang must not be opened meanwhile."""
        key = _key_of(pod)
        if key is not None and key in self._waiting and _has_gate(pod):
            self._gangs[key].given_up = True

    async def aclose(self) -> None:
        """End what is under way."""
        for gang in self._gangs.values():
            _cancel(gang)
        works = [gang.opening for gang in self._gangs.values() if gang.opening is not None]
        for work in works:
            work.cancel()
        await asyncio.gather(*works, return_exceptions=True)


def _cancel(gang: _Gang) -> None:
    if gang.late is not None:
        gang.late.cancel()
        gang.late = None


def _key_of(pod: Object) -> GangKey | None:
    owners = [each for each in metadata(pod).get("ownerReferences") or () if each.get("kind") == "ConfigMap"]
    return (namespace_of(pod), str(owners[0].get("name"))) if owners else None


def _size_of(pod: Object) -> int:
    said = part(metadata(pod), "annotations").get(naming.GANG)
    return int(said) if isinstance(said, str) and said.isascii() and said.isdigit() else 0


def _has_gate(pod: Object) -> bool:
    return any(each.get("name") == naming.GATE for each in items(part(pod, "spec"), "schedulingGates"))


def _is_leaving(pod: Object) -> bool:
    about = metadata(pod)
    notes = part(about, "annotations")
    return "deletionTimestamp" in about or naming.STOP in notes or naming.VERDICT in notes


def _node_of(pod: Object) -> str:
    return str(part(metadata(pod), "annotations").get(naming.NODE) or "")
