"""Jobs that their owners let others enter, and users whom an administrator has locked out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection, String, and_, bindparam, delete, func, insert, literal, or_, select, union

from pai_backend.model.errors import InvalidParameters, NoSuchShare, ReadOnlyJob
from pai_backend.model.ids import JobUid
from pai_backend.model.job import State
from pai_backend.model.rights import from_text, to_text, words_of
from pai_backend.model.text import Text
from pai_backend.store import audit
from pai_backend.store.grants import GROUP, Act, Share
from pai_backend.store.lookup import no_such_job
from pai_backend.store.people_tables import accounts, group_members, ssh_lockouts, users
from pai_backend.store.people_tables import shares as table
from pai_backend.store.rows import AnyRow
from pai_backend.store.tables import jobs

MOST_LINKS = 100
"""Of one job, that count."""
_FINAL = tuple(state.value for state in State if state.final)
_OF_JOB = select(table).where(table.c.job == bindparam("job_")).order_by(table.c.username)
_AS_GROUP = literal(GROUP, String) + group_members.c.groupname
_LIVING = (
    select(table)
    .join(jobs, jobs.c.uid == table.c.job)
    .where(
        or_(table.c.expires_at.is_(None), table.c.expires_at > bindparam("now_", type_=table.c.expires_at.type)),
        jobs.c.state.not_in(_FINAL),
    )
    .order_by(table.c.created_at, table.c.job, table.c.username)
)
_IN_FORCE = (
    _LIVING.add_columns(group_members.c.username.label("member"))
    .outerjoin(
        group_members,
        and_(
            table.c.username.startswith(GROUP, autoescape=True),
            group_members.c.groupname == func.substr(table.c.username, len(GROUP) + 1),
        ),
    )
    .where(
        table.c.job == bindparam("job_"),
        jobs.c.username.not_in(select(ssh_lockouts.c.username)),
        or_(
            jobs.c.username.in_(union(select(accounts.c.username), select(users.c.username))),
            ~select(accounts.c.username).exists(),  # no api has told its accounts yet
        ),
    )
)
_WITH = _LIVING.where(
    or_(
        table.c.username == bindparam("username_"),
        table.c.username.in_(select(_AS_GROUP).where(group_members.c.username == bindparam("username_"))),
    ),
    jobs.c.username != bindparam("username_"),
)
_BY = _LIVING.where(jobs.c.username == bindparam("username_"))
_DELETE = delete(table).where(table.c.job == bindparam("job_"), table.c.username == bindparam("username_"))
_LINKS = (
    _LIVING.where(table.c.job == bindparam("job_"), table.c.link != "").with_only_columns(func.count()).order_by(None)
)
_MADE_BY = select(table.c.job, table.c.username).where(table.c.made_by == bindparam("made_by_"))
_OF_GROUP = select(table.c.job).where(table.c.username == bindparam("username_")).order_by(table.c.job)
_DELETE_OF_JOBS = delete(table).where(table.c.job.in_(bindparam("jobs_", expanding=True)))
_JOB = select(jobs.c.state, jobs.c.username).where(jobs.c.uid == bindparam("job_"))
_LOCKED = select(ssh_lockouts.c.username).where(ssh_lockouts.c.username.in_(bindparam("users_", expanding=True)))
_LOCKOUTS = select(ssh_lockouts.c.username).order_by(ssh_lockouts.c.username)
_UNLOCK = delete(ssh_lockouts).where(ssh_lockouts.c.username == bindparam("username_"))


def of_job(conn: Connection, job: JobUid) -> list[Share]:
    """With whom a job is shared, ended shares included."""
    return [_share(row) for row in conn.execute(_OF_JOB, {"job_": job})]


def in_force(conn: Connection, job: JobUid, now: datetime) -> list[Share]:
    """The shares of a job that count now, with the members of groups.

    None counts while the job's owner is locked out or gone.
    """
    shares: dict[str, Share] = {}
    members: defaultdict[str, set[str]] = defaultdict(set)
    for row in conn.execute(_IN_FORCE, {"job_": job, "now_": now}):
        shares[row.username] = _share(row)
        if row.member is not None:
            members[row.username].add(row.member)
    return [replace(share, members=frozenset(members[name])) for name, share in shares.items()]


def with_user(conn: Connection, user: str, now: datetime) -> list[Share]:
    """What a user may enter of others' jobs now, also by a group."""
    return [_share(row) for row in conn.execute(_WITH, {"username_": user, "now_": now})]


def by_user(conn: Connection, user: str, now: datetime) -> list[Share]:
    """What others may enter of a user's jobs now."""
    return [_share(row) for row in conn.execute(_BY, {"username_": user, "now_": now})]


def give(conn: Connection, share: Share, act: Act) -> None:
    """Share, instead of the share there was with that user or group.

    Raises NoSuchJob, ReadOnlyJob, Unauthorized, and InvalidParameters for one link too many.
    """
    audit.require_token(conn, share.made_by)
    job = conn.execute(_JOB, {"job_": share.job}).one_or_none()
    if job is None:
        raise no_such_job(share.job)
    if job.state in _FINAL:
        raise ReadOnlyJob(
            Text("The job has ended and can no longer be entered."), hint=Text("Share one that runs or waits.")
        )
    if share.link and conn.execute(_LINKS, {"job_": share.job, "now_": act.at}).scalar_one() >= MOST_LINKS:
        raise InvalidParameters(
            Text("The job has {most_links} links, which is the most.", most_links=MOST_LINKS),
            hint=Text("`pai shares` lists them, `pai unshare` ends one."),
        )
    conn.execute(_DELETE, {"job_": share.job, "username_": share.user})
    conn.execute(
        insert(table),
        {
            "job": share.job,
            "username": share.user,
            "limits": to_text(share.limits),
            "created_at": share.created_at,
            "created_by": share.created_by,
            "expires_at": share.expires_at,
            "made_by": share.made_by,
            "link": share.link,
            "service": share.service,
        },
    )
    end = "until it ends" if share.expires_at is None else f"until {share.expires_at:%Y-%m-%d %H:%M:%S} UTC"
    only = " ".join(words_of(share.limits)) or "everything"
    audit.note(conn, "share.given", job.username, share.user, act, job=share.job, detail=f"{only}, {end}")


def end(conn: Connection, job: JobUid, user: str, act: Act) -> None:
    """End the share of a user or a group. Raises NoSuchShare."""
    if not any(share.user == user for share in of_job(conn, job)):
        raise NoSuchShare(
            Text("The job is not shared with {user}.", user=repr(user[:100])),
            hint=Text("`pai share JOB --list` shows with whom."),
        )
    conn.execute(_DELETE, {"job_": job, "username_": user})
    owner = conn.execute(_JOB, {"job_": job}).one().username
    audit.note(conn, "share.ended", owner, user, act, job=job)


def end_of_token(conn: Connection, digest: str, act: Act) -> None:
    """End the shares that an application token gave."""
    for row in conn.execute(_MADE_BY, {"made_by_": digest}).all():
        end(conn, JobUid(row.job), row.username, act)


def end_of_group(conn: Connection, name: str, act: Act) -> None:
    """End what is shared with a group, before the group goes."""
    for job in conn.execute(_OF_GROUP, {"username_": f"{GROUP}{name}"}).scalars().all():
        end(conn, JobUid(job), f"{GROUP}{name}", act)


def forget(conn: Connection, ended: Collection[JobUid]) -> None:
    """Delete the shares of jobs that have ended."""
    conn.execute(_DELETE_OF_JOBS, {"jobs_": list(ended)})


def locked_out(conn: Connection, users: Collection[str]) -> frozenset[str]:
    """Those of the users who are locked out."""
    return frozenset(conn.execute(_LOCKED, {"users_": list(users)}).scalars())


def lockouts(conn: Connection) -> list[str]:
    """Everybody who is locked out."""
    return list(conn.execute(_LOCKOUTS).scalars())


def lock_out(conn: Connection, user: str, act: Act) -> None:
    """Lock the user out from now on. Idempotent."""
    if user not in locked_out(conn, (user,)):
        conn.execute(insert(ssh_lockouts), {"username": user, "locked_at": act.at, "locked_by": act.by})
        audit.note(conn, "user.locked-out", user, user, act)


def let_in(conn: Connection, user: str, act: Act) -> None:
    """End a lockout. Idempotent."""
    if user in locked_out(conn, (user,)):
        conn.execute(_UNLOCK, {"username_": user})
        audit.note(conn, "user.let-in", user, user, act)


def _share(row: AnyRow) -> Share:
    return Share(
        job=JobUid(row.job),
        user=row.username,
        limits=from_text(row.limits),
        created_at=row.created_at,
        created_by=row.created_by,
        expires_at=row.expires_at,
        made_by=row.made_by,
        link=row.link,
        service=row.service,
    )
