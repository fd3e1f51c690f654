"""The holder record of a cluster: a ConfigMap in the namespace of tasks, written at the version that was read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pai_backend.engine.base import EngineError
from pai_backend.engine.holding import EngineHolder
from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.calls import Calls, Patch
from pai_backend.engine.kubernetes.ending import find
from pai_backend.engine.kubernetes.failures import AlreadyExists, ApiConflict
from pai_backend.engine.kubernetes.objects import Object, version_of
from pai_backend.engine.kubernetes.places import ApiPaths, ResourceKind
from pai_backend.engine.kubernetes.status.view import part

KEY: Final = "holder"
TRIES: Final = 20  # of a change that others may come before

ASK_S: Final = 5.0  # of one request: the caller asks again, and tells meanwhile that the cluster is away

Change = Callable[[EngineHolder | None], EngineHolder]


class HolderMap:
    """The record of the backends of one name in one namespace."""

    def __init__(self, calls: Calls, places: ApiPaths, instance: str) -> None:
        self._calls = calls
        self._places = places
        self._instance = instance
        self._name = naming.holder_name(instance)
        self.place = f"the name {instance} in the namespace {places.namespace} (ConfigMap {self._name})"

    async def read(self) -> EngineHolder | None:
        """The record; None when there is none. Raises EngineError."""
        found = await find(self._calls, self._places.one(ResourceKind.CONFIG_MAP, self._name), deadline_s=ASK_S)
        return None if found is None else self._of(found)

    async def change(self, change: Change, *, unreadable_is_none: bool = False) -> EngineHolder:
        """Write what ``change`` makes of the record, and return it. Raises what ``change`` raises, and EngineError."""
        path = self._places.one(ResourceKind.CONFIG_MAP, self._name)
        for _ in range(TRIES):
            found = await find(self._calls, path, deadline_s=ASK_S)
            made = change(self._held(found, unreadable_is_none=unreadable_is_none))
            data = {"data": {KEY: made.model_dump_json()}}
            try:
                if found is None:
                    await self._calls.create(
                        self._places.all(ResourceKind.CONFIG_MAP), {**self._empty(), **data}, deadline_s=ASK_S
                    )
                else:
                    about = {"metadata": {"resourceVersion": version_of(found)}}
                    await self._calls.patch(path, {**about, **data}, Patch.MERGE, deadline_s=ASK_S)
            except (AlreadyExists, ApiConflict):
                continue  # another controller came first: decide on what it wrote
            return made
        raise EngineError(f"the ConfigMap {self._name} keeps changing while it is to be written")

    def _held(self, found: Object | None, *, unreadable_is_none: bool) -> EngineHolder | None:
        if found is None:
            return None
        try:
            return self._of(found)
        except EngineError:
            if unreadable_is_none:
                return None
            raise

    def _of(self, found: Object) -> EngineHolder:
        return EngineHolder.read(str(part(found, "data").get(KEY) or ""), self.place)

    def _empty(self) -> Object:
        labels = {**naming.ours(self._instance), naming.COMPONENT: naming.Component.HOLDER}
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": self._name, "namespace": self._places.namespace, "labels": labels},
        }
