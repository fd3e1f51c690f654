"""The mirrors that the watch goes by: pods of tasks, nodes, and events of pods, which are a help and no need."""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final, NoReturn

from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.calls import Calls
from pai_backend.engine.kubernetes.counts import ReflectorHealth
from pai_backend.engine.kubernetes.handover import Change, Handover, ObjectGone, ResourceListed
from pai_backend.engine.kubernetes.nodes import slim_node
from pai_backend.engine.kubernetes.objects import (
    Object,
    Slim,
    metadata,
    slim_pod,
    uid_of,
    without_managed_fields,
)
from pai_backend.engine.kubernetes.other_pods import OTHER_PODS, other_pods, slim_other_pod
from pai_backend.engine.kubernetes.places import NODES, ApiPaths, ResourceKind
from pai_backend.engine.kubernetes.pod_requests import HELD, SharedRequests
from pai_backend.engine.kubernetes.reflector import Reflector, Resource
from pai_backend.engine.kubernetes.status.view import part

EVENTS_MAX: Final = 20  # of one pod; a kubelet counts repetitions in one object


_UNREAD: Final = ("Scheduled", "Created", "Started", "Killing")
"""Reasons of most events of pods that go well, of which nothing is read: they are not sent. Nor are
our own (``pod_events``), of which the server takes the reporting controller for the source."""
_EVENTS_READ: Final = ",".join(
    ["involvedObject.kind=Pod", f"source!={naming.MANAGER}", *(f"reason!={each}" for each in _UNREAD)]
)
_SLIM: Final[dict[str, Slim]] = {"nodes": slim_node}
NODES_ALONE: Final = (Resource("nodes", NODES),)


def of_tasks(places: ApiPaths, instance: str, *, others: bool) -> tuple[Resource, ...]:
    """What to follow for the tasks of a backend; ``others``: and the pods of others, as far as they hold nodes."""
    tasks = naming.selector({**naming.ours(instance), naming.COMPONENT: naming.Component.TASK})
    return (
        Resource("pods", places.all(ResourceKind.POD), (("labelSelector", tasks),)),
        *NODES_ALONE,
        Resource("events", places.all(ResourceKind.EVENT), (("fieldSelector", _EVENTS_READ),)),
        *(other_pods(instance) if others else ()),
    )


class Mirrors:
    """Reflectors of one watch, and events by pod."""

    def __init__(
        self,
        calls: Calls,
        resources: Sequence[Resource],
        ours: Callable[[Object], bool] = lambda _: True,
    ) -> None:
        """``ours`` says which objects count, by namespace and by the label of their database; not of other pods."""
        self._calls = calls
        self._resources = resources
        self._ours = ours
        self._requests = SharedRequests()
        self._reflectors: list[Reflector] = []
        self._running: list[asyncio.Task[NoReturn]] = []
        self._events: dict[str, dict[str, Object]] = defaultdict(dict)

    @contextlib.asynccontextmanager
    async def following(self, handover: Handover) -> AsyncIterator[None]:
        """Follow the cluster for the length of a block."""
        self._reflectors = [
            Reflector(self._calls, each, handover, slim=self._slim_of(each.name)) for each in self._resources
        ]
        self._running = [asyncio.create_task(each.run()) for each in self._reflectors]
        try:
            yield
        finally:
            for each in self._running:
                each.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)
            self._running, self._reflectors = [], []

    async def take(self, handover: Handover) -> list[Change]:
        """What is new. Raises what a reflector died of: it never ends by itself."""
        news = asyncio.ensure_future(handover.take())
        try:
            await asyncio.wait({news, *self._running}, return_when=asyncio.FIRST_COMPLETED)
            for each in self._running:
                if each.done():
                    each.result()
            return [change for change in await news if self._counts(change)]
        finally:
            news.cancel()

    def _counts(self, change: Change) -> bool:
        if isinstance(change, ResourceListed) or change.resource in OTHER_PODS:
            return True
        return self._ours(change.last if isinstance(change, ObjectGone) else change.object)

    def slim(self, found: Object) -> Object:
        """What is kept of an object; of those that do not count no more than mirroring needs."""
        if self._ours(found):
            return without_managed_fields(found)
        about = {key: metadata(found).get(key) for key in ("name", "namespace", "uid", "resourceVersion")}
        whose = part(metadata(found), "labels").get(naming.DATABASE)
        return {"metadata": {**about, "labels": {naming.DATABASE: whose}} if whose else about}

    def _slim_task_pod(self, found: Object) -> Object:
        """A pod of a task, and what it requests."""
        kept = self.slim(found)
        return {**slim_pod(kept), HELD: self._requests.of(kept)}

    def _slim_of(self, resource: str) -> Slim:
        """What is kept of the objects of a resource."""
        if resource in OTHER_PODS:
            return slim_other_pod
        if resource == "pods":
            return self._slim_task_pod
        further = _SLIM.get(resource)
        return self.slim if further is None else lambda found: further(self.slim(found))

    @property
    def awaited(self) -> set[str]:
        """What has to be listed before anything is told."""
        return {each.name for each in self._resources if each.name != "events"}

    def health(self) -> list[ReflectorHealth]:
        """How well each resource is known now; empty while nothing is watched."""
        return [each.health for each in self._reflectors]

    def note_event(self, found: Object, *, gone: bool) -> str:
        """Remember an event, or forget it; the name of its pod."""
        about = part(found, "involvedObject")
        pod = str(about.get("uid") or "")
        of_pod = self._events[pod]
        if gone:
            of_pod.pop(uid_of(found), None)
        else:
            of_pod[uid_of(found)] = found
            while len(of_pod) > EVENTS_MAX:
                del of_pod[next(iter(of_pod))]
        if not of_pod:
            del self._events[pod]
        return str(about.get("name") or "")

    def events_of(self, pod_uid: str) -> list[Object]:
        """Events of a pod that are known."""
        return list(self._events.get(pod_uid, {}).values())
