"""Who owns the objects of an attempt: its ConfigMap, so that one deletion collects them all.

Of a job with one task that is the task's Secret, which there is anyway: in a burst of jobs every object counts.
A ConfigMap, and no custom resource, because any cluster has it and no rights beyond a namespace are needed; and no
Job or workload of Kubernetes' own, whose controllers would act on our pods.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pai_backend.engine.kubernetes.objects import Object, name_of, uid_of


@dataclass(frozen=True)
class PodOwner:
    """The ConfigMap of an attempt, as it is in the cluster; of a job with one task its Secret, before that is made."""

    namespace: str
    name: str
    uid: str
    """Given by the API server when it was made; one of the same name made later has another. Empty: not made yet."""
    instance: str
    """Name of the backend, for labels."""


def metadata(
    owner: PodOwner, name: str, labels: Mapping[str, str], annotations: Mapping[str, str] | None = None
) -> Object:
    """The metadata of an object that the owner owns, or will: one that is not made yet has no name."""
    found: Object = {"name": name, "namespace": owner.namespace, "labels": dict(labels)}
    if owner.uid:
        found["ownerReferences"] = [_reference("ConfigMap", owner.name, owner.uid)]
    if annotations:
        found["annotations"] = dict(annotations)
    return found


def owned(body: Object, owner: Object) -> Object:
    """``body`` as the object that ``owner`` owns, as the API server has that."""
    reference = _reference(str(owner["kind"]), name_of(owner), uid_of(owner))
    return {**body, "metadata": {**body["metadata"], "ownerReferences": [reference]}}


def _reference(kind: str, name: str, uid: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": kind,
        "name": name,
        "uid": uid,
        # Of the kinds of owner this is the one that counts when a node is drained: a pod without is in the way.
        "controller": True,
        "blockOwnerDeletion": False,
    }
