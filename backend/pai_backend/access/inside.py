"""Who else a task's SSH server lets in: the other tasks of its job, and users with a certificate for its name."""

from __future__ import annotations

from datetime import datetime

from pai_backend.access.broker.authority import accepted
from pai_backend.access.keys import task_host_key
from pai_backend.model.ids import JobUid
from pai_backend.store.base import Store, peer_key_slot
from pai_backend.store.grants import Act


async def peer_key(store: Store, job: JobUid) -> str:
    """That key (private PEM), made once for a job and sealed. Idempotent. Raises Unavailable."""
    return await task_host_key(store, peer_key_slot(job))


async def user_ca_lines(store: Store, job_alias: str, task_alias: str, now: datetime) -> tuple[str, ...]:
    """authorized_keys lines for whoever has a user's certificate for the job, or for this task of it.

    The task cannot ask whether a certificate was revoked: it is good there until it runs out. Raises Unavailable.
    Source: sshd(8), AUTHORIZED_KEYS FILE FORMAT, ``cert-authority`` and ``principals``.
    """
    options = f'cert-authority,principals="{job_alias},{task_alias}"'
    cas = await accepted(store, Act("", now))
    return tuple(f"{options} {ca.public_key} pai-user-ca-{ca.number}" for ca in cas)
