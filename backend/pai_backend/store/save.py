"""New jobs, and the controller's decisions: many of either in one transaction.

New jobs cost two look-ups and four inserts, however many come together. Of decisions each is judged on top of those
before it in the group, as if each had a transaction of its own; then all accepted ones are written with a handful of
statements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, insert, literal, select, union_all, update

from pai_backend.model.accounting import changes
from pai_backend.model.alias import job_alias
from pai_backend.model.attempts import Ran, ran
from pai_backend.model.errors import AddressTaken, Bug, InvalidParameters, NameTaken
from pai_backend.model.ids import JobUid, PortLease
from pai_backend.model.job import Job, NewEvent, Task
from pai_backend.model.text import Text
from pai_backend.store import accounting, events, idle_clocks, lease, ports, run_times, sharing, task_keys
from pai_backend.store.base import Conflict, Fenced, PortTaken
from pai_backend.store.cipher import Cipher
from pai_backend.store.rows import Values, changing_values, document_values, fixed_values, search_text, task_values
from pai_backend.store.tables import addresses, documents, jobs, tasks

_NAMES = union_all(
    select(jobs.c.name, jobs.c.username, literal(False).label("is_address")).where(
        jobs.c.name.in_(bindparam("names", expanding=True))
    ),
    select(addresses.c.name, addresses.c.username, literal(True)).where(
        addresses.c.name.in_(bindparam("names", expanding=True))
    ),
)
_ALIASES = union_all(
    select(jobs.c.alias).where(jobs.c.alias.in_(bindparam("aliases", expanding=True))),
    select(addresses.c.alias).where(addresses.c.alias.in_(bindparam("aliases", expanding=True))),
)
_INSERT_JOB = insert(jobs)
_INSERT_DOCUMENT = insert(documents)
_INSERT_TASK = insert(tasks)
_MOST_GPUS = 2**31 - 1  # of PostgreSQL's integer


@dataclass(frozen=True, eq=False)
class Submission:
    """A job ready to be inserted: everything that needs no database is done already."""

    job: Job
    candidates: tuple[str, ...]
    values: Values
    document: Values
    tasks: list[Values]
    events: list[Values]
    reserved: str = ""
    """An alias that is reserved for it."""


def prepare(
    job: Job,
    source: bytes,
    filename: str,
    media_type: str,
    new: Sequence[NewEvent],
    secrets: Mapping[str, Any],
    cipher: Cipher,
) -> Submission:
    """Turn a job into rows. Raises DocumentError or InvalidParameters for text that cannot be stored."""
    _check(job, filename, media_type)
    stored = job.model_copy(update={"version": job.version + 1})
    return Submission(
        job=stored,
        candidates=alias_candidates(job),
        values={
            **fixed_values(stored),
            **changing_values(stored),
            "version": stored.version,
            "last_seq": len(new),
            "dirty": True,
        },
        document=document_values(job, source, filename, media_type, secrets, cipher),
        tasks=task_values(job, job.tasks),
        events=events.event_values(job.uid, job.user, 0, new, job.submitted_at),
    )


def _check(job: Job, filename: str, media_type: str) -> None:
    """Refuse what one of the databases would refuse, before it could spoil the others' transaction."""
    for what, text in (("job name", job.name), ("file name", filename), ("media type", media_type)):
        if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
            raise InvalidParameters(
                Text("The {what} has a character that cannot be stored.", what=what),
                hint=Text("Remove NUL and half surrogate pairs from it."),
            )
    gpus = sum(role.instances * role.resources.gpus for role in job.spec.task_roles)
    if gpus > _MOST_GPUS:
        raise InvalidParameters(
            Text("The job asks for {gpus} GPUs.", gpus=gpus),
            hint=Text("Ask for at most {most_gpus}.", most_gpus=_MOST_GPUS),
        )


def alias_candidates(job: Job) -> tuple[str, ...]:
    """The proposal, then the name with ever more of the uid; the last has all of it, which cannot be guessed."""
    digits = job.uid[1:]
    return (job.alias, *(job_alias(job.name, digits[:length]) for length in (4, 8, 12, 16)))


def submit_all(conn: Connection, submissions: Sequence[Submission]) -> list[Job | Exception]:
    """Insert them; the outcome of one whose name its user has already is NameTaken."""
    found = conn.execute(_NAMES, {"names": [s.job.name for s in submissions]}).all()
    names = {(row.username, row.name) for row in found if not row.is_address}
    reserved = {(row.username, row.name) for row in found if row.is_address}
    wanted = [alias for s in submissions for alias in s.candidates]
    aliases = set(conn.execute(_ALIASES, {"aliases": wanted}).scalars())
    outcomes: list[Job | Exception] = []
    accepted: list[Submission] = []
    rows: list[Values] = []
    for submission in submissions:
        job = submission.job
        if (job.user, job.name) in names:
            outcomes.append(name_taken(job))
            continue
        if (job.user, job.name) in reserved and job.spec.address != job.name:
            outcomes.append(is_address(job))
            continue
        free = (text for text in submission.candidates if text not in aliases or text == submission.reserved)
        alias = next(free, None)
        if alias is None:
            raise Bug(f"every alias of job {job.uid} is taken: its uid is not random")
        names.add((job.user, job.name))
        aliases.add(alias)
        accepted.append(submission)
        if alias != job.alias:
            job = job.model_copy(update={"alias": alias})
        rows.append({**submission.values, "alias": alias, "search": search_text(job)})
        outcomes.append(job)
    if accepted:
        _insert(conn, rows, accepted)
    return outcomes


def _insert(conn: Connection, rows: list[Values], accepted: Sequence[Submission]) -> None:
    conn.execute(_INSERT_JOB, rows)
    conn.execute(_INSERT_DOCUMENT, [s.document for s in accepted])
    new_tasks = [row for s in accepted for row in s.tasks]
    if new_tasks:
        conn.execute(_INSERT_TASK, new_tasks)
    events.append(conn, [row for s in accepted for row in s.events])


def is_address(job: Job) -> AddressTaken:
    """The error for a name that means whichever job holds it."""
    return AddressTaken(
        Text("{job} is a workspace name of {user}'s.", job=job.name, user=job.user),
        hint=Text(
            "Let the job hold it: `--address {job}`. Or give the job another name: `--name "
            "OTHER`. Or release it: `pai addresses release {job}`.",
            job=job.name,
        ),
    )


def name_taken(job: Job) -> NameTaken:
    """The error for a name that another job of the user's has."""
    return NameTaken(
        Text("{user} already has a job named {job}.", user=job.user, job=job.name),
        hint=Text(
            "Give this one another name: `pai submit FILE --name OTHER`, or `name=OTHER` in the "
            "REST query. Or let it take the place of that job, which is stopped: `--replace`, or "
            "`replace=true`."
        ),
    )


_HEADS = select(jobs.c.uid, jobs.c.version, jobs.c.last_seq).where(jobs.c.uid.in_(bindparam("uids", expanding=True)))
# Values come with each execution, so one compiled statement serves all saves.
_UPDATE_JOB = update(jobs).where(jobs.c.uid == bindparam("uid_"), jobs.c.version == bindparam("seen_"))
_UPDATE_TASK = (
    update(tasks)
    .where(
        tasks.c.job == bindparam("job_"),
        tasks.c.attempt == bindparam("attempt_"),
        tasks.c.role_number == bindparam("role_number_"),
        tasks.c.task_index == bindparam("task_index_"),
    )
    .values(body=bindparam("body"))
)


@dataclass(frozen=True, eq=False)
class Decision:
    """A save as the controller asked for it."""

    job: Job
    seen: Job
    epoch: int
    events: Sequence[NewEvent]
    at: datetime
    lease: Sequence[PortLease] = ()
    release: Sequence[str] = ()


@dataclass
class _Head:
    """Where a job's row is, including what this transaction is about to write."""

    version: int
    last_seq: int


@dataclass
class _Writes:
    """Rows to write at the end, in order. A job appears once for each of its saves."""

    jobs: list[Values] = field(default_factory=list)
    new_tasks: list[Values] = field(default_factory=list)
    changed_tasks: list[Values] = field(default_factory=list)
    events: list[Values] = field(default_factory=list)
    ended: list[tuple[Ran, datetime]] = field(default_factory=list)
    stays: list[accounting.Change] = field(default_factory=list)
    finished: list[JobUid] = field(default_factory=list)
    """Jobs that can no longer be entered: all access to them ends with the same transaction."""
    watched: list[JobUid] = field(default_factory=list)
    """Of these, those with an idle timeout."""

    def carry_out(self, conn: Connection) -> None:
        """Execute them. Raises Bug when a row is not as it was read under the write lock."""
        if self.jobs:
            done = conn.execute(_UPDATE_JOB, self.jobs).rowcount
            if done not in (len(self.jobs), -1):  # -1: asyncpg does not count for several
                raise Bug(f"{done} of {len(self.jobs)} jobs were updated under the write lock")
        if self.new_tasks:
            conn.execute(_INSERT_TASK, self.new_tasks)
        if self.changed_tasks:
            conn.execute(_UPDATE_TASK, self.changed_tasks)
        events.append(conn, self.events)
        if self.finished:
            task_keys.forget_own(conn, self.finished)
            sharing.forget(conn, self.finished)
        if self.watched:
            idle_clocks.forget(conn, self.watched)
        run_times.note(conn, self.ended)
        accounting.note(conn, self.stays)


def save_all(conn: Connection, decisions: Sequence[Decision]) -> list[Job | Exception]:
    """Carry them out; outcomes are the jobs with their new versions, or Conflict, Fenced, PortTaken."""
    epoch = lease.current_epoch(conn)
    uids = list({decision.job.uid for decision in decisions})
    heads = {row.uid: _Head(row.version, row.last_seq) for row in conn.execute(_HEADS, {"uids": uids})}
    leases = ports.load(
        conn,
        owners=[owner for decision in decisions for owner in decision.release],
        wanted=[want for decision in decisions for want in decision.lease],
    )
    writes = _Writes()
    outcomes: list[Job | Exception] = []
    for decision in decisions:
        try:
            outcomes.append(_judge(decision, epoch, heads, leases, writes))
        except (Conflict, Fenced, PortTaken) as refusal:
            outcomes.append(refusal)
    writes.carry_out(conn)
    leases.write(conn)
    return outcomes


def _judge(decision: Decision, epoch: int, heads: dict[str, _Head], leases: ports.Leases, writes: _Writes) -> Job:
    job, seen = decision.job, decision.seen
    head = heads.get(job.uid)
    if decision.epoch != epoch:
        raise Fenced(f"the controller's epoch is {epoch}, not {decision.epoch}: another controller has taken over")
    if head is None:
        raise Bug(f"job {job.uid} is saved but was never submitted")
    if head.version != seen.version:
        raise Conflict(f"job {job.uid} is at version {head.version}, not {seen.version}")
    fresh, changed = changed_tasks(job, seen)
    new_tasks, new_bodies = task_values(job, fresh), task_values(job, changed)
    leases.apply(decision.release, decision.lease)
    # Nothing below refuses: from here on the save is part of the transaction.
    new_events = events.event_values(job.uid, job.user, head.last_seq, decision.events, decision.at)
    heads[job.uid] = _Head(seen.version + 1, head.last_seq + len(new_events))
    saved = job.model_copy(update={"version": seen.version + 1})
    writes.jobs.append(
        {
            **changing_values(saved),
            "version": saved.version,
            "last_seq": heads[job.uid].last_seq,
            "dirty": False,
            "uid_": job.uid,
            "seen_": seen.version,
        }
    )
    writes.new_tasks += new_tasks
    writes.changed_tasks += [_as_update(row) for row in new_bodies]
    writes.events += new_events
    writes.stays.append(accounting.Change(decision.at, *changes(seen, job)))
    ended = ran(seen, saved)
    writes.ended += [] if ended is None else [(ended, decision.at)]
    if job.state.final and not seen.state.final:
        writes.finished.append(job.uid)
        writes.watched += [job.uid] if job.spec.idle_timeout_s is not None else []
    return saved


def changed_tasks(job: Job, seen: Job) -> tuple[list[Task], list[Task]]:
    """Runs of tasks of ``job`` that are new, and those that differ from ``seen``; what new runs replace stays as it is.

    Raises Bug when an instance has vanished or a run was left out: a load could not tell which run is the latest.
    """
    before = {task.uid: task for task in seen.tasks}
    fresh = [task for task in job.tasks if task.uid not in before]
    kept = [task for task in job.tasks if task.uid in before]
    if len(fresh) + len(kept) != len(before) or fresh:
        _check_runs(job, seen)
    # Most tasks are the very same object: only the others need a comparison.
    return fresh, [task for task in kept if before[task.uid] is not task and before[task.uid] != task]


def _check_runs(job: Job, seen: Job) -> None:
    last = {(task.role, task.index): task.attempt for task in seen.tasks}
    now = {(task.role, task.index): task.attempt for task in job.tasks}
    if last.keys() - now.keys() or any(run - last.get(slot, run) not in (0, 1) for slot, run in now.items()):
        raise Bug(f"job {job.uid} has lost tasks or runs of them in attempt {job.attempt}")


def _as_update(row: Values) -> Values:
    return {name if name == "body" else f"{name}_": value for name, value in row.items()}
