"""Who else a task's SSH server lets in: the other tasks of its job, and users with a certificate for its name."""

from __future__ import annotations

from collections.abc import Sequence

from pai_backend.access.keys import public_line
from pai_backend.model.ids import JobUid
from pai_backend.store.grants import UserCa


def peers_line(peer_key: str, job: JobUid) -> str:
    """The authorized_keys line by which the other tasks of a job come in: they all have this key (private PEM)."""
    return f"{public_line(peer_key)} pai-peers-{job}"


def user_ca_lines(cas: Sequence[UserCa], job_alias: str, task_alias: str) -> tuple[str, ...]:
    """authorized_keys lines for whoever has a user's certificate for the job, or for this task of it.

    ``cas`` are accepted. The task cannot ask whether a certificate was revoked: it is good there until it runs out.
    Source: sshd(8), AUTHORIZED_KEYS FILE FORMAT, ``cert-authority`` and ``principals``.
    """
    options = f'cert-authority,principals="{job_alias},{task_alias}"'
    return tuple(f"{options} {ca.public_key} pai-user-ca-{ca.number}" for ca in cas)
