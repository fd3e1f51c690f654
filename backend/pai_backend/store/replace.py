"""A new job takes over what earlier ones of its owner have: a name (``replace``), a workspace name, or both.

An earlier job gets another alias, and another name where it had to give that up too. It is asked to stop; the new one
waits until it has ended. All that is one transaction, so that a crash leaves both as they were, or both as they are to
be.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NoReturn

from sqlalchemy import Connection, bindparam, insert, select, union, update

from pai_backend.model.alias import job_alias
from pai_backend.model.errors import AddressTaken, Bug, NoSuchJob
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Desired, Job, NewEvent, StopCause
from pai_backend.model.text import Text
from pai_backend.store import addresses, intent, lookup, save, submission_keys
from pai_backend.store.base import slot
from pai_backend.store.cipher import Cipher
from pai_backend.store.rows import changing_values, search_text
from pai_backend.store.submission_keys import SubmissionKey
from pai_backend.store.tables import addresses as reserved
from pai_backend.store.tables import jobs, task_keys

MOST_CHARACTERS = 255
"""Of a name."""

_EARLIER = select(jobs.c.uid).where(jobs.c.name == bindparam("name_"), jobs.c.username == bindparam("user_"))
_CALLED = select(jobs.c.uid).where(
    (jobs.c.name == bindparam("name_")) | (jobs.c.alias == bindparam("name_")), jobs.c.username == bindparam("user_")
)
_RENAME = update(jobs).where(jobs.c.uid == bindparam("uid_"))
_NAMES = select(jobs.c.name).where(
    jobs.c.username == bindparam("user_"), jobs.c.name.in_(bindparam("names_", expanding=True))
)
_ALIASES = union(
    select(jobs.c.alias).where(jobs.c.alias.in_(bindparam("aliases_", expanding=True))),
    select(reserved.c.alias).where(reserved.c.alias.in_(bindparam("aliases_", expanding=True))),
)
_KEYS = select(task_keys).where(task_keys.c.owner.in_(bindparam("owners_", expanding=True)))


def take_over(
    conn: Connection,
    submission: save.Submission,
    cipher: Cipher,
    *,
    may_replace: bool,
    key: SubmissionKey | None = None,
) -> Job:
    """Insert a job, in place of earlier ones where it has to be; returns it as it is stored.

    ``may_replace``: a job that has its name, or holds its workspace name and runs, is replaced; without it that is
    refused. ``key``: by which the same submission is recognised. Raises NameTaken, AddressTaken, InvalidParameters,
    UnknownKey.
    """
    new = submission.job
    if key is not None and (made := submission_keys.made(conn, new.user, key)) is not None:
        return lookup.job(conn, made, cipher)
    named = _named(conn, new, cipher)
    held = addresses.one(conn, new.user, new.spec.address) if new.spec.address else None
    holder = _holder(conn, new, held, named, cipher)
    if named is not None and not may_replace:
        raise save.name_taken(new)
    if new.name != new.spec.address and addresses.one(conn, new.user, new.name) is not None:
        raise save.is_address(new)
    _check(new.spec.address, named, holder, may_replace=may_replace)
    for job in {job.uid: job for job in (named, holder) if job is not None}.values():
        running = _running(conn, _renamed(conn, job, new), cipher)
        if not running.state.final:
            submission = _after(submission, running)
    if (keyed := holder or named) is not None:
        _copy_host_keys(conn, keyed, new)
    (outcome,) = save.submit_all(conn, [_with_aliases(submission, held, named)])
    if isinstance(outcome, Exception):
        raise outcome
    if new.spec.address and held is None:
        addresses.reserve(conn, new.user, new.spec.address, outcome.alias, new.submitted_at)
    if key is not None:
        submission_keys.keep(conn, outcome, key)
    return outcome


def _named(conn: Connection, new: Job, cipher: Cipher) -> Job | None:
    uid = conn.execute(_EARLIER, {"name_": new.name, "user_": new.user}).scalar_one_or_none()
    return None if uid is None else lookup.job(conn, JobUid(uid), cipher)


def _holder(
    conn: Connection, new: Job, held: addresses.Address | None, named: Job | None, cipher: Cipher
) -> Job | None:
    """The job that holds the workspace name. Raises AddressTaken when that name means another job of the user's."""
    if held is not None:
        holder = held.holder
        if holder is None:
            return None
        return named if named is not None and named.uid == holder.uid else lookup.job(conn, holder.uid, cipher)
    if not new.spec.address:
        return None
    for uid in conn.execute(_CALLED, {"name_": new.spec.address, "user_": new.user}).scalars():
        if named is None or uid != named.uid:
            _refuse_called(new.spec.address, lookup.job(conn, JobUid(uid), cipher))
    return None


def _check(address: str, named: Job | None, holder: Job | None, *, may_replace: bool) -> None:
    """Raises AddressTaken when a job that goes on holds the workspace name and is not to be replaced."""
    if holder is None or holder.state.final:
        return
    if not may_replace:
        raise AddressTaken(
            Text("The job {id} holds the workspace name {address} and has not ended.", id=holder.id, address=address),
            hint=Text(
                "Let this one take its place, which stops that job: `pai submit FILE --replace`, or "
                "`replace=true` in the REST query. Or give it another workspace name: `--address "
                "OTHER`, or `address=OTHER`."
            ),
        )
    if named is not None and named.uid != holder.uid and not named.state.final:
        raise AddressTaken(
            Text(
                "The job {id} holds the workspace name {address}, the job {id2} has the name, and "
                "neither has ended: a job takes the place of one.",
                id=holder.id,
                address=address,
                id2=named.id,
            ),
            hint=Text("Stop one of them first, for example with `pai stop {named}`.", named=named.name),
        )


def _with_aliases(submission: save.Submission, held: addresses.Address | None, named: Job | None) -> save.Submission:
    """The submission with the aliases that it may have, the best first."""
    new = submission.job
    if held is not None:
        return replace(submission, candidates=(held.alias,), reserved=held.alias)
    if new.spec.address:
        wanted = [job_alias(new.spec.address, digits) for digits in _digits(new)]
        return replace(submission, candidates=(new.spec.address, *wanted), reserved="")
    return submission if named is None else replace(submission, candidates=(named.alias, *submission.candidates))


def _running(conn: Connection, earlier: Job, cipher: Cipher) -> Job:
    """The job that may still run: an earlier one that itself waited for another never did."""
    if earlier.replaces is None:
        return earlier
    try:
        return lookup.job(conn, earlier.replaces, cipher)
    except NoSuchJob:  # deleted, so it has ended
        return earlier


def _renamed(conn: Connection, earlier: Job, new: Job) -> Job:
    """Give the earlier job another alias, and another name if it has to; ask it to stop unless it has ended."""
    name = _free_name(conn, earlier) if earlier.name in (new.name, new.spec.address) else earlier.name
    alias = _free_alias(conn, earlier, name)
    renamed = earlier.model_copy(update={"name": name, "alias": alias})
    names = {"name": name, "alias": alias, "search": search_text(renamed)}
    conn.execute(_RENAME, {**names, "uid_": earlier.uid})
    told = [NewEvent("job.replaced", {"by": new.uid, "name": name, "was": earlier.name})]
    if not earlier.state.final and earlier.desired is not Desired.STOP:
        reason = Text("replaced by another job of its name")
        if earlier.name != new.name:
            reason = Text("replaced by another job of the workspace name {address}", address=new.spec.address)
        renamed = renamed.model_copy(
            update={"desired": Desired.STOP, "stop_reason": reason, "stop_cause": StopCause.USER}
        )
        asked = {"by": new.user, "reason": reason, "cause": StopCause.USER.value}
        told.append(NewEvent("job.stop-requested", asked))
    return intent.write(conn, renamed, told, new.submitted_at)


def _refuse_called(address: str, job: Job) -> NoReturn:
    what = "name" if job.name == address else "alias"
    raise AddressTaken(
        Text(
            "{address} is the {what} of the job {id}, so it cannot be a workspace name.",
            address=address,
            what=what,
            id=job.id,
        ),
        hint=Text("Choose another one, or delete that job (`pai delete {job}`).", job=job.name),
    )


def _after(submission: save.Submission, earlier: Job) -> save.Submission:
    """The submission as one that waits until the earlier job has ended."""
    job = submission.job
    why = Text("waits until {job}, which it replaces, has ended", job=earlier.id)
    job = job.model_copy(update={"replaces": earlier.uid, "why": why})
    return replace(submission, job=job, values={**submission.values, **changing_values(job)})


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
