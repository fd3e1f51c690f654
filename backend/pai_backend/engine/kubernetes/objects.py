"""Objects of the API as they come: plain JSON. Readers of the few fields that every object has, and what is dropped.

No generated models: ``bench/kubernetes/following.py`` measures both, and why is in docs/engine-kubernetes.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from pai_backend.engine.kubernetes.failures import Malformed as Malformed

Object: TypeAlias = dict[str, Any]  # an object of the API, or one of its parts, in its JSON form
Slim: TypeAlias = Callable[[Object], Object]  # what a mirror keeps of an object; must not fail for any object

INITIAL_EVENTS_END = "k8s.io/initial-events-end"  # annotation of the bookmark that ends a streamed list


def metadata(obj: Object) -> Object:
    """Its ``metadata``; empty when it has none."""
    found = obj.get("metadata")
    return found if isinstance(found, dict) else {}


def uid_of(obj: Object) -> str:
    """The uid, which no other object ever has. Raises Malformed."""
    return _text(obj, "uid")


def version_of(obj: Object) -> str:
    """The resource version, of an object or a list; opaque but for equality. Raises Malformed."""
    return _text(obj, "resourceVersion")


def name_of(obj: Object) -> str:
    """The name. Raises Malformed."""
    return _text(obj, "name")


def namespace_of(obj: Object) -> str:
    """The namespace; empty for what belongs to the cluster itself, such as a node."""
    return str(metadata(obj).get("namespace") or "")


def without_managed_fields(obj: Object) -> Object:
    """The object without the bookkeeping of server-side apply, about a third of a pod's bytes."""
    metadata(obj).pop("managedFields", None)
    return obj


def slim_pod(obj: Object) -> Object:
    """What reading a pod's state and removing it need: metadata, node, gates, logins of its images and status.

    The rest of ``spec`` is what we wrote.
    """
    spec = obj.get("spec")
    kept = {key: value for key, value in without_managed_fields(obj).items() if key != "spec"}
    needed = ("nodeName", "schedulingGates", "imagePullSecrets")
    kept["spec"] = {name: spec[name] for name in needed if spec.get(name)} if isinstance(spec, dict) else {}
    return kept


def _text(obj: Object, field: str) -> str:
    value = metadata(obj).get(field)
    if not isinstance(value, str) or not value:
        raise Malformed(f"an object of the API has no metadata.{field}")
    return value
