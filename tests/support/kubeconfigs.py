"""Kubeconfig documents for tests."""

from __future__ import annotations

from typing import Any


def kubeconfig(server: str, *, token: str = "", user: dict[str, Any] | None = None, **cluster: Any) -> dict[str, Any]:
    """A document with one context, ``here``, of the namespace ``team``; extra keys go into its cluster."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "lab", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "me", "user": user if user is not None else {"token": token}}],
        "contexts": [{"name": "here", "context": {"cluster": "lab", "user": "me", "namespace": "team"}}],
        "current-context": "here",
    }
