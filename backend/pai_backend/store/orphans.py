"""Tasks that the engine has and this database does not know (ADR 0025): kept until an administrator ends them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from pai_backend.model.errors import NoSuchTask
from pai_backend.model.ids import TaskUid
from pai_backend.model.text import Text
from pai_backend.store import lease
from pai_backend.store.tables import orphans

_ALL = select(orphans).order_by(orphans.c.seen_at, orphans.c.task)
_COUNT = select(func.count()).select_from(orphans)
_INSERT = insert(orphans)
_UPDATE = update(orphans).where(orphans.c.task == bindparam("task_"))
_DELETE = delete(orphans).where(orphans.c.task == bindparam("task_"))


@dataclass(frozen=True)
class Orphan:
    """One of them, as the controller saw it last."""

    task: TaskUid
    database: str
    """Identity of the database that it was started from; empty when it does not say."""
    state: str
    """Of ``engine.base.TaskState``."""
    since: datetime | None
    """When its command started, if the engine tells."""
    seen_at: datetime
    """When it was seen first."""
    why: str
    """Why its job was not taken back, in a sentence."""
    ended_by: str = ""
    """The administrator who asked for its end, or ``age``; empty while it was not asked for."""


def listed(conn: Connection) -> list[Orphan]:
    """All of them, the longest known first."""
    return [Orphan(**row) for row in conn.execute(_ALL).mappings()]


def count(conn: Connection) -> int:
    """How many there are."""
    return int(conn.execute(_COUNT).scalar_one())


def put(conn: Connection, found: Sequence[Orphan], gone: Collection[TaskUid], epoch: int) -> None:
    """Write what the controller sees; who asked for an end, and when each was seen first, stay. Raises Fenced."""
    lease.require(conn, epoch)
    known = {row.task for row in conn.execute(select(orphans.c.task))}
    fresh = [asdict(orphan) for orphan in found if orphan.task not in known]
    changed = [
        {"task_": orphan.task, "state": orphan.state, "since": orphan.since, "why": orphan.why}
        for orphan in found
        if orphan.task in known
    ]
    if fresh:
        conn.execute(_INSERT, fresh)
    if changed:
        conn.execute(_UPDATE, changed)
    if lost := [{"task_": uid} for uid in gone if uid in known]:
        conn.execute(_DELETE, lost)


def request_end(conn: Connection, task: TaskUid, by: str) -> None:
    """Ask the controller to end it. Idempotent. Raises NoSuchTask."""
    if not conn.execute(_UPDATE.values(ended_by=by), {"task_": task}).rowcount:
        raise NoSuchTask(
            Text("No task {task} is unknown to the database.", task=task),
            hint=Text("`pai cluster orphans` lists those that are."),
        )
