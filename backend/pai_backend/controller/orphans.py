"""Tasks that the engine has and the store does not know: taken back where they carry their job, kept otherwise.

Nothing here ends a task because it is unknown: a database restored from a backup knows less than what runs
(ADR 0025). A task ends here only when the store itself knows that its run is over, when an administrator asks for
it, or when it is older than the administrator allows.

What a task carries of its job is sealed, in two texts: of the job as it was submitted, which never changes and which
its tasks share; and of the job's state with the one task, made when the task is planned.
"""

from __future__ import annotations

import base64
import gzip
import json
import logging
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from pai_backend.access.keys import public_line
from pai_backend.engine.base import Engine, EngineError, Records, SshPlan, TaskSeen, TaskState
from pai_backend.lifecycle.effects import Effect, Forget, Stop
from pai_backend.model.base import Model
from pai_backend.model.errors import NoSuchJob, Unavailable
from pai_backend.model.ids import JobUid, TaskUid, job_of, slot_of, task_uid
from pai_backend.model.job import Desired, Job, Phase, State, Task
from pai_backend.model.spec import JobSpec
from pai_backend.store.base import CannotTakeBack, peer_key_slot
from pai_backend.store.orphans import Orphan
from pai_backend.store.taking_back import LostJob

if TYPE_CHECKING:
    from pai_backend.store.sql import Store

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
            source, filename, media_type = await self._store.jobs.document(job.uid)
            whole = JobRecord(
                uid=job.uid,
                spec=job.spec,
                source=base64.b64encode(source).decode("ascii"),
                filename=filename,
                media_type=media_type,
                secrets=dict(await self._store.jobs.secrets(job.uid)),
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


log = logging.getLogger(__name__)

_Carried = list[tuple[JobRecord, TaskRecord]]


class TakenBack(Exception):
    """Jobs were stored again. The tenure that did so ends; the next one recovers them as all others."""


class Orphans:
    """Those of one tenure."""

    def __init__(
        self,
        store: Store,
        engine: Engine,
        records: JobRecords,
        *,
        epoch: int,
        clock: Callable[[], datetime],
        keep: timedelta | None,
    ) -> None:
        """``keep``: a task that was an orphan for longer is ended; None: never."""
        self._store = store
        self._engine = engine
        self._records = records
        self._epoch = epoch
        self._clock = clock
        self._keep = keep
        self._seen: dict[TaskUid, TaskSeen] = {}
        self._kept: dict[TaskUid, Orphan] = {}  # as written
        self._fresh: set[TaskUid] = set()
        self._gone: set[TaskUid] = set()
        self._ending: set[TaskUid] = set()
        self._begun = False

    def note(self, seen: TaskSeen) -> None:
        """The engine reported a task that belongs to no unsettled job."""
        self._seen[seen.uid] = seen
        self._fresh.add(seen.uid)

    def drop(self, uid: TaskUid) -> None:
        """The engine has forgotten it, or a job has it."""
        self._fresh.discard(uid)
        if self._seen.pop(uid, None) is not None:
            self._gone.add(uid)

    async def review(self) -> list[Effect]:
        """Effects for orphans; called once the engine has listed its tasks.

        Raises TakenBack, Unavailable, Fenced and EngineError: all end the tenure, and the next one looks again.
        """
        if not self._begun:
            self._begun = True
            self._kept = {each.task: each for each in await self._store.recovery.orphans()}
            self._gone |= self._kept.keys() - self._seen.keys()
        effects = await self._look() if self._fresh else []
        if self._gone:
            await self._store.recovery.put((), self._gone, self._epoch)
            self._kept = {uid: each for uid, each in self._kept.items() if uid not in self._gone}
            self._gone.clear()
        return effects

    async def ends(self) -> list[Effect]:
        """Ends that were asked for since, by an administrator or by age."""
        if not self._kept:
            return []
        self._kept = {each.task: each for each in await self._store.recovery.orphans()}
        now, effects = self._clock(), []
        for uid, orphan in self._kept.items():
            if self._keep is not None and not orphan.ended_by and now - orphan.seen_at > self._keep:
                await self._store.recovery.end(uid, "age")
                log.warning("task %s, which the database does not know, is ended: it is kept for %s", uid, self._keep)
            elif not orphan.ended_by:
                continue
            effects += self._ended(uid)
        return effects

    def _ended(self, uid: TaskUid) -> list[Effect]:
        seen = self._seen.get(uid)
        if seen is None:
            return []
        if seen.state is TaskState.EXITED:
            return [Forget(uid)]
        first = uid not in self._ending
        self._ending.add(uid)
        return [Stop(uid)] if first else []

    async def _look(self) -> list[Effect]:
        """Decide about those that are new, or have changed."""
        fresh, self._fresh = self._fresh, set()
        effects: list[Effect] = []
        by_job: dict[JobUid, list[TaskUid]] = defaultdict(list)
        for uid in sorted(fresh):
            if (known := self._kept.get(uid)) is not None and known.ended_by:
                effects += self._ended(uid)
            else:
                by_job[job_of(uid)].append(uid)
        kept: dict[TaskUid, str] = {}
        back: list[Job] = []
        for job_uid, uids in by_job.items():
            stored = await self._stored(job_uid)
            lost = [uid for uid in uids if stored is None or not is_over(uid, stored)]
            effects += [self._cleared(uid) for uid in uids if uid not in lost]
            if lost:
                taken = await self._take_back(lost, stored, kept)
                back += [taken] if taken is not None else []
        await self._write(kept)
        if back:
            names = ", ".join(f"{job.user}~{job.name}" for job in back[:5]) + (" ..." if len(back) > 5 else "")
            raise TakenBack(f"{len(back)} jobs that ran unknown to the database were taken back: {names}")
        return effects

    def _cleared(self, uid: TaskUid) -> Effect:
        """The end of a task whose run is over for its own job: a start or stop that came late has left it."""
        seen = self._seen.pop(uid)
        return Forget(uid) if seen.state is TaskState.EXITED else Stop(uid)

    async def _stored(self, uid: JobUid) -> Job | None:
        try:
            return await self._store.jobs.get(uid)
        except NoSuchJob:
            return None

    async def _take_back(self, uids: list[TaskUid], stored: Job | None, kept: dict[TaskUid, str]) -> Job | None:
        """Store the job again from what its tasks carry; those that cannot be are put into ``kept`` with the reason."""
        carried: _Carried = []
        for uid in uids:
            try:
                carried.append(await self._records.read(uid, await self._engine.records(uid)))
            except (CannotTakeBack, EngineError) as error:
                kept[uid] = str(error)
        if not carried:
            return None
        try:
            lost = rebuilt(carried[0][0], [task for _, task in carried], stored)
            return await self._store.recovery.take_back(lost, self._epoch, self._clock())
        except CannotTakeBack as error:
            kept.update(dict.fromkeys(uids, str(error)))
            return None

    async def _write(self, kept: Mapping[TaskUid, str]) -> None:
        """Write down those that stay. Their own database is asked of what they carry."""
        if not kept:
            return
        now = self._clock()
        found = []
        for uid, why in kept.items():
            seen, known = self._seen[uid], self._kept.get(uid)
            database = known.database if known is not None else (await self._database_of(uid))
            first, by = (known.seen_at, known.ended_by) if known is not None else (now, "")
            found.append(Orphan(uid, database, seen.state.value, seen.since, first, why, by))
            if known is None:
                log.warning("task %s runs unknown to the database and is kept: %s", uid, why)
        await self._store.recovery.put(found, (), self._epoch)
        self._kept |= {each.task: each for each in found}

    async def _database_of(self, uid: TaskUid) -> str:
        try:
            return (await self._engine.records(uid)).database
        except EngineError:
            return ""


def is_unknown(uid: TaskUid, job: Job | None) -> bool:
    """Whether the engine has a task that the store knows nothing of, or has not placed: then it is older than that."""
    task = job.task(uid) if job is not None else None
    return task is None or task.phase in (Phase.QUEUED, Phase.BACKING_OFF)


def is_over(uid: TaskUid, job: Job) -> bool:
    """Whether the job, as the store has it, is past this run: it has ended, or the slot had a later run.

    False for a run that the store has not come to: the store is older than what runs.
    """
    if job.state.final:
        return True
    if job.task(uid) is not None:
        return False  # stored as not begun yet, or it would be no orphan
    slot, _, run = uid.rpartition("-")
    latest = [task.attempt for task in job.tasks if task.uid.rpartition("-")[0] == slot]
    return bool(latest) and run.isdigit() and int(run) <= max(latest)
