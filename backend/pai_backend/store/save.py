"""The controller's decisions, many in one transaction.

Each save is judged on top of those before it in the group, as if each had a transaction of its own;
then all accepted ones are written with a handful of statements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import Connection, bindparam, insert, select, update

from pai_backend.model.attempts import Ran, ran
from pai_backend.model.errors import Bug
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Job, Task
from pai_backend.store import events, idle_clocks, lease, ports, run_times, sharing, task_keys
from pai_backend.store.base import Conflict, Fenced, NewEvent, PortLease, PortTaken
from pai_backend.store.rows import Values, changing_values, task_values
from pai_backend.store.tables import jobs, tasks

_HEADS = select(jobs.c.uid, jobs.c.version, jobs.c.last_seq).where(jobs.c.uid.in_(bindparam("uids", expanding=True)))
# Values come with each execution, so one compiled statement serves all saves.
_UPDATE_JOB = update(jobs).where(jobs.c.uid == bindparam("uid_"), jobs.c.version == bindparam("seen_"))
_INSERT_TASK = insert(tasks)
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
    finished: list[JobUid] = field(default_factory=list)
    """Jobs that can be entered no more: what let anybody in goes with the same transaction."""
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
    new_events = events.event_values(job, head.last_seq, decision.events, decision.at)
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
