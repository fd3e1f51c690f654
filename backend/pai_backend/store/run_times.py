"""How long attempts ran that came to their ends by themselves: of each user and kind of job the last few.

Written in the transaction that ends the attempt, so that each counts once whatever crashes. Read once a tenure. There
is one narrow row a kind, however many jobs there were: 100,000 finished jobs cost nothing here but their kinds.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from pydantic_core import from_json, to_json
from sqlalchemy import Connection, bindparam, insert, select, update

from pai_backend.model.attempts import Ran, Times, with_another
from pai_backend.store.repository import Repository
from pai_backend.store.tables import run_times

_KNOWN = select(run_times.c.username, run_times.c.kind, run_times.c.seconds).where(
    run_times.c.username.in_(bindparam("users", expanding=True)),
    run_times.c.kind.in_(bindparam("kinds", expanding=True)),
)
_INSERT = insert(run_times)
# Values come with each execution, so one compiled statement serves all.
_UPDATE = (
    update(run_times)
    .where(run_times.c.username == bindparam("user_"), run_times.c.kind == bindparam("kind_"))
    .values(seconds=bindparam("seconds"), last_at=bindparam("last_at"))
)
_LATEST = (
    select(run_times.c.username, run_times.c.kind, run_times.c.seconds)
    .order_by(run_times.c.last_at.desc(), run_times.c.username.desc(), run_times.c.kind.desc())
    .limit(bindparam("limit_"))
)


def note(conn: Connection, ended: Sequence[tuple[Ran, datetime]]) -> None:
    """Remember these attempts, in this order. In a write transaction: there is no other writer."""
    if not ended:
        return
    asked = {"users": list({one.user for one, _ in ended}), "kinds": list({one.kind for one, _ in ended})}
    known = {(row.username, row.kind): tuple(from_json(row.seconds)) for row in conn.execute(_KNOWN, asked)}
    times, last = dict[tuple[str, str], tuple[int, ...]](known), dict[tuple[str, str], datetime]()
    for one, at in ended:
        key = one.user, one.kind
        times[key], last[key] = with_another(times.get(key, ()), one.seconds), at
    values = {key: {"seconds": to_json(times[key]).decode(), "last_at": at} for key, at in last.items()}
    changed = [{"user_": user, "kind_": kind, **row} for (user, kind), row in values.items() if (user, kind) in known]
    new = [{"username": user, "kind": kind, **row} for (user, kind), row in values.items() if (user, kind) not in known]
    if changed:
        conn.execute(_UPDATE, changed)
    if new:
        conn.execute(_INSERT, new)


def latest(conn: Connection, limit: int) -> list[Times]:
    """The kinds with the latest ends, the latest last."""
    rows = conn.execute(_LATEST, {"limit_": limit}).all()
    return [Times(row.username, row.kind, tuple(from_json(row.seconds))) for row in reversed(rows)]


class RunTimes(Repository):
    """How long attempts ran."""

    async def latest(self, limit: int) -> list[Times]:
        """How long attempts that succeeded ran, of the kinds of jobs with the latest ends; the latest last.

        ``jobs.save`` notes each with the end of its attempt.
        """
        return await self._database.read(partial(latest, limit=limit))
