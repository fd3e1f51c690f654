"""What a task carries of its job, sealed, so that a database that lost the job can take it back (ADR 0025).

Two texts: of the job as it was submitted, which never changes and which its tasks share; and of the job's state with
the one task, made when the task is planned.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from pai_backend.access.keys import public_line
from pai_backend.engine.base import Records, SshPlan
from pai_backend.model.base import Model
from pai_backend.model.errors import Unavailable
from pai_backend.model.ids import JobUid, TaskUid, job_of, task_uid
from pai_backend.model.job import Desired, Job, Phase, State, Task
from pai_backend.model.spec import JobSpec
from pai_backend.store.base import CannotTakeBack, Store, peer_key_slot, slot_of
from pai_backend.store.taking_back import LostJob

_ELSEWHERE = {"spec", "tasks"}
"""Fields of a job that are not in the record of its state."""


class JobRecord(Model):
    """A job as it was submitted."""

    uid: JobUid
    spec: JobSpec
    source: str
    """The document's bytes, in base64."""
    filename: str
    media_type: str
    secrets: dict[str, Any]


class TaskRecord(Model):
    """The state of a job when one of its tasks was planned, and that task."""

    identity: str
    job: dict[str, Any]
    task: Task
    keys: dict[str, str]
    """Slot to private SSH key (OpenSSH PEM) that the task runs with."""


class JobRecords:
    """Makes and reads records. Remembers those of jobs with tasks that are still to be planned."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._identity = ""
        self._of_jobs: dict[JobUid, str] = {}

    async def identity(self) -> str:
        """The identity of the database. Raises Unavailable."""
        self._identity = self._identity or await self._store.recovery.identity()
        return self._identity

    async def made(self, job: Job, task: Task, ssh: SshPlan | None) -> Records:
        """What the task is to carry. Raises Unavailable."""
        identity, recovery = await self.identity(), self._store.recovery
        if job.uid not in self._of_jobs:
            source, filename, media_type = await self._store.document(job.uid)
            whole = JobRecord(
                uid=job.uid,
                spec=job.spec,
                source=base64.b64encode(source).decode("ascii"),
                filename=filename,
                media_type=media_type,
                secrets=dict(await self._store.job_secrets(job.uid)),
            )
            self._of_jobs[job.uid] = await recovery.seal(_packed(whole))
        keys = {} if ssh is None else {slot_of(task.uid): ssh.host_key.get_secret_value()}
        if ssh is not None and ssh.peers is not None:
            keys[peer_key_slot(job.uid)] = ssh.peers.key.get_secret_value()
        state = job.model_dump(mode="json", exclude=_ELSEWHERE)
        one = TaskRecord(identity=identity, job=state, task=task, keys=keys)
        return Records(identity, self._of_jobs[job.uid], await recovery.seal(_packed(one)))

    def forget(self, uid: JobUid) -> None:
        """Keep nothing of a job that is done with."""
        self._of_jobs.pop(uid, None)

    async def read(self, uid: TaskUid, found: Records) -> tuple[JobRecord, TaskRecord]:
        """What a task carries. Raises CannotTakeBack, saying why."""
        if not found.job or not found.task:
            raise CannotTakeBack("it carries no record of its job")
        try:
            job = JobRecord.model_validate_json(_unpacked(await self._store.recovery.unseal(found.job)))
            task = TaskRecord.model_validate_json(_unpacked(await self._store.recovery.unseal(found.task)))
        except Unavailable:
            raise CannotTakeBack("its record is sealed with a key that this database does not have") from None
        except (ValidationError, OSError, EOFError, ValueError):
            raise CannotTakeBack("its record was made by another version of jupyter-pai") from None
        if job.uid != job_of(uid) or task.task.uid != uid:
            raise CannotTakeBack("its record is of another task")
        return job, task


def rebuilt(record: JobRecord, carried: Sequence[TaskRecord], stored: Job | None) -> LostJob:
    """The job in its latest attempt that any of its tasks knows.

    A task of that attempt which nothing tells of is put in as running without a place: what the engine says of it, or
    that it says nothing, decides. Raises CannotTakeBack when the state cannot be read.
    """
    latest = max(carried, key=lambda each: (each.job.get("attempt", 0), each.job.get("version", 0)))
    try:
        job = Job.model_validate({**latest.job, "spec": record.spec, "tasks": ()})
    except ValidationError:
        raise CannotTakeBack("its record was made by another version of jupyter-pai") from None
    if stored is not None and stored.desired is Desired.STOP:
        wish = {"desired": Desired.STOP, "stop_reason": stored.stop_reason, "stop_cause": stored.stop_cause}
        job = job.model_copy(update=wish)
    known = _runs(each.task for each in carried if each.task.job_attempt == job.attempt)
    if stored is not None and stored.attempt == job.attempt:
        known = _runs([*stored.tasks, *known.values()])
    tasks = []
    for number, role in enumerate(record.spec.task_roles):
        for index in range(role.instances):
            found = known.get((role.name, index))
            tasks.append(found if found is not None else _untold(job, role.name, number, index, known))
    keys = {slot: (pem, public_line(pem)) for each in carried for slot, pem in each.keys.items()}
    whole = job.model_copy(update={"tasks": tuple(tasks)})
    return LostJob(whole, base64.b64decode(record.source), record.filename, record.media_type, record.secrets, keys)


def _runs(tasks: Any) -> dict[tuple[str, int], Task]:
    """Of each slot the latest run."""
    found: dict[tuple[str, int], Task] = {}
    for task in tasks:
        before = found.get((task.role, task.index))
        if before is None or task.attempt >= before.attempt:
            found[task.role, task.index] = task
    return found


def _untold(job: Job, role: str, number: int, index: int, known: Mapping[tuple[str, int], Task]) -> Task:
    """A task that nothing tells of: of a gang it was started with the others; else it may be still to come."""
    gang = job.spec.scheduling.gang_allocation
    attempt = max((task.attempt for task in known.values()), default=job.attempt) if gang else job.attempt
    task = Task(
        uid=task_uid(job.uid, number, index, attempt), role=role, index=index, attempt=attempt, job_attempt=job.attempt
    )
    return task.model_copy(update={"state": State.RUNNING, "phase": Phase.RUNNING}) if gang else task


def _packed(value: Model) -> bytes:
    # Escaped to ASCII, because a secret may be text that is not Unicode.
    return gzip.compress(json.dumps(value.model_dump(mode="json")).encode("ascii"), 4, mtime=0)


def _unpacked(data: bytes) -> bytes:
    return gzip.decompress(data)
