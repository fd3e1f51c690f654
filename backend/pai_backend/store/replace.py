"""A new job takes the name of an earlier one of its owner, with its alias and the host keys of its tasks.

The earlier job gets another name, and is asked to stop; the new one waits until it has ended. All that is one
transaction, so that a crash leaves both as they were, or both as they are to be.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sqlalchemy import Connection, bindparam, insert, select, update

from pai_backend.model.alias import job_alias
from pai_backend.model.errors import Bug, NoSuchJob
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Desired, Job, NewEvent, StopCause
from pai_backend.store import intent, lookup, save
from pai_backend.store.base import slot
from pai_backend.store.cipher import Cipher
from pai_backend.store.rows import changing_values, search_text
from pai_backend.store.tables import jobs, task_keys

MOST_CHARACTERS = 255
"""Of a name."""

_EARLIER = select(jobs.c.uid).where(jobs.c.name == bindparam("name_"), jobs.c.username == bindparam("user_"))
_RENAME = update(jobs).where(jobs.c.uid == bindparam("uid_"))
_NAMES = select(jobs.c.name).where(
    jobs.c.username == bindparam("user_"), jobs.c.name.in_(bindparam("names_", expanding=True))
)
_ALIASES = select(jobs.c.alias).where(jobs.c.alias.in_(bindparam("aliases_", expanding=True)))
_KEYS = select(task_keys).where(task_keys.c.owner.in_(bindparam("owners_", expanding=True)))


@dataclass(frozen=True, eq=False)
class Replacement:
    """A job ready to be inserted in place of the earlier one of its name, if there is one."""

    submission: save.Submission
    cipher: Cipher

    def __call__(self, conn: Connection) -> Job:
        """Insert it; returns the job as it is stored. Raises UnknownKey."""
        new = self.submission.job
        uid = conn.execute(_EARLIER, {"name_": new.name, "user_": new.user}).scalar_one_or_none()
        submission = self.submission
        if uid is not None:
            earlier = lookup.job(conn, JobUid(uid), self.cipher)
            renamed = self._renamed(conn, earlier)
            submission = _in_place_of(submission, earlier.alias, self._running(conn, renamed))
            _copy_host_keys(conn, renamed, new)
        (outcome,) = save.submit_all(conn, [submission])
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _running(self, conn: Connection, earlier: Job) -> Job:
        """The job that may still run: an earlier one that itself waited for another never did."""
        if earlier.replaces is None:
            return earlier
        try:
            return lookup.job(conn, earlier.replaces, self.cipher)
        except NoSuchJob:  # deleted, so it has ended
            return earlier

    def _renamed(self, conn: Connection, earlier: Job) -> Job:
        """Give the earlier job another name and alias, and ask it to stop unless it has ended."""
        new = self.submission.job
        name = _free_name(conn, earlier)
        alias = _free_alias(conn, earlier, name)
        renamed = earlier.model_copy(update={"name": name, "alias": alias})
        names = {"name": name, "alias": alias, "search": search_text(renamed)}
        conn.execute(_RENAME, {**names, "uid_": earlier.uid})
        told = [NewEvent("job.replaced", {"by": new.uid, "name": name, "was": earlier.name})]
        if not earlier.state.final and earlier.desired is not Desired.STOP:
            reason = "replaced by another job of its name"
            renamed = renamed.model_copy(
                update={"desired": Desired.STOP, "stop_reason": reason, "stop_cause": StopCause.USER}
            )
            asked = {"by": new.user, "reason": reason, "cause": StopCause.USER.value}
            told.append(NewEvent("job.stop-requested", asked))
        return intent.write(conn, renamed, told, new.submitted_at)


def _in_place_of(submission: save.Submission, alias: str, earlier: Job) -> save.Submission:
    """The submission with the earlier job's alias as its first choice; it waits unless that job has ended."""
    job = submission.job
    if not earlier.state.final:
        why = f"waits until {earlier.id}, which it replaces, has ended"
        job = job.model_copy(update={"replaces": earlier.uid, "why": why})
    values = {**submission.values, **changing_values(job)}
    return replace(submission, job=job, values=values, candidates=(alias, *submission.candidates))


def _free_name(conn: Connection, job: Job) -> str:
    longest = job.name[: MOST_CHARACTERS - 17]
    wanted = [f"{longest}-{digits}" for digits in _digits(job)]
    return _first_free(wanted, conn.execute(_NAMES, {"user_": job.user, "names_": wanted}).scalars())


def _free_alias(conn: Connection, job: Job, name: str) -> str:
    wanted = [job_alias(job.name, digits) for digits in _digits(job)]
    return _first_free(
        [job_alias(name), *wanted], conn.execute(_ALIASES, {"aliases_": [job_alias(name), *wanted]}).scalars()
    )


def _digits(job: Job) -> tuple[str, ...]:
    """Ever more of the job's uid; the last has all of it, which no other has."""
    return tuple(job.uid[1 : 1 + length] for length in (4, 8, 12, 16))


def _first_free(wanted: list[str], taken: Iterable[str]) -> str:
    known = set(taken)
    free = next((text for text in wanted if text not in known), None)
    if free is None:
        raise Bug(f"all of {', '.join(wanted)} are taken: the uid of the job is not random")
    return free


def _copy_host_keys(conn: Connection, earlier: Job, new: Job) -> None:
    """Let the tasks of the new job be known by the host keys of the tasks that stand at their places."""
    numbers = {role.name: number for number, role in enumerate(new.spec.task_roles)}
    places = [(numbers[task.role], task.index) for task in new.tasks]
    owners = {slot(earlier.uid, *place): slot(new.uid, *place) for place in places}
    rows = [
        {**row, "owner": owners[row["owner"]]}
        for start in range(0, len(owners), 1000)
        for row in conn.execute(_KEYS, {"owners_": list(owners)[start : start + 1000]}).mappings()
    ]
    if rows:
        conn.execute(insert(task_keys), rows)
