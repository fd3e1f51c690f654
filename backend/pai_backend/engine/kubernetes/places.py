"""Where objects are on the API server: paths of collections and objects, in a namespace or in all of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import quote

from pai_backend.engine.kubernetes.objects import Object, namespace_of

NODES = "/api/v1/nodes"
NAMESPACES = "/api/v1/namespaces"


class ResourceKind(StrEnum):
    """Kinds of objects that tasks are made of; the value is the API's group and version, and the plural."""

    CONFIG_MAP = "api/v1 configmaps"
    EVENT = "api/v1 events"
    NETWORK_POLICY = "apis/networking.k8s.io/v1 networkpolicies"
    POD = "api/v1 pods"
    POD_EVENT = "apis/events.k8s.io/v1 events"
    POD_METRICS = "apis/metrics.k8s.io/v1beta1 pods"
    SECRET = "api/v1 secrets"
    SERVICE = "api/v1 services"


@dataclass(frozen=True)
class ApiPaths:
    """Paths in one namespace; without a name, those of collections in all namespaces."""

    namespace: str

    def all(self, kind: ResourceKind) -> str:
        """The collection."""
        group, plural = kind.value.split()
        return (
            f"/{group}/namespaces/{quote(self.namespace, safe='')}/{plural}" if self.namespace else f"/{group}/{plural}"
        )

    def one(self, kind: ResourceKind, name: str) -> str:
        """An object."""
        return f"{self.all(kind)}/{quote(name, safe='')}"


EVERYWHERE = ApiPaths("")


def places_of(found: Object) -> ApiPaths:
    """Where an object is that was read."""
    return ApiPaths(namespace_of(found))


def namespace(name: str) -> str:
    """A namespace of the cluster."""
    return f"{NAMESPACES}/{quote(name, safe='')}"


def node(name: str) -> str:
    """A node of the cluster."""
    return f"{NODES}/{quote(name, safe='')}"


def lease(name: str) -> str:
    """The Lease by which a node says that it is there."""
    return f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{quote(name, safe='')}"
