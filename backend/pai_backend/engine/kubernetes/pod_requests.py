"""What pods take of their nodes, by what they request.

Source: Kubernetes documentation, "Resource Management for Pods and Containers", "Sidecar Containers" (which requests of
init containers count), "Pod Overhead".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Final, TypeAlias

from pai_backend.engine.kubernetes.objects import Object
from pai_backend.engine.kubernetes.quantities import quantity
from pai_backend.engine.kubernetes.status.view import items, part

Requests: TypeAlias = Mapping[str, Decimal]
"""Names of resources, as a pod's containers have them, and how much of each."""
HELD: Final = "pai-held"
"""Where a slim pod has its Requests."""
_NOTHING: Final[Requests] = {}
_SHAPES_MAX: Final = 1024  # different requests that are remembered


def requests_of(pod: Object) -> Requests:
    """How much of each resource a pod takes from its node. What cannot be read counts as nothing."""
    spec = part(pod, "spec")
    running: Requests = total(_requests(each) for each in items(spec, "containers"))
    beside, most = _NOTHING, _NOTHING
    for each in items(spec, "initContainers"):
        if each.get("restartPolicy") == "Always":
            beside = total((beside, _requests(each)))
            most = _most(most, beside)
        else:
            most = _most(most, total((beside, _requests(each))))
    of_pod = _requests(spec)  # beats the sum of its containers
    return total(({**_most(total((running, beside)), most), **of_pod}, _read(part(spec, "overhead"))))


class SharedRequests:
    """Requests of pods, of which most ask for the same: equal ones are read once and kept once."""

    def __init__(self) -> None:
        self._read: dict[str, Requests] = {}

    def of(self, pod: Object) -> Requests:
        """As :func:`requests_of`."""
        spec = part(pod, "spec")
        containers = [
            (each.get("resources"), each.get("restartPolicy"))
            for name in ("containers", "initContainers")
            for each in items(spec, name)
        ]
        shape = repr((len(items(spec, "containers")), containers, spec.get("resources"), spec.get("overhead")))
        known = self._read.get(shape)
        if known is None:
            if len(self._read) >= _SHAPES_MAX:
                self._read.clear()
            known = self._read[shape] = requests_of(pod)
        return known


class RequestsByNode:
    """Sums of what pods hold, by node."""

    def __init__(self) -> None:
        self._nodes: dict[str, str] = {}  # by uid
        self._held: defaultdict[str, dict[str, Requests]] = defaultdict(dict)

    def note(self, uid: str, node: str, requests: Requests) -> set[str]:
        """Take over what the pod of that uid holds, of no node when that is empty; the nodes of which pods hold another
        amount now.
        """
        before = self._nodes.pop(uid, "")
        held = self._held[before].pop(uid) if before else _NOTHING
        now = requests if node else _NOTHING
        if node:
            self._nodes[uid] = node
            self._held[node][uid] = now
        return set() if (before, held) == (node, now) else {name for name in (before, node) if name}

    def on(self, node: str) -> Requests:
        """How much of each resource they hold there together."""
        return total(self._held[node].values()) if node in self._held else _NOTHING


def total(amounts: Iterable[Requests]) -> Requests:
    """The sum."""
    found: defaultdict[str, Decimal] = defaultdict(Decimal)
    for each in amounts:
        for name, value in each.items():
            found[name] += value
    return found


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


def _most(one: Requests, other: Requests) -> Requests:
    return {name: max(one.get(name, Decimal()), other.get(name, Decimal())) for name in {*one, *other}}
