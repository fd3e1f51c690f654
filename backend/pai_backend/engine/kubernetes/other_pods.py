"""What pods that are not tasks of this backend hold of nodes, by what they request.

Source: Kubernetes documentation, "Resource Management for Pods and Containers", "Sidecar Containers" (which requests of
init containers count), "Pod Overhead".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Final, TypeAlias

from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.objects import Object, metadata, uid_of
from pai_backend.engine.kubernetes.places import EVERYWHERE, ResourceKind
from pai_backend.engine.kubernetes.quantities import quantity
from pai_backend.engine.kubernetes.reflector import Resource
from pai_backend.engine.kubernetes.status.view import items, part

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


Requests: TypeAlias = Mapping[str, Decimal]
"""Names of resources, as a pod's containers have them, and how much of each."""
_NOTHING: Final[Requests] = {}
_HELD: Final = "pai-held"  # where a slim pod has its Requests


def requests_of(pod: Object) -> Requests:
    """How much of each resource a pod takes from its node. What cannot be read counts as nothing."""
    spec = part(pod, "spec")
    running: Requests = _sum(_requests(each) for each in items(spec, "containers"))
    beside, most = _NOTHING, _NOTHING
    for each in items(spec, "initContainers"):
        if each.get("restartPolicy") == "Always":
            beside = _sum((beside, _requests(each)))
            most = _most(most, beside)
        else:
            most = _most(most, _sum((beside, _requests(each))))
    of_pod = _requests(spec)  # beats the sum of its containers
    return _sum(({**_most(_sum((running, beside)), most), **of_pod}, _read(part(spec, "overhead"))))


def slim_other_pod(found: Object) -> Object:
    """What is kept of a pod: its node and its requests."""
    about = {key: metadata(found).get(key) for key in ("name", "namespace", "uid", "resourceVersion")}
    return {"metadata": about, "node": part(found, "spec").get("nodeName"), _HELD: requests_of(found)}


class OtherPods:
    """Sums of what slim pods hold, by node."""

    def __init__(self) -> None:
        self._nodes: dict[str, str] = {}  # by uid
        self._held: defaultdict[str, dict[str, Requests]] = defaultdict(dict)

    def note(self, found: Object, *, gone: bool) -> set[str]:
        """Take a pod over; the nodes of which others hold another amount now. Raises Malformed."""
        uid = uid_of(found)
        before = self._nodes.pop(uid, "")
        held = self._held[before].pop(uid) if before else _NOTHING
        node = "" if gone else str(found.get("node") or "")
        now = found.get(_HELD, _NOTHING) if node else _NOTHING
        if node:
            self._nodes[uid] = node
            self._held[node][uid] = now
        return set() if (before, held) == (node, now) else {name for name in (before, node) if name}

    def on(self, node: str) -> Requests:
        """How much of each resource they hold there together."""
        return _sum(self._held[node].values()) if node in self._held else _NOTHING


def _requests(container: Object) -> Requests:
    return _read(part(part(container, "resources"), "requests"))


def _read(amounts: Object) -> Requests:
    found = {}
    for name, value in amounts.items():
        try:
            found[name] = quantity(value)
        except ValueError:
            continue
    return found


def _sum(amounts: Iterable[Requests]) -> Requests:
    total: defaultdict[str, Decimal] = defaultdict(Decimal)
    for each in amounts:
        for name, value in each.items():
            total[name] += value
    return total


def _most(one: Requests, other: Requests) -> Requests:
    return {name: max(one.get(name, Decimal()), other.get(name, Decimal())) for name in {*one, *other}}
