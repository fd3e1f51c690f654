"""Who a task's SSH server lets in beside the gateway: the other tasks of its job, and no user (ADR 0021)."""

from __future__ import annotations

from pai_backend.access.keys import public_line
from pai_backend.model.ids import JobUid


def peers_line(peer_key: str, job: JobUid) -> str:
    """The authorized_keys line by which the other tasks of a job come in: they all have this key (private PEM)."""
    return f"{public_line(peer_key)} pai-peers-{job}"
