"""Kubeconfig documents for tests."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

NOTHING: Mapping[str, Any] = MappingProxyType({})


def kubeconfig(
    server: str, *, token: str = "", user: dict[str, Any] | None = None, cluster: Mapping[str, Any] = NOTHING
) -> dict[str, Any]:
    """A document with one context, ``here``, of the namespace ``team``; ``cluster`` are extra keys of its cluster."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "lab", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "me", "user": user if user is not None else {"token": token}}],
        "contexts": [{"name": "here", "context": {"cluster": "lab", "user": "me", "namespace": "team"}}],
        "current-context": "here",
    }
