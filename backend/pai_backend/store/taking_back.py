"""Taking back a job that runs and that this database does not know, or knows in an earlier state (ADR 0025).

A database restored from a backup lacks what happened since. What runs carries the job, sealed with the keys of the
database, so another cannot have made it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from pai_backend.model.accounting import stay_of
from pai_backend.model.ids import PortLease, TaskUid, slot_of
from pai_backend.model.job import Job, NewEvent, Task
from pai_backend.store import accounting, events, lease, ports, task_keys
from pai_backend.store.base import CannotTakeBack
from pai_backend.store.cipher import Cipher
from pai_backend.store.rows import changing_values, document_values, fixed_values, task_values
from pai_backend.store.tables import deletions, documents, jobs, tasks

TAKEN_BACK = "job.taken-back"
"""Type of the event that tells of it: docs/events.md."""


@dataclass(frozen=True)
class LostJob:
    """A job as its tasks carry it."""

    job: Job
    source: bytes
    filename: str
    media_type: str
    secrets: Mapping[str, Any]
    keys: Mapping[str, tuple[str, str]]
    """Slot to (private PEM, public line) of the SSH keys that its tasks run with."""


def take_back(conn: Connection, lost: LostJob, cipher: Cipher, epoch: int, at: datetime) -> Job:
    """Store the job as it is carried; returns it with its version. Raises CannotTakeBack, Fenced.

    Ports that its tasks hold become theirs.
    """
    lease.require(conn, epoch)
    job = lost.job
    head = conn.execute(
        select(jobs.c.version, jobs.c.last_seq, jobs.c.alias).where(jobs.c.uid == job.uid)
    ).one_or_none()
    if conn.execute(select(deletions.c.job).where(deletions.c.job == job.uid)).first() is not None:
        raise CannotTakeBack("its job was deleted")
    _require_free_names(conn, job)
    version, last_seq = (job.version, 0) if head is None else (max(job.version, head.version), head.last_seq)
    stored = job.model_copy(update={"version": version + 1})
    told = NewEvent(TAKEN_BACK, {"attempt": job.attempt, "tasks": [task.name for task in job.tasks]})
    values = {**changing_values(stored), "version": stored.version, "last_seq": last_seq + 1, "dirty": True}
    if head is None:
        conn.execute(insert(jobs).values({**fixed_values(stored), **values}))
        sealed = document_values(job, lost.source, lost.filename, lost.media_type, lost.secrets, cipher)
        conn.execute(insert(documents).values(sealed))
    else:
        conn.execute(update(jobs).where(jobs.c.uid == job.uid).values(values))
    for row in task_values(job, job.tasks):
        same = [tasks.c[name] == row[name] for name in ("job", "attempt", "role_number", "task_index")]
        conn.execute(delete(tasks).where(*same))
        conn.execute(insert(tasks).values(row))
    events.append(conn, events.event_values(job.uid, job.user, last_seq, [told], at))
    staying = [stay for task in job.tasks if (stay := stay_of(job, task)) is not None]
    accounting.note(conn, [accounting.Change(at, [task.uid for task in job.tasks], staying)])
    task_keys.keep(conn, {slot: (cipher.sealed(pem.encode()), public) for slot, (pem, public) in lost.keys.items()}, ())
    _lease_ports(conn, job)
    return stored


def _require_free_names(conn: Connection, job: Job) -> None:
    """Raises CannotTakeBack when a job that was submitted since has the name or the alias."""
    others = select(jobs.c.uid).where(jobs.c.uid != job.uid)
    if conn.execute(others.where(jobs.c.name == job.name, jobs.c.username == job.user)).first() is not None:
        raise CannotTakeBack(f"{job.user} has another job named {job.name} by now")
    if conn.execute(others.where(jobs.c.alias == job.alias)).first() is not None:
        raise CannotTakeBack(f"another job has its alias {job.alias} by now")


def _lease_ports(conn: Connection, job: Job) -> None:
    wanted = [lease for task in job.tasks for lease in leases_of(task)]
    owners = [slot_of(task.uid) for task in job.tasks]
    leases = ports.load(conn, owners, wanted)
    # A job that has one here had it at the backup, and its task has ended since: nothing else explains this one.
    leases.seize(owners, wanted)
    leases.write(conn)


def leases_of(task: Task) -> list[PortLease]:
    """The ports that a placed task holds."""
    place, owner = task.placement, slot_of(TaskUid(task.uid))
    if place is None:
        return []
    return [PortLease(place.machine, port, owner) for found in place.ports.values() for port in found]
