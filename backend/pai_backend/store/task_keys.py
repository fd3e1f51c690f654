"""Key pairs that the backend makes for jobs and their tasks, sealed: host keys of task slots, and the jobs' own."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import TypeAlias

from sqlalchemy import Connection, bindparam, delete, insert, select

from pai_backend.model.errors import ReadOnlyJob
from pai_backend.model.ids import JobUid, TaskUid, job_of
from pai_backend.model.job import State
from pai_backend.model.text import Text
from pai_backend.store import audit
from pai_backend.store.base import job_key_slots, peer_key_slot
from pai_backend.store.cipher import Sealed
from pai_backend.store.grants import Act, JobKey
from pai_backend.store.lookup import no_such_job
from pai_backend.store.people_tables import audit_events
from pai_backend.store.repository import Repository
from pai_backend.store.tables import jobs
from pai_backend.store.tables import task_keys as table

Made: TypeAlias = tuple[Sealed, str]
"""A new key: sealed, and its public line."""

MOST = 1000
"""Names in one statement: databases take some ten thousand values in one."""

_OF_FINGERPRINT = select(table.c.owner).where(table.c.fingerprint == bindparam("fingerprint_"))
_JOB = select(jobs.c.uid, jobs.c.username, jobs.c.state).where(jobs.c.uid == bindparam("uid_"))
_KEPT = select(table.c.owner, table.c.private_pem).where(table.c.owner.in_(bindparam("owners_", expanding=True)))
_DELETE = delete(table).where(table.c.owner.in_(bindparam("owners_", expanding=True)))
_DELETE_TAKEN = delete(table).where(table.c.fingerprint == bindparam("fingerprint_"))
_TAKEN = select(audit_events.c.subject, audit_events.c.username, audit_events.c.job).where(
    audit_events.c.type == "job-key.taken",
    audit_events.c.detail == bindparam("detail_"),
    audit_events.c.subject.in_(select(table.c.fingerprint).where(table.c.fingerprint.is_not(None))),
)
_INSERT = insert(table)


def kept(conn: Connection, owners: Collection[str]) -> dict[str, bytes]:
    """The keys of these slots that are kept, sealed."""
    found: dict[str, bytes] = {}
    for some in _some(owners):
        found |= {row.owner: bytes(row.private_pem) for row in conn.execute(_KEPT, {"owners_": some})}
    return found


def keep(conn: Connection, made: Mapping[str, Made], others: Collection[str] = ()) -> dict[str, bytes]:
    """Keep new keys of those slots that have none; what is kept of these slots, and of others, sealed.

    Raises ReadOnlyJob, with nothing kept, for the own key of a job that has ended: it would never be deleted.
    """
    found = kept(conn, [*made, *others])
    rows = []
    for owner in made.keys() - found.keys():
        uid = job_of(TaskUid(owner))
        logs_in = owner in job_key_slots(uid)
        if logs_in or owner == peer_key_slot(uid):
            _require_living(conn, uid)
        sealed, public = made[owner]
        values = {"owner": owner, "private_pem": sealed.data, "public": public, "sealed_by": sealed.by}
        rows.append({**values, "fingerprint": _fingerprint(public) if logs_in else None})
    if rows:
        conn.execute(_INSERT, rows)
    return found | {owner: made[owner][0].data for owner in made.keys() - found.keys()}


def forget_own(conn: Connection, ended: Collection[JobUid]) -> None:
    """Delete the jobs' own key pairs; they have ended."""
    conn.execute(_DELETE, {"owners_": [owner for job in ended for owner in (*job_key_slots(job), peer_key_slot(job))]})


def end_of_token(conn: Connection, digest: str, act: Act) -> None:
    """Delete the jobs' own keys that an application token has taken: new ones are made when they are asked for."""
    for row in conn.execute(_TAKEN, {"detail_": audit.by_token(digest)}).all():
        conn.execute(_DELETE_TAKEN, {"fingerprint_": row.subject})
        audit.note(conn, "job-key.replaced", row.username, row.subject, act, job=row.job)


def job_of_key(conn: Connection, fingerprint: str) -> JobKey | None:
    """The job whose own key that is, unless it has ended."""
    for (owner,) in conn.execute(_OF_FINGERPRINT, {"fingerprint_": fingerprint}):
        job = conn.execute(_JOB, {"uid_": job_of(owner)}).one_or_none()
        if job is not None and not State(job.state).final:
            return JobKey(JobUid(job.uid), job.username, fingerprint)
    return None


def _require_living(conn: Connection, uid: JobUid) -> None:
    job = conn.execute(_JOB, {"uid_": uid}).one_or_none()
    if job is None:
        raise no_such_job(uid)
    if State(job.state).final:
        raise ReadOnlyJob(Text("The job has ended, and its key with it."), hint=Text("Submit it again to enter it."))


def _some(owners: Collection[str]) -> Iterator[list[str]]:
    whole = list(owners)
    for start in range(0, len(whole), MOST):
        yield whole[start : start + MOST]


def _fingerprint(public: str) -> str:
    """OpenSSH's SHA-256 fingerprint of a ``type base64 comment`` line."""
    digest = hashlib.sha256(base64.b64decode(public.split()[1])).digest()
    return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"


class TaskKeys(Repository):
    """Key pairs of jobs and of their tasks' slots."""

    async def get(self, owner: str) -> str | None:
        """The stored SSH host key (OpenSSH private PEM) of a task slot, if made already."""
        return (await self.kept((owner,))).get(owner)

    async def kept(self, owners: Collection[str]) -> dict[str, str]:
        """Those of several slots, by slot, that have been made already."""
        found = await self._database.read(partial(kept, owners=owners))
        return {owner: await self._text(sealed) for owner, sealed in found.items()}

    async def put(self, owner: str, private_pem: str, public: str) -> str:
        """Store a host key unless one is there; returns the one that is kept."""
        return (await self.keep({owner: (private_pem, public)}))[owner]

    async def keep(self, made: Mapping[str, tuple[str, str]], others: Collection[str] = ()) -> dict[str, str]:
        """Store new keys, (private PEM, public line) by slot, of slots that have none.

        Returns what is kept of these slots, and of others that have keys. Raises ReadOnlyJob for the own key of a job
        that has ended, with nothing stored.
        """
        sealed = {owner: (self._ring.cipher.sealed(pem.encode()), public) for owner, (pem, public) in made.items()}
        change = partial(keep, made=sealed, others=others)
        kept = await self._writer.run(change, announce=False)
        return {
            owner: made[owner][0] if owner in sealed and data == sealed[owner][0].data else await self._text(data)
            for owner, data in kept.items()
        }
