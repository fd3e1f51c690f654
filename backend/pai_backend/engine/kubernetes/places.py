"""Where objects are on the API server: paths of collections and objects, for the namespace of tasks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import quote

NODES = "/api/v1/nodes"


class Kind(StrEnum):
    """Kinds of objects that tasks are made of; the value is the API's group and version, and the plural."""

    CONFIG_MAP = "api/v1 configmaps"
    EVENT = "api/v1 events"
    NETWORK_POLICY = "apis/networking.k8s.io/v1 networkpolicies"
    POD = "api/v1 pods"
    SECRET = "api/v1 secrets"
    SERVICE = "api/v1 services"


@dataclass(frozen=True)
class Places:
    """Paths in one namespace."""

    namespace: str

    def all(self, kind: Kind) -> str:
        """The collection."""
        group, plural = kind.value.split()
        return f"/{group}/namespaces/{quote(self.namespace, safe='')}/{plural}"

    def one(self, kind: Kind, name: str) -> str:
        """An object."""
        return f"{self.all(kind)}/{quote(name, safe='')}"


def node(name: str) -> str:
    """A node of the cluster."""
    return f"{NODES}/{quote(name, safe='')}"
