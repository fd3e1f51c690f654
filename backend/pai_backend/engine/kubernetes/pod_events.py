"""Events of pods (``kubectl describe pod``): what was done with a task and why, for administrators of the cluster.

They are a help and no need. So :meth:`PodEvents.tell` returns at once; one request at a time is under way, at a bounded
rate; what waits too long is dropped, and no failure reaches a job. Repetitions are counted in one Event, as client-go
does. An Event is only ever made for a pod that was there: of a pod that is missing, ``ending.had_pod`` asks by Events.

Source: Kubernetes API reference, events.k8s.io/v1 (lengths of fields, series); client-go tools/events and tools/record
(an Event's name, a limit for each object).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, TypeAlias, TypeVar

from pai_backend.engine.kubernetes.calls import Calls, Patch
from pai_backend.engine.kubernetes.failures import ApiForbidden, ApiNotFound, ClusterError
from pai_backend.engine.kubernetes.naming import MANAGER
from pai_backend.engine.kubernetes.objects import Object, name_of, namespace_of, uid_of
from pai_backend.engine.kubernetes.places import ApiPaths, ResourceKind
from pai_backend.model.plan import TaskPlan

_log = logging.getLogger(__name__)

QUEUE_MAX: Final = 1000
PAUSE_S: Final = 0.05  # between requests
OLD: Final = timedelta(seconds=60)  # what has waited longer is dropped
DEADLINE_S: Final = 5.0
OF_POD_MAX: Final = 10  # different Events of one pod in a period
PERIOD: Final = timedelta(minutes=10)
"""After that, an Event that is told again is a new one; a namespace that takes none is tried again."""
SERIES: Final = timedelta(minutes=1)  # a repetition is written at most so often
KNOWN_MAX: Final = 2048
NOTE_MAX: Final = 1024  # bytes

_K = TypeVar("_K")
_V = TypeVar("_V")

Tell: TypeAlias = Callable[[Object, str, str], None]
"""Takes a pod, a reason and a sentence: :meth:`PodEvents.tell`."""


class EventReason(StrEnum):
    """What the engine itself tells of."""

    PLACED = "Placed"
    GANG_WAITING = "GangWaiting"
    GANG_OPENED = "GangOpened"
    GIVEN_UP = "GivenUp"


_WARNINGS: Final = frozenset({EventReason.GIVEN_UP.value})
_ACTIONS: Final = {
    EventReason.PLACED.value: "Placing",
    EventReason.GANG_WAITING.value: "Gating",
    EventReason.GANG_OPENED.value: "Opening",
}


@dataclass
class _Told:
    """An Event that was made, and how often it was told."""

    name: str
    since: datetime
    written: datetime
    count: int = 1


@dataclass(frozen=True)
class _Request:
    """What is to be sent: a new Event, or the count of one."""

    namespace: str
    at: datetime
    body: Object
    of: str = ""
    """Name of the Event to change; empty: a new one."""


class PodEvents:
    """The Events of one process. Needs a running loop from the first :meth:`tell` on."""

    def __init__(self, calls: Calls, instance: str, *, pause_s: float = PAUSE_S, series: timedelta = SERIES) -> None:
        self._calls = calls
        self._instance = instance
        self._pause_s, self._series = pause_s, series
        self._queue: deque[_Request] = deque()
        self._told: OrderedDict[tuple[str, str, str], _Told] = OrderedDict()
        self._of_pod: OrderedDict[str, tuple[datetime, int]] = OrderedDict()
        self._silent: dict[str, datetime] = {}  # namespaces that take none, until then
        self._complained: set[str] = set()
        self._worker: asyncio.Task[None] | None = None

    def tell(self, pod: Object, reason: str, note: str) -> None:
        """Let an Event of the pod say it. Returns at once; nothing is promised."""
        now, namespace = self._calls.now(), namespace_of(pod)
        if self._silent.get(namespace, now) > now:
            return
        request = self._request(pod, namespace, reason, _short(note), now)
        if request is not None and len(self._queue) < QUEUE_MAX:
            self._queue.append(request)
            if self._worker is None or self._worker.done():
                self._worker = asyncio.create_task(self._work())

    async def aclose(self) -> None:
        """Drop what is not sent."""
        self._queue.clear()
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)

    def _request(self, pod: Object, namespace: str, reason: str, note: str, now: datetime) -> _Request | None:
        key = (uid_of(pod), reason, note)
        told = self._told.get(key)
        if told is not None and now - told.since < PERIOD:
            told.count += 1
            if now - told.written < self._series:
                return None
            told.written = now
            series = {"count": told.count, "lastObservedTime": _micro(now)}
            return _Request(namespace, now, {"series": series}, told.name)
        if not self._allows(key[0], now):
            return None
        body = self._event(pod, reason, note, now)
        _remember(self._told, key, _Told(name_of(body), now, now))
        return _Request(namespace, now, body)

    def _allows(self, pod_uid: str, now: datetime) -> bool:
        since, count = self._of_pod.get(pod_uid, (now, 0))
        if now - since >= PERIOD:
            since, count = now, 0
        _remember(self._of_pod, pod_uid, (since, count + 1))
        return count < OF_POD_MAX

    def _event(self, pod: Object, reason: str, note: str, now: datetime) -> Object:
        namespace, name = namespace_of(pod), name_of(pod)
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": f"{name}.{uuid.uuid4().hex[:16]}", "namespace": namespace},
            "eventTime": _micro(now),
            "reportingController": MANAGER,
            "reportingInstance": self._instance[:128],
            "action": _ACTIONS.get(reason, "Stopping"),
            "reason": reason,
            "note": note,
            "type": "Warning" if reason in _WARNINGS else "Normal",
            "regarding": {
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": namespace,
                "name": name,
                "uid": uid_of(pod),
            },
        }

    async def _work(self) -> None:
        while self._queue:
            request = self._queue.popleft()
            if self._calls.now() - request.at <= OLD:
                await self._send(request)
                await asyncio.sleep(self._pause_s)

    async def _send(self, request: _Request) -> None:
        places = ApiPaths(request.namespace)
        try:
            if request.of:
                path = places.one(ResourceKind.POD_EVENT, request.of)
                with contextlib.suppress(ApiNotFound):  # its time is over
                    await self._calls.patch(path, request.body, Patch.MERGE, deadline_s=DEADLINE_S)
            else:
                await self._calls.make(places.all(ResourceKind.POD_EVENT), request.body, deadline_s=DEADLINE_S)
        except (ApiForbidden, ApiNotFound) as error:
            self._be_silent(request.namespace, error)
        except ClusterError as error:
            _log.info("an Event of a pod is not made: %s", error)

    def _be_silent(self, namespace: str, error: ClusterError) -> None:
        self._silent[namespace] = self._calls.now() + PERIOD
        if namespace not in self._complained:
            self._complained.add(namespace)
            _log.warning(
                "pods of the namespace %s get no Events of this backend, which needs `create` and `patch` of `events` "
                "(events.k8s.io) there; kubernetes.pod_events: false turns them off: %s",
                namespace,
                error,
            )


def placed_text(plan: TaskPlan) -> str:
    """Where a task was placed; one that is run again says by its attempt that it is."""
    place, gpus = plan.placement, len(plan.placement.gpus)
    having = f" with {gpus} GPU{'' if gpus == 1 else 's'} ({place.gpu_type})" if gpus else ""
    whose = f"{plan.user}, virtual cluster {plan.virtual_cluster}"
    return (
        f"task {plan.role}-{plan.index} of the job {plan.job_name} ({whose}), attempt {plan.job_attempt + 1}, "
        f"is placed on {place.node}{having}"
    )


def _remember(known: OrderedDict[_K, _V], key: _K, value: _V) -> None:
    known[key] = value
    known.move_to_end(key)
    if len(known) > KNOWN_MAX:
        known.popitem(last=False)


def _short(note: str) -> str:
    """At most so many bytes as a server takes."""
    return note if len(note.encode()) <= NOTE_MAX else note.encode()[: NOTE_MAX - 4].decode(errors="ignore") + "…"


def _micro(time: datetime) -> str:
    """A time as ``MicroTime`` has it, in UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
