"""Who owns the objects of an attempt: its ConfigMap, so that one deletion collects them all.

A ConfigMap, and no custom resource, because any cluster has it and no rights beyond a namespace are needed; and no
Job or workload of Kubernetes' own, whose controllers would act on our pods.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pai_backend.engine.kubernetes.objects import Object


@dataclass(frozen=True)
class Owner:
    """The ConfigMap of an attempt, as it is in the cluster."""

    namespace: str
    name: str
    uid: str
    """Given by the API server when it was made; a ConfigMap of the same name made later has another."""
    instance: str
    """Name of the backend, for labels."""


def metadata(
    owner: Owner, name: str, labels: Mapping[str, str], annotations: Mapping[str, str] | None = None
) -> Object:
    """The metadata of an object that the attempt's ConfigMap owns."""
    reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": owner.name,
        "uid": owner.uid,
        # Of the kinds of owner this is the one that counts when a node is drained: a pod without is in the way.
        "controller": True,
        "blockOwnerDeletion": False,
    }
    found: Object = {"name": name, "namespace": owner.namespace, "labels": dict(labels), "ownerReferences": [reference]}
    if annotations:
        found["annotations"] = dict(annotations)
    return found
