"""Taking everything of a backend's tasks out of a cluster, whether that backend is still there or not.

Its finalizer keeps each pod until an exit is recorded; with no process left to record it a pod, and its namespace,
would be Terminating for ever.
"""

from __future__ import annotations

from typing import Final

from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.access import Access
from pai_backend.engine.kubernetes.calls import Calls
from pai_backend.engine.kubernetes.client import connect
from pai_backend.engine.kubernetes.ending import remove_pod
from pai_backend.engine.kubernetes.namespaces import Namespaces, unknown
from pai_backend.engine.kubernetes.objects import name_of, uid_of
from pai_backend.engine.kubernetes.places import ApiPaths, ResourceKind
from pai_backend.model.cluster_settings import NamespacePer

KINDS: Final = (
    ResourceKind.POD,
    ResourceKind.SECRET,
    ResourceKind.CONFIG_MAP,
    ResourceKind.SERVICE,
    ResourceKind.NETWORK_POLICY,
)
"""All that tasks are made of. Pods first: what they use goes after them."""


async def remove_all(access: Access, per: NamespacePer, instance: str) -> int:
    """Delete all that the backend of this name has made; how many objects. Raises AccessError, EngineError."""
    client = await connect(access)
    try:
        calls, count = Calls(client), 0
        for places in await Namespaces(client.namespace, per, unknown).all(calls):
            count += await remove_in(calls, places, instance)
        return count
    finally:
        await client.aclose()


async def remove_in(calls: Calls, places: ApiPaths, instance: str) -> int:
    """The same in one namespace. Idempotent: what is gone already is as it should be."""
    query, count = (("labelSelector", naming.selector(naming.ours(instance))),), 0
    for kind in KINDS:
        for found in [each async for each in calls.list(places.all(kind), query=query)]:
            if kind is ResourceKind.POD:
                await remove_pod(calls, places, name_of(found), uid_of(found))
            else:
                await calls.delete(places.one(kind, name_of(found)), uid=uid_of(found))
            count += 1
    return count
