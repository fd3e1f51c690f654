"""What pods that are not tasks of this backend hold of nodes, by what they request; see ``pod_requests``."""

from __future__ import annotations

from typing import Final

from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.objects import Object, metadata, uid_of
from pai_backend.engine.kubernetes.places import EVERYWHERE, ResourceKind
from pai_backend.engine.kubernetes.pod_requests import HELD, RequestsByNode, requests_of
from pai_backend.engine.kubernetes.reflector import Resource
from pai_backend.engine.kubernetes.status.view import part

OTHER_PODS: Final = ("other pods", "pods of other backends")
"""What mirrors, changes and messages call them."""
_RUNNING: Final = ("fieldSelector", "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed")
_WITHOUT: Final = (
    "Tasks may be sent where pods of others have taken the room. It needs `list` and `watch` of `pods` in all "
    "namespaces; with `kubernetes.nodes.count_other_pods: false` it is not asked for."
)


def other_pods(instance: str) -> tuple[Resource, ...]:
    """What to follow: pods that no backend makes, and those of other backends than the one of this name.

    So the server leaves out tasks of this one, which are most of all pods where it is busy. A selector has no "or".
    """
    ours = naming.ours(instance)
    strangers = f"{naming.MANAGED_BY}!={ours[naming.MANAGED_BY]}"
    backends = f"{naming.MANAGED_BY}={ours[naming.MANAGED_BY]},{naming.INSTANCE}!={ours[naming.INSTANCE]}"
    path = EVERYWHERE.all(ResourceKind.POD)
    return tuple(
        Resource(name, path, (("labelSelector", labels), _RUNNING), without=_WITHOUT)
        for name, labels in zip(OTHER_PODS, (strangers, backends), strict=True)
    )


def slim_other_pod(found: Object) -> Object:
    """What is kept of a pod: its node and its requests."""
    about = {key: metadata(found).get(key) for key in ("name", "namespace", "uid", "resourceVersion")}
    return {"metadata": about, "node": part(found, "spec").get("nodeName"), HELD: requests_of(found)}


def note_other_pod(held: RequestsByNode, found: Object, *, gone: bool) -> set[str]:
    """Take a slim pod over; the nodes of which others hold another amount now. Raises Malformed."""
    return held.note(uid_of(found), "" if gone else str(found.get("node") or ""), found.get(HELD, {}))
